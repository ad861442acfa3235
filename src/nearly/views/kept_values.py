"""The single values inside a view, as of scalar subqueries: kept beside its rows, in the versions that these are of.

Law: what is kept of a value is the row that its plan has over the tables of the view's state. A value of which nothing is kept is
computed from all rows again, and then kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nearly.engine.deltas.net_change import NetChange
from nearly.engine.engine import Engine
from nearly.engine.native.failures import NativeFailure
from nearly.engine.storage.layouts import Table
from nearly.errors import Unsupported
from nearly.plan.canonical import fingerprint
from nearly.plan.expressions import Literal
from nearly.plan.nodes import GroupBy, Plan, Values
from nearly.plan.stored_form import restored, stored
from nearly.plan.types import TIMESTAMP, DataType, to_arrow
from nearly.rewrite.delta.with_partials import over_stored, values_of

Notes = Mapping[str, Any]
"""The rows of values, as JSON can hold them, by what their plans compute."""


def known_values(plan: Plan, notes: Notes) -> dict[Plan, Plan]:
    """Where the old rows of the values inside a plan are: in the notes, as far as these have them."""
    found: dict[Plan, Plan] = {}
    for value in values_of(plan):
        row = restored(notes.get(fingerprint(value)))
        if row is not None and [each.type for each in row] == [column.type for column in value.columns]:
            found[value] = Values(value.columns, (row,))
    return found


def values_now(engine: Engine, plan: Plan, tables: Iterable[Table], stored: Mapping[Plan, Plan]) -> Notes:
    """What is to be kept of a plan's values over some tables, of which some hold the rows of parts of it."""
    given = list(tables)
    with engine.reading(given):
        return {name: row for value in values_of(plan) for name, row in _computed(engine, value, given, stored).items()}


def _computed(engine: Engine, value: GroupBy, tables: Sequence[Table], stored: Mapping[Plan, Plan]) -> Notes:
    """A value from all rows; what the native kernel does not take is not kept."""
    try:
        return noted(value, engine.at(tables).native.run_here(over_stored(value, stored)))
    except (NativeFailure, Unsupported):
        engine.life.refuse_over()
        return {}


def values_moved(engine: Engine, plan: Plan, change: NetChange, after: Mapping[str, Table], notes: Notes) -> Notes:
    """What is to be kept of a plan's values when its tables have moved, from what was kept and how they changed."""
    known, found, tables = known_values(plan, notes), dict[str, Any](), list(after.values())
    with engine.reading(tables):
        for value in values_of(plan):
            rows = change.parts.get(value)
            if value in known and rows is not None:
                came = rows.filter(pc.greater(rows.column(rows.num_columns - 1), 0))
                found |= noted(value, came) if came.num_rows else {fingerprint(value): notes[fingerprint(value)]}
            else:
                found |= _computed(engine, value, tables, {})
    return found


def noted(value: GroupBy, rows: pa.Table) -> dict[str, Any]:
    """What is to be kept of a value whose row was computed; none of one that has a time for which Python has no name."""
    if not rows.num_rows:
        return {}
    try:
        row = tuple(_literal(column.type, rows.column(place)[0]) for place, column in enumerate(value.columns))
    except (OverflowError, ValueError):
        return {}
    return {fingerprint(value): stored(row)}


def _literal(type_: DataType, value: pa.Scalar) -> Literal:
    """Moments are told by the clock of UTC: in some zone the last ones of year 9999 are in year 10000."""
    return Literal(type_, (value.cast(to_arrow(TIMESTAMP)) if type_ == TIMESTAMP else value).as_py())
