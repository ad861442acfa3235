"""Micro-batches of typed rows: which are inserts, deletes or updates, and which cannot be used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearly.errors import NearlyError, SchemaError
from nearly.synopsis.upkeep.archive import Change

if TYPE_CHECKING:
    from nearly.synopsis.synopsis import Synopsis

INSERT, DELETE, UPDATE = "insert", "delete", "update"
OLD = "old_"
"""Prefix of the columns that hold a row as it was before an update."""
MOST_SHOWN = 1000
"""Of a batch in which many records are bad, so many are written down; all are counted."""


@dataclass(slots=True)
class Sorted:
    """Changes of a batch, inserts before deletes, and what was put aside."""

    changes: list[Change] = field(default_factory=list)
    poison: list[dict[str, Any]] = field(default_factory=list)


def sorted_rows(synopsis: Synopsis, table: pa.Table, op: str | None) -> Sorted:
    """The changes in a table whose column `op` says what each row is; without that column all rows are inserts."""
    found = Sorted()
    if op is None or op not in table.column_names:
        kinds = pa.chunked_array([pa.array([INSERT] * table.num_rows, pa.string())])
    else:
        kinds = pc.utf8_lower(table.column(op).cast(pa.string()))
    unknown = pc.invert(pc.fill_null(pc.is_in(kinds, value_set=pa.array([INSERT, DELETE, UPDATE])), False))
    _put_aside(found, table.filter(unknown), f"the column {op!r} must be insert, delete or update")
    _add(synopsis, found, True, table.filter(pc.is_in(kinds, value_set=pa.array([INSERT, UPDATE]))))
    _add(synopsis, found, False, table.filter(pc.equal(kinds, DELETE)))
    updated = table.filter(pc.equal(kinds, UPDATE))
    if updated.num_rows:
        _add(synopsis, found, False, _before(updated))
    found.changes.sort(key=lambda change: not change.insert)
    return found


def _before(updated: pa.Table) -> pa.Table:
    """The rows of updates as they were: columns `old_x` under the name x, others unchanged."""
    names = set(updated.column_names)
    kept = [name for name in updated.column_names if not name.startswith(OLD)]
    return pa.table({name: updated.column(OLD + name if OLD + name in names else name) for name in kept})


def _add(synopsis: Synopsis, found: Sorted, insert: bool, table: pa.Table) -> None:
    if not table.num_rows:
        return
    try:
        prepared = synopsis.table(table)
    except SchemaError as trouble:
        _put_aside(found, table, str(trouble))
        return
    bad = _not_finite(prepared, synopsis.schema.measure)
    for domain in synopsis.schema.domains:
        column = prepared.column(domain.name)
        if pa.types.is_floating(column.type):
            bad |= np.isinf(np.asarray(pc.fill_null(column, 0.0)))
    if bad.any():
        _put_aside(found, prepared.filter(pa.array(bad)), "a value is NaN or infinite")
        prepared = prepared.filter(pa.array(~bad))
    if not prepared.num_rows:
        return
    if not insert:
        prepared = _present(synopsis, found, prepared)
    try:
        found.changes.append(synopsis.change(insert, prepared))
    except NearlyError as trouble:
        _put_aside(found, prepared, str(trouble))


def _present(synopsis: Synopsis, found: Sorted, table: pa.Table) -> pa.Table:
    """The rows that can be deleted; others are put aside."""
    try:
        strange = synopsis.strange(table)
    except NearlyError as trouble:
        _put_aside(found, table, str(trouble))
        return table.slice(0, 0)
    _put_aside(found, table.filter(pa.array(strange)), "there is no such row to delete")
    return table.filter(pa.array(~strange))


def _not_finite(table: pa.Table, name: str) -> Any:
    column = table.column(name)
    if not pa.types.is_floating(column.type):
        return np.zeros(table.num_rows, bool)
    return ~np.isfinite(np.asarray(pc.fill_null(column, 0.0)))


def _put_aside(found: Sorted, table: pa.Table, reason: str) -> None:
    found.poison += [{"reason": reason, "record": record} for record in table.slice(0, MOST_SHOWN).to_pylist()]
    found.poison += [{"reason": reason, "record": None}] * max(0, table.num_rows - MOST_SHOWN)
