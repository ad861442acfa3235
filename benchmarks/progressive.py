"""Progressive answers to TPC-H and deep queries: when the first, a good and the exact answer come, beside Spark SQL and DuckDB."""

from __future__ import annotations

import argparse
import atexit
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence

import pyarrow as pa

import nearly
from benchmarks.agreement import difference, loose_difference
from benchmarks.cold import cold_first
from benchmarks.engines import Engine, duckdb_alone, spark_sql, start_spark
from benchmarks.memory import PeakMemory
from benchmarks.options import parsed
from benchmarks.report import Record, Value, median, print_report, show, write_json
from benchmarks.synthetic import SBI, deep_query, ensure_synthetic
from benchmarks.timeline import good_from, own, timeline
from benchmarks.tpch.data import DEFAULT_DIRECTORY, PARTS, ensure_tables
from benchmarks.tpch.queries import NUMBERS, query

PREPARED = (("orders", "o_custkey"), ("customer", "c_custkey"))
"""Layouts with which queries that join these two tables are read by customers."""
TINY = {"sf": "0.01", "queries": (1, 3), "repeat": 1}
COLUMNS = (
    "query", "spark s", "duckdb s", "nearly s", "cold s", "first s", "first %", "first error", "strict error", "recall", "1% s",
    "strict 1% s", "exact s", "looks", "false", "state MB", "equal",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when a final answer differs from Spark's (DuckDB's without Spark) or an answer has another schema."""
    options = parse(arguments)
    tables = ensure_tables(options.sf, options.data) | (ensure_synthetic(options.sf) if options.deep else {})
    spark = start_spark("nearly-bench-progressive")
    others: dict[str, Engine] = {"duckdb": duckdb_alone(tables)}
    if not options.no_spark:
        others["spark"] = spark_sql(spark, tables)
    catalog = tempfile.mkdtemp(prefix="nearly-bench-")
    atexit.register(shutil.rmtree, catalog, ignore_errors=True)
    db = nearly.connect(spark, path=catalog)
    for name, path in tables.items():
        db.register(name, str(path))
    for table, key in PREPARED if options.prepare else ():
        db.prepare(table, by=key)
    db.sql("select count(*) from lineitem").run()
    rows: list[Record] = []
    for name, text in texts(options):
        cold = None if options.no_cold else cold_first(catalog, tables, text)
        rows.append(measure(name, text, db, others, options.repeat) | {"cold s": cold})
        print(_line(rows[-1]), file=sys.stderr, flush=True)
        _write(options, rows)
    db.close()
    spark.stop()
    summary = summarize(rows)
    print_report(COLUMNS, rows, summary)
    return 1 if summary["mismatches"] else 0


def _write(options: argparse.Namespace, rows: Sequence[Record]) -> None:
    """The report of the queries so far: a run of hours that ends early keeps what it measured."""
    if options.json:
        settings: Record = {"benchmark": "progressive", "sf": options.sf, "repeat": options.repeat}
        write_json(options.json, settings, summarize(rows), rows)


def _line(row: Record) -> str:
    return "  ".join(f"{name} {show(row[name])}" for name in COLUMNS if row.get(name) is not None)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run bench progressive", description=__doc__)
    parser.add_argument("--sf", choices=sorted(PARTS, key=float), default="1", help="scale factor (default 1)")
    parser.add_argument("--queries", type=lambda text: tuple(int(part) for part in text.split(",")), default=NUMBERS)
    parser.add_argument(
        "--repeat",
        type=int,
        default=1,
        help="counted runs after a first one; 0: one run, nothing warmed up",
    )
    parser.add_argument("--no-spark", action="store_true", help="leave Spark SQL out, which takes most of the time")
    parser.add_argument("--no-cold", action="store_true", help="leave out the first answers of fresh processes")
    parser.add_argument("--deep", action="store_true", help="also the slow-buffering query and WAKE's synthetic depths 0 to 10")
    parser.add_argument("--prepare", action="store_true", help="orders and customers in buckets of the customer's key before")
    return parsed(parser, arguments, DEFAULT_DIRECTORY, TINY)


def texts(options: argparse.Namespace) -> list[tuple[str, str]]:
    found = [(f"q{number:02}", query(number, options.sf)) for number in options.queries]
    if options.deep:
        found += [("sbi", SBI), *((f"deep{depth}", deep_query(depth)) for depth in range(11))]
    return found


def measure(name: str, text: str, db: nearly.Session, others: dict[str, Engine], repeat: int) -> dict[str, Value]:
    """All engines on one query, in turn. The first run of each but Spark warms up, unless it is the only one; then nearly's
    exact run is left out, too, since the iteration ends with it.

    What nearly keeps in memory after that run is loaded before the others begin.
    """
    seconds: dict[str, list[float]] = {}
    tables: dict[str, pa.Table] = {}
    problems = []
    for turn in range(repeat + 1):
        for engine, answer in {**({"nearly": own(db)} if repeat else {}), **others}.items():
            if engine == "spark" and turn:
                continue
            began = time.perf_counter()
            try:
                tables[engine] = answer(text)
            except Exception as error:  # noqa: BLE001  one failing engine must not end the others
                problems.append(f"{engine} failed: {str(error).splitlines()[0][:200]}")
                continue
            if turn or not repeat or engine == "spark":
                seconds.setdefault(engine, []).append(time.perf_counter() - began)
    if repeat:
        timeline(db, text)
        db._engine.native.samples.settle()
    runs = [timeline(db, text) for _ in range(max(repeat, 1))]
    looks = sorted(runs, key=lambda run: run[0].seconds)[len(runs) // 2]
    final = looks[-1].answer
    peak = PeakMemory()
    if repeat:
        with peak:
            final = timeline(db, text)[-1].answer
    found = _found_wrong(tables, final.table, text)
    if found:
        problems.append(f"nearly differs: {found}")
    if any(look.answer.table.schema != final.table.schema for look in looks):
        problems.append("an early answer has another schema")
    medians = {engine: statistics.median(values) for engine, values in seconds.items()}
    first = looks[0]
    return {
        "query": name, "spark s": medians.get("spark"), "duckdb s": medians.get("duckdb"), "nearly s": medians.get("nearly"),
        "first s": first.seconds, "first %": 100 * first.answer.progress, "first error": first.accuracy.error,
        "strict error": first.accuracy.strict, "recall": first.accuracy.recall, "1% s": good_from(looks),
        "strict 1% s": good_from(looks, strictly=True), "exact s": looks[-1].seconds, "looks": len(looks),
        "false": sum(look.false for look in looks), "state MB": float(looks[-1].answer.stats.get("state_bytes", 0)) / 2**20,
        "peak_mb": peak.megabytes, "equal": not found, "problem": "; ".join(dict.fromkeys(problems)) or None,
    }  # fmt: skip


def _found_wrong(tables: Mapping[str, pa.Table], final: pa.Table, text: str) -> str | None:
    """How the last answer differs from Spark's; where Spark was not asked or failed, from DuckDB's, whose types are others."""
    if "spark" in tables:
        return difference(tables["spark"], final, text)
    return loose_difference(tables["duckdb"], final, text) if "duckdb" in tables else None


def summarize(rows: Sequence[Record]) -> Record:
    """Medians of speed-ups and ratios over the queries."""

    def ratios(above: str, below: str) -> list[float]:
        pairs = [(row.get(above), row.get(below)) for row in rows]
        return [float(a) / float(b) for a, b in pairs if isinstance(a, float) and isinstance(b, float) and b]

    def values(name: str) -> list[float]:
        return [value for row in rows if isinstance(value := row.get(name), float)]

    return {
        "cold_first_vs_duckdb": median(ratios("duckdb s", "cold s")), "cold_first_vs_spark": median(ratios("spark s", "cold s")),
        "first_vs_spark": median(ratios("spark s", "first s")), "first_vs_duckdb": median(ratios("duckdb s", "first s")),
        "percent1_vs_spark": median(ratios("spark s", "1% s")), "percent1_vs_duckdb": median(ratios("duckdb s", "1% s")),
        "strict_percent1_vs_spark": median(ratios("spark s", "strict 1% s")),
        "strict_percent1_vs_duckdb": median(ratios("duckdb s", "strict 1% s")),
        "first_error": median(values("first error")), "first_strict_error": median(values("strict error")),
        "first_recall": median(values("recall")), "false_errors": sum(int(row["false"] or 0) for row in rows),
        "exact_over_spark": median(ratios("exact s", "spark s")), "exact_over_duckdb": median(ratios("exact s", "duckdb s")),
        "exact_over_own": median(ratios("exact s", "nearly s")),
        "mismatches": sum(row["equal"] is not True for row in rows), "peak_mb": max(values("peak_mb"), default=None),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
