"""The main job in one minute: TPC-H queries answered exactly by nearly, and by Spark SQL on the same files."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks.agreement import difference
from benchmarks.engines import CORES, Engine, nearly_exact, spark_sql, start_spark
from benchmarks.tpch.data import ensure_tables
from benchmarks.tpch.queries import query

QUESTIONS = {
    1: "How much was billed, shipped and returned? One pass over all of lineitem.",
    3: "Which unshipped orders are worth most? Joins customer, orders and lineitem.",
    18: "Which customers placed very large orders? A sum for every order, joined back.",
}
SHOWN_ROWS = 5
SHOWN_COLUMNS = 5


@dataclass(frozen=True, slots=True)
class Timed:
    """A result and how long it took."""

    table: pa.Table
    seconds: float


def main() -> int:
    """Run the demo; 1 when an answer of nearly is not Spark's."""
    parser = argparse.ArgumentParser(prog="run demo", description=__doc__)
    parser.add_argument("--small", action="store_true", help="a tenth of the data (scale factor 0.1 instead of 1)")
    scale = "0.1" if parser.parse_args().small else "1"

    console = Console(highlight=False)
    console.print(f"[bold]nearly[/]: exact answers on Spark. TPC-H at scale factor {scale}, {CORES} cores.\n")
    tables = ensure_tables(scale)
    with console.status("starting Spark ..."):
        spark = start_spark("nearly-demo")
        engines = {"nearly": nearly_exact(spark, tables, None), "Spark SQL": spark_sql(spark, tables)}
    console.print("[dim]Each engine answers each query twice; the second time counts, so neither pays for its start.[/]\n")
    wrong = sum(not compare(console, number, query(number, scale), engines) for number in QUESTIONS)
    console.print(
        "Inside Spark's tasks nearly computes with a vectorised engine (DuckDB); Spark does the rest.\n"
        "What that engine would not answer exactly as Spark does, Spark answers itself.\n"
        "[dim]More: ./run bench exact --sf 1 (all 22 queries, with DuckDB alone as well), and README.md.[/]"
    )
    spark.stop()
    return 1 if wrong else 0


def compare(console: Console, number: int, text: str, engines: dict[str, Engine]) -> bool:
    """Answer one query with both engines, show the rows and the times; whether the answers are the same."""
    console.print(f"[bold]Q{number}[/] {QUESTIONS[number]}")
    results: dict[str, Timed] = {}
    for name, engine in [*engines.items(), *engines.items()]:
        with console.status(f"{name} answers Q{number} ..."):
            results[name] = timed(engine, text)
    ours, theirs = results["nearly"], results["Spark SQL"]
    console.print(preview(ours.table))
    problem = difference(theirs.table, ours.table, text)
    verdict = f"[bold red]DIFFERENT: {problem}[/]" if problem else "[green]the same rows and types[/]"
    console.print(
        f"  nearly [bold]{ours.seconds:.2f} s[/], Spark SQL {theirs.seconds:.2f} s "
        f"({theirs.seconds / ours.seconds:.1f} times as long), {verdict}\n"
    )
    return problem is None


def timed(engine: Engine, text: str) -> Timed:
    start = time.perf_counter()
    table = engine(text)
    return Timed(table, time.perf_counter() - start)


def preview(table: pa.Table) -> Table:
    """The first rows and columns, small enough for a terminal."""
    names = table.column_names[:SHOWN_COLUMNS]
    more = f"{table.num_rows} rows, {table.num_columns} columns"
    shown = Table(*names, caption=more, caption_justify="left", box=None, header_style="dim", caption_style="dim")
    for row in table.slice(0, SHOWN_ROWS).select(names).to_pylist():
        shown.add_row(*(str(value) for value in row.values()))
    return shown


if __name__ == "__main__":
    sys.exit(main())
