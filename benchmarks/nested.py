"""Nested queries batch by batch: time per batch of equal size, beside a classical delta that recomputes the outer block."""

from __future__ import annotations

import argparse
import atexit
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence

import nearly
from benchmarks.agreement import difference
from benchmarks.engines import start_spark
from benchmarks.options import parsed
from benchmarks.report import Record, print_report, write_json
from benchmarks.synthetic import SBI, ensure_synthetic
from benchmarks.tpch.data import DEFAULT_DIRECTORY, PARTS, ensure_tables
from benchmarks.tpch.queries import query
from nearly.engine.stream.task import Pace
from nearly.engine.stream.units import SMALL_UNITS
from nearly.progressive.ranges import SLACK
from nearly.progressive.run import Request, Run

NUMBERS = (11, 17, 18, 20, 22)
TINY = {"sf": "0.01", "batches": 2}
COLUMNS = (
    "query",
    "batches",
    "first quarter s",
    "last quarter s",
    "last/first",
    "kept",
    "recomputed %",
    "recoveries",
    "baseline",
    "equal",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when a final answer is not the exact one."""
    options = parse(arguments)
    tables = ensure_tables(options.sf, options.data) | ensure_synthetic(options.sf)
    spark = start_spark("nearly-bench-nested")
    catalog = tempfile.mkdtemp(prefix="nearly-bench-")
    atexit.register(shutil.rmtree, catalog, ignore_errors=True)
    with nearly.connect(spark, path=catalog) as db:
        for name, path in tables.items():
            db.register(name, str(path))
        db.sql("select count(*) from lineitem").run()
        rows = [measure(name, text, db, options.batches) for name, text in texts(options.sf)]
    spark.stop()
    ratios = [float(row["last/first"]) for row in rows if isinstance(row["last/first"], float)]
    baselines = [float(row["baseline"]) for row in rows if isinstance(row["baseline"], float)]
    summary: Record = {
        "last_over_first": max(ratios, default=None),
        "recomputed_fraction": max(
            (float(row["recomputed %"]) / 100 for row in rows if isinstance(row["recomputed %"], float)), default=0.0
        ),
        "baseline_last_over_first": max(baselines, default=None),
    }
    print_report(COLUMNS, rows, summary)
    if options.json:
        write_json(options.json, {"benchmark": "nested", "sf": options.sf, "batches": options.batches}, summary, rows)
    return 0 if all(row["equal"] for row in rows) else 1


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run bench nested", description=__doc__)
    parser.add_argument("--sf", choices=sorted(PARTS, key=float), default="1", help="scale factor (default 1)")
    parser.add_argument("--batches", type=int, default=16, help="batches of about equal rows, after a small one (default 16)")
    return parsed(parser, arguments, DEFAULT_DIRECTORY, TINY)


def texts(scale: str) -> list[tuple[str, str]]:
    return [*((f"q{number}", query(number, scale)) for number in NUMBERS), ("sbi", SBI)]


def measure(name: str, text: str, db: nearly.Session, batches: int) -> Record:
    """One query with variation ranges, and once more with ranges so wide that every row waits until the end."""
    print(name, file=sys.stderr, flush=True)
    exact = db.sql(text).exact().table
    answers = _answers(db, text, batches, SLACK)
    waiting = _answers(db, text, batches, float("inf"))
    last = answers[-1].stats
    found = [difference(exact, run[-1].table, text) for run in (answers, waiting)]
    first, final = _quarters(answers)
    base_first, base_final = _quarters(waiting)
    return {
        "query": name, "batches": len(answers), "first quarter s": first, "last quarter s": final,
        "last/first": final / first if first and final else None, "kept": last.get("kept"),
        "recomputed %": 100 * last.get("recomputed", 0) / max(last.get("rows_read", 1), 1) if "rows_read" in last else None,
        "recoveries": last.get("recoveries"), "baseline": base_final / base_first if base_first and base_final else None,
        "equal": not any(found),
    }  # fmt: skip


def _answers(db: nearly.Session, text: str, batches: int, slack: float) -> list[nearly.Answer]:
    prepared = db._engine.prepare(text)
    plain = Run(db._engine, prepared, Request())
    cut = plain.cut()
    sizes = () if cut is None else _sizes([unit.rows for unit in plain.units(cut).order], batches)
    return list(Run(db._engine, prepared, Request(pace=Pace(sizes=sizes), slack=slack)).answers())


def _sizes(rows: Sequence[int], batches: int) -> tuple[int, ...]:
    """Units of each batch: the small ones first, then always so many that they have about the same number of rows."""
    sizes, taken, left = [SMALL_UNITS], 0, sum(rows[SMALL_UNITS:])
    start = SMALL_UNITS
    for end in range(SMALL_UNITS + 1, len(rows) + 1):
        taken += rows[end - 1]
        if taken * batches >= 0.9 * left:
            sizes.append(end - start)
            start, taken = end, 0
    return (*sizes, len(rows) - start) if start < len(rows) else tuple(sizes)


def _quarters(answers: Sequence[nearly.Answer]) -> tuple[float | None, float | None]:
    """Median seconds of a batch, reading and answering, in the first and in the last quarter; the small first batch is left out."""
    seconds = [answer.stats["batch_seconds"] + answer.stats["answer_seconds"] for answer in answers[1:] if not answer.exact]
    quarter = max(1, len(seconds) // 4)
    if len(seconds) < 4:
        return None, None
    return statistics.median(seconds[:quarter]), statistics.median(seconds[-quarter:])


if __name__ == "__main__":
    sys.exit(main())
