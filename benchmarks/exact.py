"""Exact answers to TPC-H: Spark SQL, DuckDB and nearly in turn on the same files, results compared."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from benchmarks.agreement import difference, loose_difference
from benchmarks.engines import Engine, duckdb_alone, nearly_exact, spark_sql, start_spark
from benchmarks.memory import PeakMemory
from benchmarks.options import parsed
from benchmarks.report import Record, median, print_report, write_json
from benchmarks.tpch.data import DEFAULT_DIRECTORY, PARTS, ensure_tables
from benchmarks.tpch.queries import NUMBERS, query

ENGINES = ("spark", "duckdb", "nearly")
TINY = {"sf": "0.01", "queries": (1, 3), "repeat": 1, "no_warm_up": True}
COLUMNS = ("query", "rows", "spark s", "duckdb s", "nearly s", "nearly/spark", "nearly/duckdb", "equal")


@dataclass(slots=True)
class Outcome:
    """What one engine did with one query."""

    seconds: list[float] = field(default_factory=list)
    table: pa.Table | None = None
    problem: str | None = None
    peak_megabytes: float | None = None

    @property
    def median(self) -> float | None:
        return statistics.median(self.seconds) if self.seconds and self.problem is None else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when a result of nearly differs from Spark's or a query failed."""
    options = parse(arguments)
    tables = ensure_tables(options.sf, options.data)
    spark = start_spark("nearly-bench-exact")
    builders = {
        "spark": lambda: spark_sql(spark, tables),
        "duckdb": lambda: duckdb_alone(tables),
        "nearly": lambda: nearly_exact(spark, tables, options.executors),
    }
    engines = {name: builders[name]() for name in options.engines}
    rows: list[Record] = []
    for number in options.queries:
        text = query(number, options.sf)
        outcomes = run(text, engines, options.repeat, warm_up=not options.no_warm_up)
        rows.append(row(number, text, outcomes))
        print(f"q{number:02} done", file=sys.stderr, flush=True)
    spark.stop()
    summary = summarize(rows)
    print_report([column for column in COLUMNS if any(column in each for each in rows)], rows, summary)
    if options.json:
        settings: Record = {"benchmark": "exact", "sf": options.sf, "repeat": options.repeat}
        write_json(options.json, settings, summary, rows)
    return 1 if summary["mismatches"] or summary["failures"] else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run bench exact", description=__doc__)
    parser.add_argument("--sf", choices=sorted(PARTS, key=float), default="1", help="scale factor (default 1)")
    parser.add_argument("--queries", type=_numbers, default=NUMBERS, help="such as 1,3,18 (default all)")
    parser.add_argument("--repeat", type=int, default=3, help="measured runs, of which the median counts (default 3)")
    parser.add_argument("--no-warm-up", action="store_true", help="leave out the unmeasured first run of each engine")
    parser.add_argument("--engines", type=_names, default=ENGINES, help="such as spark,duckdb (default all three)")
    parser.add_argument("--executors", type=int, help="passed to nearly.connect")
    options = parsed(parser, arguments, DEFAULT_DIRECTORY, TINY)
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    return options


def run(text: str, engines: Mapping[str, Engine], repeat: int, *, warm_up: bool) -> dict[str, Outcome]:
    """Time the engines in turn, each turn starting with the next one, so that neither a slow spell of the machine nor a
    place in the order falls on one engine only.

    Memory is sampled in a run of its own after the timed ones: reading it costs time, mostly that of the JVM.
    """
    outcomes = {name: Outcome() for name in engines}
    names = list(engines)
    for turn in range(repeat + warm_up):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            _measure(outcomes[name], engines[name], text, count=turn >= warm_up)
    if "nearly" in engines and outcomes["nearly"].problem is None:
        with PeakMemory() as peak:
            engines["nearly"](text)
        outcomes["nearly"].peak_megabytes = peak.megabytes
    return outcomes


def _measure(outcome: Outcome, engine: Engine, text: str, *, count: bool) -> None:
    """Run once, unless the engine failed before on this query."""
    if outcome.problem is not None:
        return
    start = time.perf_counter()
    try:
        outcome.table = engine(text)
    except Exception as error:  # noqa: BLE001  (one failing query must not end the others)
        outcome.problem = _brief(error)
    if count:
        outcome.seconds.append(time.perf_counter() - start)


def row(number: int, text: str, outcomes: Mapping[str, Outcome]) -> Record:
    """One line of the report; `equal` says whether nearly's result is Spark's, `problem` what went wrong."""
    problems = {name: f"{name} failed: {each.problem}" for name, each in outcomes.items() if each.problem}
    tables = {name: each.table for name, each in outcomes.items() if each.table is not None}
    found: dict[str, str | None] = {}
    if "spark" in tables and "nearly" in tables:
        found["nearly"] = difference(tables["spark"], tables["nearly"], text)
    if "spark" in tables and "duckdb" in tables:
        found["duckdb"] = loose_difference(tables["spark"], tables["duckdb"], text)
    differences = [f"{name} differs from spark: {text}" for name, text in found.items() if text]
    medians = {name: each.median for name, each in outcomes.items()}
    result: dict[str, str | int | float | bool | None] = {"query": f"q{number:02}"}
    result["rows"] = next((table.num_rows for table in tables.values()), None)
    result |= {f"{name} s": seconds for name, seconds in medians.items()}
    if "nearly" in outcomes:
        for other in ("spark", "duckdb"):
            result[f"nearly/{other}"] = _ratio(medians["nearly"], medians.get(other))
        result["equal"] = found["nearly"] is None if "nearly" in found else None
        result["peak_mb"] = outcomes["nearly"].peak_megabytes
    result["failed"] = bool(problems)
    result["problem"] = "; ".join([*problems.values(), *differences]) or None
    return result


def summarize(rows: Sequence[Record]) -> Record:
    """Medians of the ratios, the worst of them, and what went wrong."""
    over = {other: _numbers_in(rows, f"nearly/{other}") for other in ("spark", "duckdb")}
    return {
        "nearly_over_spark": median(over["spark"]),
        "nearly_over_duckdb": median(over["duckdb"]),
        "worst_over_spark": max(over["spark"], default=None),
        "mismatches": sum(each.get("equal") is False for each in rows),
        "failures": sum(each["failed"] is True for each in rows),
        "peak_mb": max(_numbers_in(rows, "peak_mb"), default=None),
    }


def _brief(error: Exception) -> str:
    """The first and the last line of an error: what failed, and in a worker's trace the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' ... '.join(dict.fromkeys(lines[:1] + lines[-1:]))}"


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _numbers_in(rows: Sequence[Record], name: str) -> list[float]:
    return [value for each in rows if isinstance(value := each.get(name), float)]


def _numbers(text: str) -> tuple[int, ...]:
    numbers = tuple(int(part) for part in text.split(","))
    if unknown := set(numbers) - set(NUMBERS):
        raise argparse.ArgumentTypeError(f"no such query: {sorted(unknown)}; they are 1 to 22")
    return numbers


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := set(names) - set(ENGINES):
        raise argparse.ArgumentTypeError(f"no such engine: {sorted(unknown)}; they are {', '.join(ENGINES)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
