"""Answers as tables for other programs.

Columns that are uncertain in some row are followed by their bounds, `NAME_low` and `NAME_high`; an exact answer has none.
"""

from __future__ import annotations

import base64
import datetime as dt
import itertools
import json
import math
from decimal import Decimal
from typing import Any, BinaryIO

import pyarrow as pa

from nearly.printing.cells import some_uncertain


def with_bounds(table: pa.Table, low: pa.Table, high: pa.Table) -> pa.Table:
    """The values, with bounds beside what is uncertain. A name that is there twice gets a number, because formats need one each."""
    columns, names = [], []
    for place, name in enumerate(table.column_names):
        sides = [side.column(place) for side in (table, low, high)]
        uncertain = some_uncertain(*(side.to_pylist() for side in sides))
        columns += sides if uncertain else sides[:1]
        names += [name, f"{name}_low", f"{name}_high"] if uncertain else [name]
    return pa.Table.from_arrays(columns, names=_distinct(names))


def write_csv(table: pa.Table, stream: BinaryIO) -> None:
    """A header, then the rows in UTF-8; null is empty, text is in quotes, nested values are JSON."""
    import pyarrow.csv  # noqa: PLC0415  it takes long

    columns = [_flat(column) for column in table.columns]
    pyarrow.csv.write_csv(pa.Table.from_arrays(columns, names=table.column_names), stream)


def json_text(value: Any) -> str:
    """A value as JSON. Decimals keep all digits; NaN and the infinities, which JSON lacks, are text."""
    match value:
        case Decimal():
            return f"{value:f}"
        case float() if not math.isfinite(value):
            return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
        case bytes():
            return json.dumps(base64.b64encode(value).decode())
        case dt.datetime() | dt.date() | dt.time():
            return json.dumps(value.isoformat())
        case dt.timedelta():
            return json.dumps(value.total_seconds())
        case list() | tuple():
            return "[" + ", ".join(json_text(each) for each in value) + "]"
        case dict():
            return "{" + ", ".join(f"{json_text(str(key))}: {json_text(each)}" for key, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _distinct(names: list[str]) -> list[str]:
    """The names with numbers after those that repeat one before; a number never makes a name that another column has."""
    found: list[str] = []
    for name in names:
        numbered = (f"{name}_{number}" for number in itertools.count(2))
        found.append(name if name not in found else next(each for each in numbered if each not in found and each not in names))
    return found


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Nested and binary values as JSON text, which CSV can hold."""
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return pa.chunked_array([pa.array([None if each is None else json_text(each) for each in column.to_pylist()], pa.string())])
    return column
