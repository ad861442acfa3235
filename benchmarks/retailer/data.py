"""Generate the retailer's tables as Parquet once per scale: `DIRECTORY/scale<N>/<table>/*.parquet`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.retailer.columns import ROW_GROUPS, write
from benchmarks.retailer.dimensions import Size, dimensions
from benchmarks.retailer.facts import Facts
from benchmarks.tpch.data import ROOT, publish

DEFAULT_DIRECTORY = ROOT / "data" / "retail"
SEED = 20
FILE_ROWS = 360_000
"""About so many rows are in one file of a large table."""


def ensure_tables(scale: str, directory: Path = DEFAULT_DIRECTORY) -> dict[str, Path]:
    """The directory of every table, generated first when it is not there.

    The scale's directory appears by one rename, so it is complete whenever it exists.
    """
    target = directory / f"scale{scale}"
    if not target.exists():
        print(f"generating the retailer's tables at scale {scale} in {target} (once)", file=sys.stderr, flush=True)
        directory.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".scale{scale}-", dir=directory))
        try:
            _generate(Size(float(scale)), draft)
            publish(draft, target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return {path.name: path for path in sorted(target.iterdir())}


def _generate(size: Size, directory: Path) -> None:
    for name, table in dimensions(size, SEED).items():
        write(table, directory / name)
    for name, table in Facts(size, SEED).tables():
        write(table, directory / name, ROW_GROUPS, max(1, round(table.num_rows / FILE_ROWS)))
