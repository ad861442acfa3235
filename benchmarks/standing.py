"""Standing queries: deltas from kept states against recomputation, keeping everything, a greedy cache, and DuckDB.

The experiments of "Intermittent Query Processing" on TPC-H: late data (E-I1), a JOB-shaped database (E-I2), cleaning of one table
after the other (E-I3), wrong predictions (E-I4, E-I5), budgets (E-I6), what may be injected (E-I7), and deletes (E-I8). Answers are
compared with recomputation.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import nearly
from benchmarks.report import Record, print_summary, print_table, write_json
from benchmarks.standings.arriving import DELETES, KEYS, Arriving, Tables, arrived_in
from benchmarks.standings.arriving_movies import arrive_movies
from benchmarks.standings.course import GREEDY, KEEP_ALL, OURS, RECOMPUTE, UNLIMITED, Courses, Patience, Run
from benchmarks.standings.limited import LimitedStates
from benchmarks.standings.summary import BUDGETS, COMPLETENESS, LATE, PERCENT, SIZES, WITH_DELETES, Figures
from benchmarks.tpch.data import DEFAULT_DIRECTORY, PARTS, ensure_tables
from benchmarks.tpch.queries import query
from nearly.engine.costs import Costs
from nearly.standing.actions import Allowed
from nearly.standing.arrivals import Expected
from nearly.standing.planner import StateBudget

FLAT = (1, 3, 5, 6, 7, 8, 9, 10, 12, 14, 19)
"""The flat select-project-join-aggregate queries of TPC-H, as in the paper."""
COLUMNS = ("experiment", "query", "strategy", "first", "delta", "after", "memory_mb", "plan_ms", "how", "right")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when an answer was wrong."""
    options = parse(arguments)
    directory = Path(tempfile.mkdtemp(prefix="nearly-bench-standing-", dir=options.work))
    tables = directory if options.arrived is None else options.arrived
    try:
        source = ensure_tables(options.sf, options.data)
        tables.mkdir(parents=True, exist_ok=True)
        with nearly.connect(path=tables / "catalog", lazy=True) as db:
            began = time.perf_counter()
            data = arrived_in(db, source, tables)
            print(f"data arrived in {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
            store = LimitedStates(db._engine)
            costs = Costs()
            costs.measure()
            rows: list[Record] = []
            try:
                for row in Experiments(data, Courses(db, store, costs), directory, options).all():
                    rows.append(row)
                    if options.json:  # what was measured stays, however it ends
                        write_json(options.json, {"benchmark": "standing", "sf": options.sf}, {}, rows)
            except (KeyboardInterrupt, RuntimeError) as trouble:
                if isinstance(trouble, RuntimeError) and str(trouble) != "Query interrupted":  # as DuckDB tells of Ctrl-C
                    raise
                print("interrupted: the summary is of what was measured so far", file=sys.stderr)
            finally:
                store.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    summary = Figures(rows).summary()
    print_table(COLUMNS, rows)
    print()
    print_summary(summary)
    if options.json:
        write_json(options.json, {"benchmark": "standing", "sf": options.sf}, summary, rows)
    return 1 if summary["mismatches"] else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run bench standing", description=__doc__)
    parser.add_argument("--sf", choices=sorted(PARTS, key=float), default="1", help="scale factor (default 1; the paper has 5)")
    parser.add_argument("--queries", type=int, nargs="*", default=FLAT, help="numbers of TPC-H queries (default: the flat ones)")
    parser.add_argument("--only", nargs="*", help="experiments, such as E-I1 E-I6 (default all)")
    parser.add_argument("--tiny", action="store_true", help="hardly any data, to see that all works")
    parser.add_argument("--data", type=Path, default=DEFAULT_DIRECTORY, help="where the tables are, or are generated")
    parser.add_argument("--work", type=Path, help="where the changing tables are put (default: the temporary directory)")
    parser.add_argument("--arrived", type=Path, help="where the changing tables are kept, to measure experiments apart")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of strategies that are compared (default 3)")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which keeping all is given up (default 60)")
    parser.add_argument("--json", type=Path, help="also write a report to this file")
    options = parser.parse_args(arguments)
    if options.tiny:
        vars(options).update({"sf": "0.01", "queries": (3, 5, 12)})
    return options


class Experiments:
    """The experiments, each some rows of the report."""

    def __init__(self, data: Arriving, courses: Courses, directory: Path, options: argparse.Namespace) -> None:
        self._data, self._courses, self._directory, self._options = data, courses, directory, options
        self._cores = data.db._engine.cluster.sites.cores
        self._patience = Patience(options.rounds, limit=options.limit)

    def all(self) -> Iterator[Record]:
        experiments = {
            LATE: self.late, "E-I2": self.movies, "E-I3": self.cleaning, SIZES: self.sizes, COMPLETENESS: self.completeness,
            BUDGETS: self.budgets, "E-I7": self.injection, WITH_DELETES: self.deletes,
        }  # fmt: skip
        for name, run in experiments.items():
            if not self._options.only or name in self._options.only:
                for row in run():
                    print(" ".join(str(each) for each in row.values()), file=sys.stderr, flush=True)
                    yield row

    def _text(self, number: int) -> str:
        return query(number, self._options.sf)

    def _some(self, *numbers: int) -> list[int]:
        return [each for each in numbers if each in self._options.queries] or list(self._options.queries)[:1]

    def late(self) -> Iterator[Record]:
        """90 percent at first, then 9, 0.9 and 0.1 percent. The first run is not counted: it reads what the others find read."""
        versions = self._data.arrived[1:]
        for number in self._options.queries:
            text = self._text(number)
            self._courses.run(text, versions, RECOMPUTE)
            yield from self._compared(LATE, number, text, versions, (OURS, RECOMPUTE, KEEP_ALL))
            seconds = self._courses.duckdb_seconds(text, versions[-1], self._cores)
            yield {"experiment": LATE, "query": number, "strategy": "duckdb", "delta": seconds, "right": True}
            yield from self._compared(PERCENT, number, text, [versions[1], versions[3]], (OURS, RECOMPUTE))

    def _compared(
        self, experiment: str, number: int, text: str, versions: Sequence[Tables], strategies: Sequence[str]
    ) -> Iterator[Record]:
        for strategy, run in self._courses.rounds(text, versions, strategies, self._patience).items():
            yield record(experiment, number, strategy, run)

    def movies(self) -> Iterator[Record]:
        """Joins of many tables, of which one percent is late; the first run of each is not counted, as with late data."""
        versions, texts = arrive_movies(self._data.db, f"{min(1.0, float(self._options.sf)):g}", self._directory)
        for number, text in enumerate(texts, 1):
            self._courses.run(text, versions, RECOMPUTE)
            for strategy in (OURS, RECOMPUTE, KEEP_ALL):
                yield record("E-I2", number, strategy, self._limited(text, versions, strategy))

    def _limited(self, text: str, versions: Sequence[Tables], strategy: str) -> Run:
        return self._courses.limited(text, versions, strategy, self._options.limit if strategy == KEEP_ALL else None)

    def cleaning(self) -> Iterator[Record]:
        """One table after the other is corrected, from 99 to 100 percent."""
        names = ["supplier", "customer", "part", "orders", "lineitem"]
        versions = self._data.one_by_one(names, 2, 4)
        for number in self._some(8):
            for strategy in (OURS, RECOMPUTE, KEEP_ALL):
                yield record("E-I3", number, strategy, self._limited(self._text(number), versions, strategy))

    def sizes(self) -> Iterator[Record]:
        """Small and large deltas, each predicted to be small or large."""
        arrived = self._data.arrived
        for number in self._some(8):
            for actual, versions in (("1%", [arrived[2], arrived[4]]), ("30%", [arrived[0], arrived[4]])):
                for share, told in ((0.01, "1%"), (0.3, "30%")):
                    said = {name: Expected(arrived[4][name].rows * share) for name in KEYS}
                    run = self._courses.run(self._text(number), versions, predicted=[said])
                    yield record(SIZES, number, f"{actual} come, {told} predicted", run)
                yield record(
                    SIZES, number, f"{RECOMPUTE}, {actual} come", self._courses.run(self._text(number), versions, RECOMPUTE)
                )

    def completeness(self) -> Iterator[Record]:
        """Too many or too few tables are thought to be incomplete."""
        order = ["lineitem", "orders", "customer", "part", "supplier"]
        arrived = self._data.arrived
        coming = {name: Expected(arrived[4][name].rows * 0.01) for name in order}
        for number in self._some(8):
            text = self._text(number)
            for many in (1, 3, 5):
                some = arrived[2] | {name: arrived[4][name] for name in order[:many]}
                run = self._courses.run(text, [arrived[2], some], predicted=[coming])
                yield record(COMPLETENESS, number, f"{many} change, 5 predicted", run)
                said = {name: coming[name] for name in order[:many]}
                run = self._courses.run(text, [arrived[2], arrived[4]], predicted=[said])
                yield record(COMPLETENESS, number, f"5 change, {many} predicted", run)
            yield record(COMPLETENESS, number, RECOMPUTE, self._courses.run(text, [arrived[2], arrived[4]], RECOMPUTE))

    def budgets(self) -> Iterator[Record]:
        """One percent comes, with more and more memory; a greedy cache has as much."""
        versions: list[Tables] = [self._data.arrived[2], self._data.arrived[4]]
        for number in self._some(3, 7, 8, 9):
            text = self._text(number)
            most = self._courses.run(text, versions).memory
            for share in (0.0, 0.1, 0.25, 0.5, 1.0):
                budget = StateBudget(share * most)
                for strategy in (OURS, GREEDY):
                    yield record(BUDGETS, number, f"{strategy} {share:.0%}", self._courses.run(text, versions, strategy, budget))

    def injection(self) -> Iterator[Record]:
        """Only what the plan builds by itself; with rows of pipelined operators; with left sides of joins as well."""
        versions = [self._data.arrived[2], self._data.arrived[4]]
        ways = {"none": Allowed(False, False), "materialise": Allowed(True, False), "symmetric": Allowed(True, True)}
        for number in self._some(3, 5, 8, 9):
            for name, allowed in ways.items():
                yield record("E-I7", number, name, self._courses.run(self._text(number), versions, OURS, UNLIMITED, allowed))

    def deletes(self) -> Iterator[Record]:
        """Deltas of one percent with fewer and fewer deletes, one after the other; the first run is not counted here, too."""
        for number in self._options.queries:
            self._courses.run(self._text(number), self._data.mixed, RECOMPUTE)
            for strategy in (OURS, RECOMPUTE):
                run = self._courses.run(self._text(number), self._data.mixed, strategy)
                for share, each in zip(DELETES, run.one_by_one(), strict=True):
                    yield record(WITH_DELETES, number, f"{strategy}, {share:.0%} deletes", each)


def record(experiment: str, number: int, strategy: str, run: Run) -> Record:
    if run.gave_up is not None:
        how = f"given up: more than {run.gave_up:.0f} s"
        return {"experiment": experiment, "query": number, "strategy": strategy, "how": how, "right": True, "gave_up": True}
    return {
        "experiment": experiment, "query": number, "strategy": strategy, "first": run.first, "delta": run.mean,
        "after": run.mean_after, "work": run.mean + run.mean_after, "memory_mb": run.memory / 2**20,
        "plan_ms": statistics.median(run.plan_ms) if run.plan_ms else None,
        "how": "+".join(dict.fromkeys(run.strategies)), "right": all(run.right), "exceeded": run.fitting.count(False),
        "best": min(run.deltas, default=None),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
