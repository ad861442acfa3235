"""Synopses: accuracy against sampling, certain bounds, latency, speed of building and updates, waiting while a tree is planned."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.report import Record, print_summary, print_table, write_json
from benchmarks.synopses import accuracy, default_options, dimensions, speed, updates
from benchmarks.synopses.data import DATA_SETS, DataSet, adversarial, sensor

ACCURACY = ("data", "variant", "aggregate", "median error %", "seed %", "uniform %", "stratified %", "vs uniform", "vs stratified",
            "median interval %", "coverage", "hard failures", "processed %")  # fmt: skip

FOLLOWED_ROWS = 2_000_000
TINY_ROWS = 50_000
DEFAULT = (600_000, 5, 60)
TINY_DEFAULT = (20_000, 1, 5)
"""Rows, seeds and queries at each stage of a history with default options."""
TINY_SPEED = speed.Size(rows=TINY_ROWS, queries=100, batch=1_000)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when a certain bound failed or a tree lost a row."""
    options = parse(arguments)
    asked = list(default_options.measure(*(TINY_DEFAULT if options.tiny else DEFAULT)))
    _show("default options, asked through SQL", asked)
    print()
    rows = [row for data in _data(options) for row in _accuracy(data, options.queries)]
    print_table(ACCURACY, rows)
    several = list(dimensions.measure(options.queries // 10, TINY_ROWS if options.tiny else dimensions.ROWS))
    _show("several columns, 1,024 leaves", several)
    followed = sensor(TINY_ROWS if options.tiny else FOLLOWED_ROWS)
    changes = [updates.sorted_arrivals(followed, 1000), updates.concentrated_deletes(followed, 1000)]
    _show("after changes", changes)
    size = TINY_SPEED if options.tiny else speed.Size()
    times = speed.measure(size)
    _show(f"time, {size.rows:,} rows", [times])
    summary = summarize(asked, rows, several, changes, times, updates.pause(followed))
    print()
    print_summary(summary)
    if options.json:
        settings: Record = {"benchmark": "synopsis", "queries": options.queries, "leaves": accuracy.LEAVES, "rate": accuracy.RATE}
        write_json(options.json, settings, summary, [*asked, *rows, *several, *changes, times])
    return 1 if summary["hard_failures"] or not all(each["exact"] for each in changes) else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run bench synopsis", description=__doc__)
    parser.add_argument("--queries", type=int, default=2000, help="random queries on each data set (default 2000)")
    parser.add_argument("--data", nargs="+", choices=list(DATA_SETS), default=list(DATA_SETS), help="data sets (default all)")
    parser.add_argument("--tiny", action="store_true", help="hardly any data, to see that all works")
    parser.add_argument("--json", type=Path, help="write the report to this file")
    options = parser.parse_args(arguments)
    if options.tiny:
        options.queries = 100
    if options.queries < 10:
        parser.error("--queries must be at least 10")
    return options


def _data(options: argparse.Namespace) -> Iterator[DataSet]:
    if options.tiny:
        yield adversarial(TINY_ROWS)
    else:
        yield from (DATA_SETS[name]() for name in options.data)


def _accuracy(data: DataSet, queries: int) -> list[Record]:
    rows = list(accuracy.measure(data, queries))
    print(f"{data.name} done", file=sys.stderr, flush=True)
    if data.name == "adversarial":
        _show("challenging queries on adversarial data", [accuracy.challenging(data, queries)])
    return rows


def summarize(
    asked: Sequence[Record],
    rows: Sequence[Record],
    several: Sequence[Record],
    changes: Sequence[Record],
    times: Record,
    pause_ms: float,
) -> Record:
    """First what users get by default options through SQL: the worst of data sets, stages and aggregates. Then trees in memory with
    the storage of the paper: errors are fractions; the worst of data sets and aggregates at equal tuples per query, coverage also
    of several columns."""
    equal = [each for each in rows if each["variant"] == "ESS"]
    return {
        "default_coverage_lowest": min(_number(each, "coverage") for each in asked),
        "default_given_lowest": min(_number(each, "given") for each in asked),
        "default_narrow_and_wrong": int(sum(_number(each, "narrow and wrong") for each in asked)),
        "median_error": max(_number(each, "median error %") for each in equal) / 100.0,
        "vs_uniform": min(_number(each, "vs uniform") for each in equal),
        "vs_stratified": min(_number(each, "vs stratified") for each in equal),
        "coverage_lowest": min(_number(each, "coverage") for each in [*equal, *several]),
        "hard_failures": int(sum(_number(each, "hard failures") for each in [*asked, *rows, *several])),
        "query_ms_median": _number(times, "query ms median"),
        "query_ms_p99": _number(times, "query ms p99"),
        "updates_per_s": min(_number(times, "durable updates/s"), *(_number(each, "rows/s") for each in changes)),
        "partition_s": _number(times, "planning s"),
        "build_rows_per_s": _number(times, "build rows/s"),
        "longest_pause_ms": pause_ms,
    }  # fmt: skip


def _number(row: Record, name: str) -> float:
    value = row[name]
    return float(value) if isinstance(value, int | float) else float("nan")


def _show(title: str, rows: Sequence[Record]) -> None:
    print(f"\n{title}")
    print_table(list(rows[0]), rows)


if __name__ == "__main__":
    sys.exit(main())
