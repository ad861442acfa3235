"""JSON records as rows of a table, and which of them cannot be used and why.

Records are read all at once when all of them are good and of plain types, else one by one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from nearly.engine.changes.given_rows import arrow_schema
from nearly.engine.changes.streams.stream_rows import DELETE, INSERT, UPSERT, Poison
from nearly.engine.storage.layouts import Table
from nearly.plan.values.domains import EXACT_IN_DOUBLES

OP = "nearly_op"
LONGEST_SHOWN = 2000
_PLAIN = (pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_string, pa.types.is_boolean)
"""Types whose values mean the same to Arrow's reader and to Python's."""


def parsed(
    table: Table,
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    op: str | None = None,
    kinds: Sequence[str] | None = None,
) -> tuple[pa.Table, Poison]:
    """The rows of good records with what each is, in order, and the bad ones with the reason.

    What a record is, `kinds` tell, or its own field `op`; else it is an upsert where the table has a key. One without a value
    deletes the row whose key its key is.
    """
    rows = _at_once(table, values) if op is None or kinds is not None else None
    if rows is None:
        return _one_by_one(table, keys, values, op, kinds)
    known = kinds if kinds is not None else [_usual(table)] * len(values)
    return rows.append_column(OP, pa.array(known, pa.string())), []


def _usual(table: Table) -> str:
    """What a record is when nothing says it."""
    return UPSERT if table.key else INSERT


def _at_once(table: Table, values: Sequence[bytes | None]) -> pa.Table | None:
    """All records as Arrow reads them; None where some record may be bad, or lack a column, which is no null."""
    schema = arrow_schema(table.columns)
    lines = b"\n".join(value if value is not None else b"?" for value in values)
    if not values or lines.count(b"\n") >= len(values) or not all(any(test(each.type) for test in _PLAIN) for each in schema):
        return None
    options = pa_json.ParseOptions(explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="infer")
    block = pa_json.ReadOptions(block_size=max(1 << 20, len(lines) + 1))
    try:
        rows = pa_json.read_json(pa.py_buffer(lines), read_options=block, parse_options=options)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    complete = rows.num_rows == len(values) and set(rows.column_names) == set(schema.names)
    if not complete or any(column.null_count or _rounded(column) for column in rows.columns):
        return None
    return rows.select(schema.names)


def _rounded(column: pa.ChunkedArray) -> bool:
    """Whether a whole number may have been read as a neighbour of its."""
    return pa.types.is_floating(column.type) and not pc.all(pc.less(pc.abs(column), EXACT_IN_DOUBLES)).as_py()


def _one_by_one(
    table: Table, keys: Sequence[bytes | None], values: Sequence[bytes | None], op: str | None, kinds: Sequence[str] | None
) -> tuple[pa.Table, Poison]:
    schema = arrow_schema(table.columns)
    good: list[dict[str, Any]] = []
    found: list[str] = []
    poison: Poison = []
    for place, (key, value) in enumerate(zip(keys, values, strict=True)):
        try:
            record, kind = _record(table, key, value, op, None if kinds is None else kinds[place])
            good.append({field.name: _typed(record[field.name], field) for field in schema})
            found.append(kind)
        except (ValueError, TypeError, KeyError, pa.ArrowException) as trouble:
            shown = (value if value is not None else key or b"").decode("utf-8", "replace")[:LONGEST_SHOWN]
            poison.append({"reason": str(trouble), "record": shown})
    rows = pa.Table.from_pylist(good, schema=schema)
    return rows.append_column(OP, pa.array(found, pa.string())), poison


def _record(table: Table, key: bytes | None, value: bytes | None, op: str | None, known: str | None) -> tuple[dict[str, Any], str]:
    """A record by the table's own spelling of its columns, and what it does."""
    deletes = value is None
    if deletes and known not in (None, DELETE):
        raise ValueError("the record has no value")
    read = json.loads((key if deletes else value) or b"")
    if not isinstance(read, dict):
        if not (deletes and len(table.key) == 1):
            raise TypeError("not a JSON object")
        read = {table.key[0]: read}
    given = {name.lower(): each for name, each in read.items()}
    told = _usual(table) if op is None else str(given.pop(op.lower(), INSERT))
    kind = DELETE if deletes else told if known is None else known
    names = {column.name.lower(): column.name for column in table.columns}
    if extra := given.keys() - names.keys():
        raise ValueError(f"unknown column {min(extra)!r}; known are {', '.join(names.values())}")
    needed = [name.lower() for name in table.key] if kind.lower() == DELETE and table.key else list(names)
    if missing := set(needed) - given.keys():
        raise ValueError(f"column {min(missing)!r} is missing")
    return {name: given.get(lowered) for lowered, name in names.items()}, kind


def _typed(value: Any, field: pa.Field) -> Any:
    """A value of JSON as the column has it; texts become dates, times and decimals, nothing else changes its kind."""
    if value is None:
        return None
    if isinstance(value, str) and not pa.types.is_string(field.type):
        if not (pa.types.is_date(field.type) or pa.types.is_timestamp(field.type) or pa.types.is_decimal(field.type)):
            raise TypeError(f"column {field.name!r} must be {field.type}, not {value!r}")
        if pa.types.is_timestamp(field.type) and field.type.tz is not None and not value.rstrip().endswith(("Z", "z")):
            value = value if "+" in value[10:] or "-" in value[10:] else value + "Z"
        return pa.array([value], pa.string()).cast(field.type)[0].as_py()
    odd = isinstance(value, float) and pa.types.is_integer(field.type) and not value.is_integer()
    if (
        odd
        or isinstance(value, bool) != pa.types.is_boolean(field.type)
        or isinstance(value, str) != pa.types.is_string(field.type)
    ):
        raise TypeError(f"column {field.name!r} must be {field.type}, not {value!r}")
    if pa.types.is_decimal(field.type):
        return pa.array([str(value)], pa.string()).cast(field.type)[0].as_py()
    return pa.array([value], field.type)[0].as_py()
