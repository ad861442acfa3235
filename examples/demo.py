"""The main job in one minute: TPC-H queries whose answers tighten while you watch, and end as Spark SQL's."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from rich.console import Console

import nearly
from benchmarks.agreement import difference
from benchmarks.engines import CORES, Engine, spark_sql, start_spark
from benchmarks.tpch.data import ROOT, ensure_tables
from benchmarks.tpch.queries import query
from nearly.display.show import show

QUESTIONS = {
    1: "How much was billed, shipped and returned? One pass over all of lineitem.",
    5: "What did suppliers sell to customers of their own country? Joins six tables.",
    17: "What would be lost without small orders? Nested: each order is compared with its part's average.",
}
PARTS = 64
"""Files of a large table: as many places to read first."""
GOOD_ERROR = 0.01


@dataclass(slots=True)
class Stages:
    """Seconds until the first answer, until the error is at most `GOOD_ERROR` by the answer's own bounds, and until the end."""

    first: float | None = None
    good: float | None = None
    end: float = 0.0

    def watch(self, answers: Iterator[nearly.Answer]) -> Iterator[nearly.Answer]:
        """The same answers, timed as they pass; what is shown of them in between counts too."""
        started = time.perf_counter()
        for answer in answers:
            self.end = time.perf_counter() - started
            self.first = self.end if self.first is None else self.first
            if self.good is None and (answer.exact or answer.stats.get("anytime_error", 1.0) <= GOOD_ERROR):
                self.good = self.end
            yield answer

    def sooner_than(self, seconds: float) -> str:
        """How many times sooner each stage came than something that took so long."""
        ratios = [f"{seconds / each:.1f}" if each else "-" for each in (self.first, self.good, self.end)]
        return " / ".join(ratios)


def main() -> int:
    """Run the demo; 1 when an answer of nearly is not Spark's."""
    parser = argparse.ArgumentParser(prog="run demo", description=__doc__)
    parser.add_argument("--small", action="store_true", help="a tenth of the data (scale factor 0.1 instead of 1)")
    scale = "0.1" if parser.parse_args().small else "1"

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]nearly[/]: answers early, then exact, on Spark. TPC-H at scale factor {scale}, {CORES} cores.\n")
    tables = ensure_tables(scale, ROOT / "data" / "demo", PARTS)
    catalog = tempfile.mkdtemp(prefix="nearly-demo-")
    with console.status("starting Spark ..."):
        spark = start_spark("nearly-demo")
        db = nearly.connect(spark, path=catalog, eager=True)
        for name, path in tables.items():
            db.register(name, str(path))
        spark_answers = spark_sql(spark, tables)
    console.print("[dim]Both engines answer each query twice; the second time counts, so neither pays for its start.[/]\n")
    try:
        results = {number: compare(console, number, query(number, scale), db, spark_answers) for number in QUESTIONS}
    finally:
        db.close()
        spark.stop()
        shutil.rmtree(catalog, ignore_errors=True)
    sooner = ", ".join(f"Q{number} {result}" for number, result in results.items() if result is not None)
    console.print(
        "Inside Spark's tasks nearly computes with a vectorised engine (DuckDB); Spark does the rest.\n"
        '[dim]Your own data: nearly sql "select ..." --data DIR. More: ./run bench, and README.md.[/]\n'
        f"[bold]Times sooner than Spark SQL (first answer / 1 % error / exact): {sooner}[/]"
    )
    return 1 if None in results.values() else 0


def compare(console: Console, number: int, text: str, db: nearly.Session, spark_answers: Engine) -> str | None:
    """Watch one query converge, compare its end with Spark SQL's; how much sooner it was, or None when the answers differ."""
    console.print(f"[bold]Q{number}[/] {QUESTIONS[number]}")
    with console.status(f"Spark SQL answers Q{number} twice ..."):
        spark_answers(text)
        expected, seconds = timed(spark_answers, text)
    with console.status("nearly warms up ..."):
        db.sql(text).run()
    stages = Stages()
    live = db.sql(text)
    found = show(stages.watch(live.answers()), live.stop).answer
    problem = "stopped" if found is None or not found.exact else difference(expected, found.table, text)
    verdict = f"[bold red]DIFFERENT: {problem}[/]" if problem else "[green]the same rows and types[/]"
    good = "-" if stages.good is None else f"{stages.good:.2f} s"
    console.print(
        f"  nearly: first answer [bold]{stages.first or 0:.2f} s[/], 1 % error {good}, exact [bold]{stages.end:.2f} s[/]; "
        f"Spark SQL {seconds:.2f} s; {verdict}\n"
    )
    return None if problem else stages.sooner_than(seconds)


def timed(engine: Engine, text: str) -> tuple[pa.Table, float]:
    start = time.perf_counter()
    table = engine(text)
    return table, time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
