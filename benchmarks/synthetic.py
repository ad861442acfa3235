"""Tables for queries that TPC-H lacks: sessions for the slow-buffering query, and ten grouping columns for deep ones."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_DIRECTORY = ROOT / "data" / "synthetic"
FILES = 64
SESSIONS = 1_000_000
DEEP_ROWS = 1_000_000
"""Rows per unit of the scale factor."""

SBI = "select avg(play_time) as played from sessions where buffer_time > (select avg(buffer_time) from sessions)"
"""The slow-buffering impact query of iOLAP."""

_TABLES = {
    "sessions": """
        select i as session_id, exp(2.5 + 0.8 * z) as buffer_time, 600 * exp(-0.02 * exp(2.5 + 0.8 * z)) + 60 * u as play_time
        from (select i, (hash(i + 13) % 1000) / 1000.0 as u,
                     sqrt(-2 * ln(1 - (hash(i) % 1000003) / 1000003.0)) * cos(2 * pi() * (hash(i + 7) % 1000003) / 1000003.0) as z
              from range({first}, {last}) t(i))
    """,
    "deep": "select "
    + ", ".join(f"((hash(i) >> {2 * place}) % 4)::int as c{place}" for place in range(10))
    + ", (hash(i + 3) % 1000)::bigint as x from range({first}, {last}) t(i)",
}
_ROWS = {"sessions": SESSIONS, "deep": DEEP_ROWS}


def ensure_synthetic(scale: str, directory: Path = DEFAULT_DIRECTORY) -> dict[str, Path]:
    """The directory of each table, generated first when it is not there."""
    target = directory / f"sf{scale}"
    if not target.exists():
        print(f"generating synthetic tables in {target} (once)", file=sys.stderr, flush=True)
        directory.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".synthetic-", dir=directory))
        for name in _TABLES:
            _generate(name, int(_ROWS[name] * float(scale)), draft / name)
        draft.replace(target) if not target.exists() else shutil.rmtree(draft)
    return {name: target / name for name in _TABLES}


def _generate(name: str, rows: int, directory: Path) -> None:
    directory.mkdir(parents=True)
    with duckdb.connect() as connection:
        for part in range(FILES):
            body = _TABLES[name].format(first=rows * part // FILES, last=rows * (part + 1) // FILES)
            connection.execute(f"copy ({body}) to '{directory}/{part:03}.parquet' (format parquet, row_group_size 32768)")


def deep_query(depth: int) -> str:
    """WAKE's synthetic query: sums and maxima of aggregates, by one column fewer at each level.

    >>> deep_query(1)
    'select sum(v1) as v from (select c0, max(x) as v1 from deep group by c0)'
    """
    if depth == 0:
        return "select sum(x) as v from deep"
    inner, value = "deep", "x"
    for level in range(depth, 0, -1):
        keys = ", ".join(f"c{place}" for place in range(level))
        function = "max" if (depth - level) % 2 == 0 else "sum"
        inner = f"(select {keys}, {function}({value}) as v{level} from {inner} group by {keys})"
        value = f"v{level}"
    return f"select sum({value}) as v from {inner}"
