"""Generate TPC-H tables as Parquet once per scale factor: `DIRECTORY/sf<N>/<table>/*.parquet`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_DIRECTORY = ROOT / "data" / "tpch"

LARGE_TABLES = ("lineitem", "orders")
SMALL_TABLES = ("customer", "nation", "part", "partsupp", "region", "supplier")
TABLES = (*LARGE_TABLES, *SMALL_TABLES)

PARTS = {"0.01": 1, "0.1": 4, "1": 16, "5": 32, "10": 64, "30": 128, "100": 256}
"""Files per large table at each scale factor."""
BYTES = 0.45e9
"""Room that a unit of the scale factor takes, with some to spare."""


def ensure_tables(scale: str, directory: Path = DEFAULT_DIRECTORY, parts: int | None = None) -> dict[str, Path]:
    """The directory of every table, generated first when it is not there; a large table in so many files.

    The scale factor's directory appears by one rename, so it is complete whenever it exists.
    """
    target = directory / f"sf{scale}"
    if not target.exists():
        print(f"generating TPC-H at scale factor {scale} in {target} (once)", file=sys.stderr, flush=True)
        directory.mkdir(parents=True, exist_ok=True)
        _require_room(directory, BYTES * float(scale))
        draft = Path(tempfile.mkdtemp(prefix=f".sf{scale}-", dir=directory))
        try:
            _generate(scale, draft, parts or PARTS[scale])
            publish(draft, target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return {table: target / table for table in TABLES}


def _require_room(directory: Path, needed: float) -> None:
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise SystemExit(f"{directory} has {free / 1e9:.1f} GB free, and about {needed / 1e9:.1f} GB are needed")


def _generate(scale: str, directory: Path, large_parts: int) -> None:
    for tables, parts in ((LARGE_TABLES, large_parts), (SMALL_TABLES, 1)):
        subprocess.run(
            [
                _generator(), "parquet", "--quiet", f"--scale-factor={scale}", f"--parts={parts}",
                f"--tables={','.join(tables)}", f"--output-dir={directory}",
            ],
            check=True,
        )  # fmt: skip


def _generator() -> str:
    """The path of `tpchgen-cli`, which is installed beside the running Python."""
    beside = Path(sys.executable).with_name("tpchgen-cli")
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if found is None:
        raise SystemExit("tpchgen-cli is not installed; start this through ./run, or: pip install tpchgen-cli")
    return found


def publish(draft: Path, target: Path) -> None:
    """Move the finished draft into place; another process that was faster wins."""
    draft.chmod(0o755)
    try:
        draft.rename(target)
    except OSError:
        if not target.exists():
            raise
