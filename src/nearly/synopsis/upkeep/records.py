"""Rows that streams bring: JSON records as typed rows, which of them are inserts, deletes or updates, and which cannot be used.

Records are read all at once when they are good, and one by one only in batches that hold a bad one.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from nearly.errors import NearlyError
from nearly.plan import types
from nearly.plan.types import to_arrow
from nearly.synopsis.structure.rows import Mask
from nearly.synopsis.structure.schema import Schema
from nearly.synopsis.structure.state import RowChange
from nearly.synopsis.upkeep.intake import Intake

INSERT, DELETE, UPDATE = "insert", "delete", "update"
OLD = "old_"
"""Prefix of the columns that hold a row as it was before an update."""
MOST_SHOWN = 1000
"""Of a batch in which many records are bad, so many are written down; all are counted."""
LONGEST_SHOWN = 2000

Poison = list[dict[str, Any]]
"""Records that cannot be used, each with the reason."""


@dataclass(slots=True)
class SortedRecords:
    """Changes of a batch, inserts before deletes, and what was put aside."""

    changes: list[RowChange] = field(default_factory=list)
    poison: Poison = field(default_factory=list)

    def put_aside(self, table: pa.Table, reason: str) -> None:
        self.poison += [{"reason": reason, "record": record} for record in table.slice(0, MOST_SHOWN).to_pylist()]
        self.poison += [{"reason": reason, "record": None}] * max(0, table.num_rows - MOST_SHOWN)


def sorted_rows(intake: Intake, table: pa.Table, op: str | None) -> SortedRecords:
    """The changes in a table whose column `op` says what each row is; without that column all rows are inserts."""
    found = SortedRecords()
    if op is None or op not in table.column_names:
        _add(intake, found, True, table)
        return found
    kinds = pc.utf8_lower(table.column(op).cast(pa.string()))
    unknown = pc.invert(pc.fill_null(pc.is_in(kinds, value_set=pa.array([INSERT, DELETE, UPDATE])), False))
    found.put_aside(table.filter(unknown), f"the column {op!r} must be insert, delete or update")
    _add(intake, found, True, table.filter(pc.is_in(kinds, value_set=pa.array([INSERT, UPDATE]))))
    _add(intake, found, False, table.filter(pc.equal(kinds, DELETE)))
    _add(intake, found, False, _before(table.filter(pc.equal(kinds, UPDATE))))
    return found


def _before(updated: pa.Table) -> pa.Table:
    """The rows of updates as they were: columns `old_x` under the name x, others unchanged."""
    names = set(updated.column_names)
    kept = [name for name in updated.column_names if not name.startswith(OLD)]
    return pa.table({name: updated.column(OLD + name if OLD + name in names else name) for name in kept})


def _add(intake: Intake, found: SortedRecords, insert: bool, table: pa.Table) -> None:
    """The rows that can be inserted or deleted as one more change; the others are put aside."""
    if not table.num_rows:
        return
    left = table
    try:
        left = intake.table(table)
        bad = _not_finite(left, intake.schema)
        left = _without(found, left, bad, "a value is NaN or infinite")
        if left.num_rows and not insert:
            left = _without(found, left, intake.strange(left), "there is no such row to delete")
        if left.num_rows:
            found.changes.append(intake.change(insert, left))
    except NearlyError as trouble:
        found.put_aside(left, str(trouble))


def _without(found: SortedRecords, table: pa.Table, bad: Mask, reason: str) -> pa.Table:
    if not bad.any():
        return table
    found.put_aside(table.filter(pa.array(bad)), reason)
    return table.filter(pa.array(~bad))


def _not_finite(table: pa.Table, schema: Schema) -> Mask:
    """Which rows have a measure that is NaN or infinite, or a coordinate that is infinite."""
    bad = np.zeros(table.num_rows, bool)
    for name in (*schema.names, *schema.measured):
        column = table.column(name)
        if pa.types.is_floating(column.type):
            numbers = np.asarray(pc.fill_null(column, 0.0))
            bad |= ~np.isfinite(numbers) if name in schema.measured else np.isinf(numbers)
    return bad


def parsed(schema: Schema, values: Sequence[bytes | None]) -> tuple[pa.Table, Poison]:
    """The rows of good JSON records, in order, and the bad ones with the reason.

    Key columns that are nothing else take the type that JSON gives them.
    """
    wanted = pa.schema([(name, to_arrow(type_)) for name, type_ in schema.types.items()])
    try:
        options = pa_json.ParseOptions(explicit_schema=wanted, newlines_in_values=False, unexpected_field_behavior="infer")
        lines = b"\n".join(value if value is not None else b"?" for value in values)
        block = pa_json.ReadOptions(block_size=max(1 << 20, len(lines) + 1))
        table = pa_json.read_json(pa.py_buffer(lines), read_options=block, parse_options=options)
        if table.num_rows == len(values) and set(table.column_names) == set(schema.columns) and not _may_lack(table):
            return table, []
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    return _one_by_one(schema.columns, values, wanted)


def _may_lack(table: pa.Table) -> bool:
    """Whether some record may lack a column: then it is read as null, and only the record itself can tell."""
    return any(column.null_count for column in table.columns)


def _one_by_one(names: Sequence[str], values: Sequence[bytes | None], wanted: pa.Schema) -> tuple[pa.Table, Poison]:
    good: list[dict[str, Any]] = []
    poison: Poison = []
    for value in values:
        try:
            good.append(_checked(json.loads(value if value is not None else b""), names, wanted))
        except (ValueError, TypeError, pa.ArrowInvalid, pa.ArrowTypeError) as trouble:
            shown = (value or b"").decode("utf-8", "replace")[:LONGEST_SHOWN]
            poison.append({"reason": str(trouble), "record": shown})
    kinds = {each.name: each.type for each in wanted}
    return pa.table({name: pa.array([record[name] for record in good], kinds.get(name)) for name in names}), poison


def _checked(record: Any, names: Sequence[str], wanted: pa.Schema) -> dict[str, Any]:
    """The record, when it has exactly the columns wanted, of the right types."""
    if not isinstance(record, dict):
        raise TypeError("not a JSON object")
    if extra := set(record) - set(names):
        raise ValueError(f"unknown column {min(extra)!r}; known are {', '.join(names)}")
    if missing := set(names) - set(record):
        raise ValueError(f"column {min(missing)!r} is missing")
    return record | {each.name: _typed(record[each.name], each) for each in wanted}


def _typed(value: Any, column: pa.Field) -> Any:
    if value is None:
        return None
    if isinstance(value, bool) != pa.types.is_boolean(column.type):
        raise TypeError(f"column {column.name!r} must be {types.from_arrow(column.type)}, not {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"column {column.name!r} is {value}")
    if pa.types.is_timestamp(column.type) and isinstance(value, str):
        moment = dt.datetime.fromisoformat(value)
        return moment if moment.tzinfo or not column.type.tz else moment.replace(tzinfo=dt.UTC)
    if pa.types.is_date(column.type) and isinstance(value, str):
        return dt.date.fromisoformat(value)
    if isinstance(value, str) != pa.types.is_string(column.type):
        raise TypeError(f"column {column.name!r} must be {types.from_arrow(column.type)}, not {value!r}")
    return pa.array([value], column.type)[0].as_py()
