"""Columns of generated tables: decimals from cents, texts from codes, nulls from shares, and files with small row groups."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Integers = NDArray[np.int64]
MONEY = pa.decimal128(7, 2)
ROW_GROUPS = 64
"""About so many row groups has a large table, more when they would have more than `LARGEST_ROW_GROUP` rows."""
SMALLEST_ROW_GROUP, LARGEST_ROW_GROUP = 250, 60_000


def nulls(random: np.random.Generator, rows: int, share: float) -> NDArray[np.bool_] | None:
    """Which rows are null; None when none are."""
    return random.random(rows) < share if share else None


def integers(values: Integers, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    return pa.array(values.astype(np.int32), mask=missing)


def longs(values: Integers) -> pa.Array:
    return pa.array(values.astype(np.int64))


def money(cents: Integers, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Decimals of two places, without a Python object for each."""
    wide = np.stack([cents, cents >> 63], axis=1)
    valid = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(MONEY, len(cents), [valid, pa.py_buffer(np.ascontiguousarray(wide, dtype=np.int64))])


def texts(codes: Integers, names: Sequence[str | None], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """The name of each code."""
    return pa.array(names, pa.string()).take(pa.array(codes, mask=missing))


def skewed(random: np.random.Generator, rows: int, of: int, power: float = 1.6) -> Integers:
    """Numbers below `of` of which some are much more common than others, the common ones spread over the range."""
    common_first = (of * random.random(rows) ** power).astype(np.int64)
    return np.random.default_rng(of).permutation(of)[common_first]


def write(table: pa.Table, directory: Path, row_groups: int = 1, files: int = 1) -> None:
    """The rows in order, in so many files and about so many row groups."""
    directory.mkdir(parents=True)
    size = int(np.clip(table.num_rows // row_groups, SMALLEST_ROW_GROUP, LARGEST_ROW_GROUP))
    for part in range(files):
        first, last = table.num_rows * part // files, table.num_rows * (part + 1) // files
        pq.write_table(
            table.slice(first, last - first),
            directory / f"part-{part:02}.parquet",
            row_group_size=size,
            store_decimal_as_integer=True,
        )
