"""Queries in the shapes of TPC-DS over a generated retailer: exact and early answers beside Spark SQL, and whether both hold."""

from __future__ import annotations

import argparse
import atexit
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

import nearly
from benchmarks.agreement import difference, loose_difference
from benchmarks.engines import Engine, duckdb_alone, spark_sql, start_spark
from benchmarks.options import parsed
from benchmarks.report import Record, Value, median, print_report, write_json
from benchmarks.retailer.data import DEFAULT_DIRECTORY, ensure_tables
from benchmarks.retailer.queries import NAMES, NUMBERS, query
from benchmarks.timeline import Look, own, timeline

TINY = {"scale": "0.01", "queries": (3, 38, 51), "eager": True, "no_spark": True}
COLUMNS = (
    "query", "rows", "judge s", "exact s", "new s", "first s", "first %", "end s", "first/exact", "end/exact", "looks", "told",
    "true", "recall", "false", "equal",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judge:
    """Whose answers are right: Spark's, or DuckDB's, which have other types for numbers."""

    answer: Engine
    difference: Callable[[pa.Table, pa.Table, str], str | None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when a final answer is wrong, an early one tells a false error, or a query fails."""
    options = parse(arguments)
    tables = ensure_tables(options.scale, options.data)
    spark = None if options.no_spark else start_spark("nearly-bench-retail")
    judge = Judge(duckdb_alone(tables), loose_difference) if spark is None else Judge(spark_sql(spark, tables), difference)
    catalog = tempfile.mkdtemp(prefix="nearly-bench-")
    atexit.register(shutil.rmtree, catalog, ignore_errors=True)
    rows: list[Record] = []
    with nearly.connect(spark, path=catalog, lazy=spark is None, eager=options.eager) as db:
        for name, path in tables.items():
            db.register(name, str(path))
        db.sql("select count(*) from shops").run()
        for number in options.queries:
            rows.append(measure(number, db, judge, options.repeat, options.seeds))
            print(f"{NAMES[number]} done", file=sys.stderr, flush=True)
    if spark is not None:
        spark.stop()
    summary = summarize(rows)
    print_report(COLUMNS, rows, summary)
    if options.json:
        settings: Record = {"benchmark": "retail", "scale": options.scale, "repeat": options.repeat, "seeds": options.seeds}
        write_json(options.json, settings, summary, rows)
    return 1 if summary["mismatches"] or summary["false_errors"] or summary["failures"] else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run bench retail", description=__doc__)
    parser.add_argument("--scale", default="1", help="such as 0.02 (default 1: 2.9 million sales in shops)")
    parser.add_argument("--queries", type=_numbers, default=NUMBERS, help="such as 1,3,18 (default all)")
    parser.add_argument("--repeat", type=int, default=1, help="measured runs of nearly, of which the median counts (default 1)")
    parser.add_argument(
        "--seeds", type=int, default=0, help="further orders of reading in which early answers are judged (default 0)"
    )
    parser.add_argument("--eager", action="store_true", help="judge early answers also where the exact one is expected soon")
    parser.add_argument("--no-spark", action="store_true", help="no Spark at all: DuckDB judges, and nearly runs in this process")
    options = parsed(parser, arguments, DEFAULT_DIRECTORY, TINY)
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    return options


def measure(number: int, db: nearly.Session, judge: Judge, repeat: int, seeds: int) -> Record:
    """One query: asked for the first time, then exactly and again with early answers; a failure is noted and ends only this."""
    text, row = query(number), dict[str, Value](query=NAMES[number], problem=None)
    try:
        return row | _measured(text, db, judge, repeat, seeds)
    except Exception as error:  # noqa: BLE001  one failing query must not end the others
        return row | {"problem": f"failed: {type(error).__name__}: {str(error).splitlines()[0][:300]}", "failed": True}


def _measured(text: str, db: nearly.Session, judge: Judge, repeat: int, seeds: int) -> dict[str, Value]:
    judged, expected = _timed(judge.answer, text)
    new = timeline(db, text)
    runs, exact = [], []
    for _ in range(repeat):
        exact.append(_timed(own(db), text))
        runs.append(timeline(db, text))
    others = [timeline(db, text, seed) for seed in range(1, seeds + 1)]
    seconds = statistics.median(each for each, _ in exact)
    looks = sorted(runs, key=lambda run: run[-1].seconds)[len(runs) // 2]
    found = [judge.difference(expected, table, text) for table in (exact[-1][1], looks[-1].answer.table, new[-1].answer.table)]
    false = [look.description for run in (new, *runs, *others) for look in run if look.false]
    problems = [f"differs: {each}" for each in dict.fromkeys(found) if each] + [f"false error: {each}" for each in false]
    return {
        "rows": expected.num_rows, "judge s": judged, "exact s": seconds, "new s": new[0].seconds, "new end s": new[-1].seconds,
        "end s": looks[-1].seconds, "end/exact": looks[-1].seconds / seconds, "new end/exact": new[-1].seconds / seconds,
        "looks": len(looks), **_first(looks[0], seconds), "false": len(false), "equal": not any(found),
        "problem": "\n".join(problems) or None,
    }  # fmt: skip


def _first(look: Look, exact: float) -> dict[str, Value]:
    """The first answer, where it is an early one."""
    if look.answer.exact:
        return {}
    return {
        "first s": look.seconds, "first %": 100 * look.answer.progress, "first/exact": look.seconds / exact,
        "told": look.answer.error, "true": look.accuracy.whole, "recall": look.accuracy.recall,
    }  # fmt: skip


def summarize(rows: Sequence[Record]) -> Record:
    """Medians and worst of the ratios to the exact run, how many queries had an early answer, and what went wrong."""

    def values(name: str) -> list[float]:
        return [value for row in rows if isinstance(value := row.get(name), float)]

    return {
        "queries": len(rows), "shown_early": len(values("first s")),
        "exact_over_judge": median([a / b for a, b in zip(values("exact s"), values("judge s"), strict=True)]),
        "first_over_exact": median(values("first/exact")), "worst_first_over_exact": max(values("first/exact"), default=None),
        "end_over_exact": median(values("end/exact")), "worst_end_over_exact": max(values("end/exact"), default=None),
        "new_end_over_exact": median(values("new end/exact")),
        "false_errors": sum(int(row.get("false") or 0) for row in rows),
        "queries_with_false_errors": sum(bool(row.get("false")) for row in rows),
        "mismatches": sum(row.get("equal") is False for row in rows), "failures": sum(row.get("failed") is True for row in rows),
    }  # fmt: skip


def _timed(answer: Engine, text: str) -> tuple[float, pa.Table]:
    began = time.perf_counter()
    table = answer(text)
    return time.perf_counter() - began, table


def _numbers(text: str) -> tuple[int, ...]:
    numbers = tuple(int(part) for part in text.split(","))
    if unknown := set(numbers) - set(NUMBERS):
        raise argparse.ArgumentTypeError(f"no such query: {sorted(unknown)}; they are 1 to {NUMBERS[-1]}")
    return numbers


if __name__ == "__main__":
    sys.exit(main())
