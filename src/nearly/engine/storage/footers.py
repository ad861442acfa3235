"""Parquet footers: all that is known about a file without reading its rows."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nearly.engine.storage.blocks import ColumnStatistics, RowGroup
from nearly.engine.storage.parquet_types import column_types, leaf_counts
from nearly.errors import EngineError, SchemaError
from nearly.plan import types
from nearly.plan.schema import SchemaColumn
from nearly.plan.types import DataType

MAGIC = b"PAR1"
TAIL = 8
"""Bytes after the footer: its length and the magic word."""
READERS = 16
"""Footers read at a time: the work is waiting for storage, not computing."""
_TIMES = (types.DATE, types.TIMESTAMP, types.TIMESTAMP_NTZ)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECONDS = {"milliseconds": 1_000, "microseconds": 1}
_COMPARABLE = (*types.INTEGERS, *types.FRACTIONS, *types.DATETIMES, types.STRING, types.BOOLEAN)


@dataclass(frozen=True, slots=True)
class Footer:
    """One file: its size and time of change, a checksum of the footer, its columns and row groups."""

    path: str
    bytes: int
    modified_ns: int
    rows: int
    checksum: str
    columns: tuple[SchemaColumn, ...]
    row_groups: tuple[RowGroup, ...]


def read_footers(paths: Sequence[str]) -> list[Footer]:
    """The footers of all files, read side by side; a file that cannot be read is an `EngineError` that names it."""
    with ThreadPoolExecutor(max_workers=READERS) as pool:
        return list(pool.map(read_footer, paths))


def read_footer(path: str) -> Footer:
    """The footer of one file."""
    raw, status = read_footer_bytes(path)
    try:
        metadata = pq.read_metadata(pa.BufferReader(MAGIC + raw + len(raw).to_bytes(4, "little") + MAGIC))
        arrow = metadata.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        raise EngineError(f"the Parquet footer of {path} is damaged: {error}; write the file again") from error
    _refuse_odd_names(arrow.names, path)
    leaves = _first_leaves(arrow)
    kinds = column_types(metadata, arrow, path)
    row_groups = _row_groups(metadata, path, arrow.names, kinds, leaves)
    columns = tuple(
        SchemaColumn(name, kind, _nullable(metadata, row_groups, name, leaf))
        for name, kind, leaf in zip(arrow.names, kinds, leaves, strict=True)
    )
    return Footer(path, status.st_size, status.st_mtime_ns, metadata.num_rows, checksum_of(raw), columns, row_groups)


def checksum_of(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def read_footer_bytes(path: str) -> tuple[bytes, os.stat_result]:
    """The bytes of the footer and the state of the file they were read from; nothing else of the file is read."""
    try:
        with Path(path).open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_size == 0:
                raise EngineError(f"{path} is empty (0 bytes), not a Parquet file; write it again or remove it")
            file.seek(max(0, status.st_size - TAIL))
            tail = file.read(TAIL)
            length = int.from_bytes(tail[:4], "little")
            if len(tail) < TAIL or tail[4:] != MAGIC or length + TAIL + len(MAGIC) > status.st_size:
                raise EngineError(f"{path} is not a whole Parquet file: it does not end with a footer; write it again")
            file.seek(status.st_size - TAIL - length)
            return file.read(length), status
    except OSError as error:
        raise EngineError(f"cannot read {path}: {error.strerror or error}") from error


def _refuse_odd_names(names: Sequence[str], path: str) -> None:
    """Queries need columns to read, and names to tell them apart by."""
    if not names:
        raise SchemaError(f"{path} has no columns, so there is nothing to ask of it")
    seen: set[str] = set()
    for name in names:
        if not name.strip():
            raise SchemaError(f"{path} has a column without a name ({name!r}), which SQL cannot name; rename it")
        if name.lower() in seen:
            raise SchemaError(f"{path} has two columns named {name!r} (case does not count); rename one of them")
        seen.add(name.lower())


def _first_leaves(arrow: pa.Schema) -> tuple[int | None, ...]:
    """The Parquet column of each flat field; None for nested ones, whose statistics say nothing of the whole value."""
    found: list[int | None] = []
    position = 0
    for field, leaves in zip(arrow, leaf_counts(arrow), strict=True):
        found.append(None if pa.types.is_nested(field.type) else position)
        position += leaves
    return tuple(found)


def _row_groups(
    metadata: pq.FileMetaData, path: str, names: Sequence[str], kinds: Sequence[DataType], leaves: Sequence[int | None]
) -> tuple[RowGroup, ...]:
    found, first_row = [], 0
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        chunks = [group.column(i) for i in range(group.num_columns)]
        statistics = tuple(
            _statistics(name, kind, None if leaf is None else chunks[leaf])
            for name, kind, leaf in zip(names, kinds, leaves, strict=True)
        )
        size = sum(chunk.total_compressed_size for chunk in chunks)
        found.append(RowGroup(path, index, first_row, group.num_rows, size, metadata.num_rows, statistics))
        first_row += group.num_rows
    return tuple(found)


def _nullable(metadata: pq.FileMetaData, row_groups: Sequence[RowGroup], name: str, leaf: int | None) -> bool:
    if leaf is None:
        return True
    if metadata.schema.column(leaf).max_definition_level == 0:
        return False
    found = (each.statistics_of(name) for each in row_groups)
    return any(each is None or each.nulls != 0 for each in found)


def _statistics(name: str, kind: DataType, chunk: Any) -> ColumnStatistics:
    found = chunk.statistics if chunk is not None and chunk.is_stats_set else None
    if found is None:
        return ColumnStatistics(name, None, None, None)
    nulls = found.null_count if found.has_null_count else None
    low, high = _ends(found, kind) if found.has_min_max else (None, None)
    if kind in types.FRACTIONS:
        return ColumnStatistics(name, low, None, nulls, high)
    return ColumnStatistics(name, low, high, nulls)


def _ends(found: Any, kind: DataType) -> tuple[Any, Any]:
    """Both ends as Python values; neither when one is not a value that Python can hold or that compares."""
    if (kind not in _COMPARABLE and not isinstance(kind, types.Decimal)) or found.physical_type == "INT96":
        return None, None
    try:
        made = _time_of(found) if kind in _TIMES else None
        if made is not None:
            return made(found.min_raw), made(found.max_raw)
        ends = _value(found.min, kind), _value(found.max, kind)
    except (OverflowError, ValueError):
        return None, None
    return (None, None) if None in ends else ends


def _time_of(found: Any) -> Callable[[int], Any] | None:
    """How a day or time is made of the number that is stored for it; pyarrow would import pandas to do so."""
    shape = json.loads(found.logical_type.to_json())
    if shape.get("Type") == "Date":
        return lambda days: _EPOCH.date() + dt.timedelta(days=days)
    unit = _MICROSECONDS.get(shape.get("timeUnit"))
    if unit is None or "isAdjustedToUTC" not in shape:
        return None
    epoch = _EPOCH if shape["isAdjustedToUTC"] else _EPOCH.replace(tzinfo=None)
    return lambda count: epoch + dt.timedelta(microseconds=count * unit)


def _value(raw: Any, kind: DataType) -> Any:
    match raw:
        case dt.datetime() if raw.tzinfo is not None:
            return raw.astimezone(dt.UTC)
        case int() if isinstance(kind, types.Decimal):
            return Decimal(raw)
        case float() if math.isnan(raw):
            return None
    return raw
