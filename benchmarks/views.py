"""Views that are kept fresh: the refresh of the TPC-H queries as views after changes, beside computing them again.

Orders and lines come, go and change by 0.1 to 20 percent. After each change every view is refreshed and held against its query over
the changed tables; its time is compared with those of an exact query here, of DuckDB over files of the new version, and of Spark.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

import nearly
from benchmarks.agreement import difference
from benchmarks.engines import Engine, duckdb_alone, spark_sql, start_spark
from benchmarks.maintenance.changes import KEYS, apply, refresh_set
from benchmarks.report import Record, Value, median, print_summary, print_table, show, write_json
from benchmarks.tpch.data import DEFAULT_DIRECTORY, PARTS, ensure_tables
from benchmarks.tpch.queries import NUMBERS, query

TINY = {"sf": "0.01", "queries": (1, 3, 13), "percents": (0.1, 10.0), "repeat": 1}
COLUMNS = ("view", "percent", "refresh s", "again s", "duckdb s", "spark s", "strategy", "rows", "changed", "equal")
JOINED = """
    select l_orderkey, l_linenumber, l_quantity, l_extendedprice, l_discount, l_shipdate, o_custkey, o_orderdate, o_totalprice,
        o_orderpriority
    from lineitem join orders on l_orderkey = o_orderkey
"""
CUBE = """
    select c_custkey, n_nationkey, r_regionkey, l_partkey, sum(l_extendedprice * (1 - l_discount)) as revenue
    from lineitem join orders on l_orderkey = o_orderkey join customer on o_custkey = c_custkey
        join nation on c_nationkey = n_nationkey join region on n_regionkey = r_regionkey
    group by c_custkey, n_nationkey, r_regionkey, l_partkey
"""
"""Two views of the paper on stale view cleaning."""
UNTOUCHED = "untouched"
"""The strategy of a view none of whose tables changed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when a view differs from its query."""
    options = parse(arguments)
    tables = ensure_tables(options.sf, options.data)
    directory = Path(tempfile.mkdtemp(prefix="nearly-bench-views-"))
    spark = start_spark("nearly-bench-views")
    try:
        with nearly.connect(spark, path=directory / "catalog") as db:
            for name, path in tables.items():
                db.register(name, str(path), key=KEYS.get(name, ()))
            rows = Course(db, tables, directory, options, spark).run()
    finally:
        spark.stop()
        shutil.rmtree(directory, ignore_errors=True)
    summary = summarize(rows)
    print_table(COLUMNS, rows)
    for each in rows:
        if each["problem"]:
            print(f"{each['view']} at {each['percent']} %: {each['problem']}")
    print()
    print_summary(summary)
    return 1 if summary["mismatches"] else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run bench views", description=__doc__)
    parser.add_argument("--sf", choices=sorted(PARTS, key=float), default="1", help="scale factor (default 1)")
    parser.add_argument("--queries", type=lambda text: tuple(int(part) for part in text.split(",")), default=NUMBERS)
    parser.add_argument(
        "--percents", type=lambda text: tuple(float(part) for part in text.split(",")), default=(0.1, 1.0, 10.0),
        help="how much changes before each round of refreshes (default 0.1,1,10)",
    )  # fmt: skip
    parser.add_argument(
        "--extra", action="store_true",
        help="also the join view and the cube of stale view cleaning, whose rows are held in memory: 24 GB are too few at scale 10",
    )  # fmt: skip
    parser.add_argument("--repeat", type=int, default=2, help="runs of the queries, of which the median counts (default 2)")
    parser.add_argument("--no-spark", action="store_true", help="leave Spark SQL out, which takes most of the time")
    parser.add_argument("--tiny", action="store_true", help="hardly any data, to see that all works")
    parser.add_argument("--data", type=Path, default=DEFAULT_DIRECTORY, help="where sf<N> is, or is generated")
    parser.add_argument("--json", type=Path, help="write the report to this file")
    options = parser.parse_args(arguments)
    if options.tiny:
        vars(options).update(TINY)
    return options


class Course:
    """Views over tables that change round by round."""

    def __init__(self, db: nearly.Session, tables: dict[str, Path], directory: Path, options: argparse.Namespace, spark: object):
        self.db, self.tables, self.directory, self.options, self.spark = db, dict(tables), directory, options, spark
        self.texts = {f"q{number:02}": query(number, options.sf) for number in options.queries}
        if options.extra:
            self.texts |= {"joined": JOINED, "cube": CUBE}

    def run(self) -> list[Record]:
        for name, text in self.texts.items():
            began = time.perf_counter()
            self.db.create_view(f"view_{name}", text)
            print(f"{name} created in {time.perf_counter() - began:.2f} s", file=sys.stderr, flush=True)
        rows: list[Record] = []
        for turn, percent in enumerate(self.options.percents):
            changed = apply(self.db, refresh_set(self.db, percent, turn), turn, self.tables)
            others = self._others(percent, turn)
            for name, text in self.texts.items():
                rows.append(self._measured(name, text, percent, others) | {"changed": changed})
                print("  ".join(f"{key} {show(rows[-1].get(key))}" for key in COLUMNS), file=sys.stderr, flush=True)
                if self.options.json:
                    settings: Record = {"benchmark": "views", "sf": self.options.sf, "repeat": self.options.repeat}
                    write_json(self.options.json, settings, summarize(rows), rows)
        return rows

    def _others(self, percent: float, turn: int) -> dict[str, Engine]:
        """DuckDB, and Spark in the round of one percent, over plain files of the changed tables."""
        self.tables |= {name: self.db.export(name, self.directory / f"{name}-{turn}") for name in KEYS}
        others: dict[str, Engine] = {"duckdb": duckdb_alone(self.tables)}
        if not self.options.no_spark and percent == 1:
            others["spark"] = spark_sql(self.spark, self.tables)  # type: ignore[arg-type]
        return others

    def _measured(self, name: str, text: str, percent: float, others: dict[str, Engine]) -> dict[str, Value]:
        """The queries first, so that what they read is in memory for everybody; then the refresh, which there is only once."""
        problems = []
        seconds: dict[str, float] = {}
        expected = None
        for engine, answer in {"again": self._again, **others}.items():
            try:
                seconds[engine], table = timed(answer, text, 1 if engine == "spark" else self.options.repeat)
            except Exception as error:  # noqa: BLE001  one failing engine must not end the others
                problems.append(f"{engine} failed: {str(error).splitlines()[0][:200]}")
                continue
            expected = table if expected is None else expected
        view = self.db.view(f"view_{name}")
        stale = bool(view.stale)
        began = time.perf_counter()
        view.refresh()
        seconds["refresh"] = time.perf_counter() - began
        found = self.db.sql(f"select * from view_{name}").exact().table
        differs = "nothing to compare with" if expected is None else difference(expected, found, f"select * from view_{name}")
        if differs:
            problems.append(f"the view differs: {differs}")
        strategy = view.history[0].strategy if stale else UNTOUCHED
        return {
            "view": name, "percent": percent, **{f"{each} s": took for each, took in seconds.items()}, "strategy": strategy,
            "rows": found.num_rows, "equal": not differs, "problem": "; ".join(problems) or None,
        }  # fmt: skip

    def _again(self, text: str) -> pa.Table:
        """nearly's own exact answer from the tables themselves."""
        answer = self.db.sql(text, kernel="native").exact()
        if answer.source not in ("native", "spark"):
            raise RuntimeError(f"the query was answered by {answer.source}")
        return answer.table


def timed(answer: Callable[[str], pa.Table], text: str, repeat: int) -> tuple[float, pa.Table]:
    """The median time after a first run, which counts only where it is the one there is."""
    times = []
    for _ in range(repeat + 1 if repeat > 1 else repeat):
        began = time.perf_counter()
        table = answer(text)
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:] or times), table


def summarize(rows: Sequence[Record]) -> Record:
    """Medians over the views of TPC-H queries whose tables changed: that others are left as they are costs nothing."""

    def over(other: str, percent: float) -> float | None:
        mine = (row for row in rows if row["percent"] == percent and str(row["view"])[0] == "q" and row["strategy"] != UNTOUCHED)
        found = [(row.get("refresh s"), row.get(other)) for row in mine]
        return median([float(a) / float(b) for a, b in found if isinstance(a, float) and isinstance(b, float)])

    incremental = {row["view"] for row in rows if row["percent"] == rows[0]["percent"] and row["strategy"] not in ("whole", "full")}
    return {
        "mismatches": sum(row["equal"] is not True for row in rows),
        "incremental_of_22": len([view for view in incremental if str(view)[0] == "q"]),
        "over_recompute_01": over("again s", 0.1), "over_recompute_1": over("again s", 1.0),
        "over_recompute_10": over("again s", 10.0), "over_duckdb_01": over("duckdb s", 0.1), "over_duckdb_1": over("duckdb s", 1.0),
        "over_duckdb_10": over("duckdb s", 10.0), "over_spark_1": over("spark s", 1.0),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
