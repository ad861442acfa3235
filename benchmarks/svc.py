"""Answers of stale views by cleaning a sample: times beside refreshing, errors beside stale answers, and whether intervals hold.

The experiments of Stale View Cleaning (VLDB 2015) over TPC-H with skewed values, changed by new orders and new values, and over a
log of visits. Every estimate is compared with the answer of the view after it was refreshed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.report import Record, print_summary, print_table, write_json
from benchmarks.stale_views import complex_views, coverage, cube, join_view, log_views
from benchmarks.tpch.data import DEFAULT_DIRECTORY, PARTS, ensure_tables

TINY = {"sf": "0.01", "instances": 1, "queries": 2, "samples": 2, "rows": 3000, "log": 20_000, "updates": (0.1,)}
COLUMNS = (
    "what", "seconds", "of refresh", "refresh / clean", "stale %", "aqp %", "corr %", "auto %", "auto / best", "groups",
    "stale max %", "auto max %", "10 %", "100 %", "1000 %", "held %", "withheld %", "width / error",
    "rows/s", "rows/s beside cleaning",
)  # fmt: skip
PARTS_OF = ("join", "cube", "complex", "outliers", "log", "background", "coverage", "break-even")

Part = tuple[list[Record], Record]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when intervals hold too seldom."""
    options = parse(arguments)
    directory = Path(tempfile.mkdtemp(prefix="nearly-bench-svc-", dir=options.work))
    rows: list[Record] = []
    summary: dict[str, float] = {}
    try:
        source = ensure_tables(options.sf, options.data)
        for name, part in _parts(options, source, directory).items():
            if name in options.parts:
                found, figures = part()
                rows += found
                summary |= figures  # type: ignore[arg-type]
                print(f"{name} done", file=sys.stderr, flush=True)
                shutil.rmtree(directory / name, ignore_errors=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print_table([column for column in COLUMNS if any(column in row for row in rows)], rows)
    print()
    print_summary(summary)
    if options.json:
        write_json(options.json, {"benchmark": "svc", "sf": options.sf, "samples": options.samples}, summary, rows)
    return 1 if summary.get("coverage_lowest", 1.0) < 0.9 and not options.tiny else 0


def _parts(options: argparse.Namespace, source: dict[str, Path], directory: Path) -> dict[str, Callable[[], Part]]:
    return {
        "join": lambda: join_view.run(source, directory / "join", options.instances, options.updates),
        "cube": lambda: cube.run(source, directory / "cube", 0.1),
        "complex": lambda: complex_views.run(source, directory / "complex", options.queries, 0.1),
        "outliers": lambda: complex_views.outliers(source, directory / "outliers", options.queries, 0.1),
        "log": lambda: log_views.run(directory / "log", options.log, options.queries),
        "background": lambda: log_views.background(directory / "background", options.log, 3),
        "coverage": lambda: coverage.run(directory / "coverage", options.rows, options.samples),
        "break-even": lambda: coverage.break_even(options.rows, options.samples),
    }


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run bench svc", description=__doc__)
    parser.add_argument("--sf", choices=sorted(PARTS, key=float), default="1", help="scale factor of TPC-H (default 1)")
    parser.add_argument("--instances", type=int, default=20, help="instances of each query on the join view (default 20)")
    parser.add_argument("--queries", type=int, default=20, help="questions to each complex view (default 20)")
    parser.add_argument("--samples", type=int, default=2_000, help="samples of each population (default 2,000)")
    parser.add_argument("--rows", type=int, default=5_000, help="rows of each population (default 5,000)")
    parser.add_argument("--log", type=int, default=2_000_000, help="visits in the log (default 2 million)")
    parser.add_argument("--updates", type=_shares, default=(0.025, 0.1, 0.2), help="shares that change (default 0.025,0.1,0.2)")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS_OF), help=f"of {','.join(PARTS_OF)}")
    parser.add_argument("--tiny", action="store_true", help="hardly any data, to see that all works")
    parser.add_argument("--data", type=Path, default=DEFAULT_DIRECTORY, help="where the tables are, or are generated")
    parser.add_argument("--work", type=Path, help="where to write tables meanwhile (default: the system's temporary directory)")
    parser.add_argument("--json", type=Path, help="also write a report to this file")
    options = parser.parse_args(arguments)
    if options.tiny:
        vars(options).update(TINY)
    return options


def _shares(text: str) -> tuple[float, ...]:
    return tuple(float(each) for each in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
