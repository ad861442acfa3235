"""Hive partition directories: their columns, with the types that Spark infers.

Only forms on which this agrees with Spark for certain are read; any other is `Unsupported`, and Spark can then make the
table.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from nearly.engine.storage.blocks import ColumnStatistics, PartitionValue, RowGroup
from nearly.engine.storage.listing import FoundFile
from nearly.errors import SchemaError, Unsupported
from nearly.plan import types
from nearly.plan.schema import SchemaColumn
from nearly.plan.types import DataType

_SPECIAL = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{}\[\]^]""")
_BYTES = re.compile(r"%[89A-Fa-f][0-9A-Fa-f]")
NULL_NAME = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TYPES = (*types.INTEGERS, types.DOUBLE, types.DATE, types.STRING, types.BOOLEAN, types.NULL)
_UNCERTAIN = re.compile(
    r"\s*[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?|0[xX].*[pP].*)\s*"  # a double to Java
    r"|[0-9T][0-9-]*[ T]?[0-9]*:.*"  # a time or a timestamp in the session's zone
    r"|[+-]?[0-9]{5,}-[0-9]{2}-[0-9]{2}",
    re.DOTALL,
)


def partition_names(files: Sequence[FoundFile]) -> tuple[str, ...]:
    """The partition columns, which must be the same for all files."""
    names = directory_names(files[0])
    for file in files:
        if directory_names(file) != names:
            raise SchemaError(
                f"{files[0].path} has the partition columns {list(names)}, but {file.path} has {list(directory_names(file))}; "
                f"register them apart"
            )
    return names


def partition_columns(files: Sequence[FoundFile]) -> tuple[SchemaColumn, ...]:
    """The partition columns with the common type of their values."""
    names = partition_names(files)
    for file in files:
        if any(_BYTES.search(directory) for directory in file.partition_directories):
            raise Unsupported(
                f"the directory of {file.path} has letters escaped as bytes, each of which Spark takes for a letter; rename it"
            )
    columns = []
    for position, name in enumerate(names):
        raws = {_raw(file.partition_directories[position]) for file in files}
        columns.append(SchemaColumn(name, _common({_infer(raw, name) for raw in raws}), NULL_NAME in raws))
    return tuple(columns)


def partition_values(file: FoundFile, columns: Sequence[SchemaColumn]) -> tuple[PartitionValue, ...]:
    """The values of one file."""
    pairs = zip(columns, file.partition_directories, strict=True)
    return tuple(PartitionValue(column.name, _cast(_raw(directory), column.type)) for column, directory in pairs)


def partition_statistics(values: Sequence[PartitionValue], row_group: RowGroup) -> tuple[ColumnStatistics, ...]:
    """A partition column is constant in a file."""
    return tuple(
        ColumnStatistics(each.column, each.value, each.value, row_group.rows if each.value is None else 0) for each in values
    )


def directory_names(file: FoundFile) -> tuple[str, ...]:
    return tuple(unquote(directory.split("=", 1)[0]) for directory in file.partition_directories)


def _raw(directory: str) -> str:
    return unquote(directory.split("=", 1)[1])


def _infer(raw: str, name: str) -> DataType:
    if raw == NULL_NAME:
        return types.NULL
    if _INTEGER.fullmatch(raw) and abs(int(raw)) < 2**63:
        return types.INT if -(2**31) <= int(raw) < 2**31 else types.LONG
    if _FRACTION.fullmatch(raw):
        return types.DOUBLE
    if _DATE.fullmatch(raw):
        return types.DATE if _is_date(raw) else types.STRING
    if _UNCERTAIN.fullmatch(raw) or any(letter.isdigit() and not letter.isascii() for letter in raw):
        raise Unsupported(
            f"the partition value {name}={raw!r} is neither a plain number, a date nor a plain text; register the "
            f"DataFrame that Spark reads from this directory instead"
        )
    return types.STRING


def _is_date(raw: str) -> bool:
    try:
        dt.date.fromisoformat(raw)
    except ValueError:
        return False
    return True


def _common(found: set[DataType]) -> DataType:
    """Spark's common type: numbers widen unless digits would be lost, else all are strings; nulls take any type."""
    kinds = found - {types.NULL}
    if not kinds:
        return types.NULL
    if len(kinds) == 1:
        return kinds.pop()
    if kinds == {types.INT, types.LONG}:
        return types.LONG
    if kinds == {types.INT, types.DOUBLE}:
        return types.DOUBLE
    return types.STRING


def _cast(raw: str, kind: DataType) -> Any:
    if raw == NULL_NAME:
        return None
    if kind in types.INTEGERS:
        return int(raw)
    if kind == types.DOUBLE:
        return float(raw)
    if isinstance(kind, types.Decimal):
        return Decimal(raw)
    if kind == types.BOOLEAN:
        return raw == "true"
    return dt.date.fromisoformat(raw) if kind == types.DATE else raw


def directory_of(column: SchemaColumn, value: Any) -> str:
    """The directory of files whose rows have this value; `_cast` of its unquoted text is the value again.

    >>> directory_of(SchemaColumn("größe", types.STRING), "50 %")
    'größe=50 %25'
    """
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text in ("", NULL_NAME) or (isinstance(value, float) and not math.isfinite(value)):
        raise Unsupported(f"{value!r} in partition column {column.name!r} cannot be the name of a directory")
    return f"{_escaped(column.name)}={NULL_NAME if value is None else _escaped(text)}"


def _escaped(text: str) -> str:
    """A name as Spark escapes it: only signs that mean something in paths."""
    return re.sub(_SPECIAL, lambda found: f"%{ord(found[0]):02X}", text)


def refuse_partition_type(column: SchemaColumn) -> None:
    """Types whose values both kernels read from the name of a directory in the same way."""
    if column.type not in _TYPES and not isinstance(column.type, types.Decimal):
        raise Unsupported(f"partition column {column.name!r} is {column.type}, which is not read from the names of directories")
