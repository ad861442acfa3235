"""Micro-batches of a stream: which rows come, which replace others, which go, and which cannot be used and why.

A column may say what each row is: `insert`, `upsert` (or `update`) or `delete`. Of several rows with one key in a batch, the last
one counts. Law: every row of a batch is taken or put aside with a reason; none is lost without a word.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nearly.engine.changes.given_rows import fitted
from nearly.engine.changes.operations import Changer
from nearly.engine.changes.positions import by_content, by_key, pairs
from nearly.engine.storage.layouts import Table
from nearly.errors import SchemaError

INSERT, UPSERT, UPDATE, DELETE = "insert", "upsert", "update", "delete"
KINDS = (INSERT, UPSERT, UPDATE, DELETE)
MOST_SHOWN = 1000
"""Of a batch in which many records are bad, so many are written down; all are counted."""
_AT = "nearly_at"


@dataclass(slots=True)
class SortedRows:
    """A batch in parts: rows to add, to add or replace, and to take out; and what was put aside."""

    inserts: pa.Table
    upserts: pa.Table
    deletes: pa.Table
    poison: list[dict[str, Any]] = field(default_factory=list)


def sorted_rows(changer: Changer, rows: pa.Table, op: str | None) -> SortedRows:
    """The parts of a batch for a table as it is now."""
    table, poison = changer.table, list[dict[str, Any]]()
    kinds = _kinds(rows, op)
    known = pc.fill_null(pc.is_in(kinds, value_set=pa.array(KINDS)), False)
    _put_aside(poison, rows.filter(pc.invert(known)), f"the column {op!r} must be one of {', '.join(KINDS)}")
    rows, kinds = rows.filter(known), kinds.filter(known)
    if op is not None and op in rows.column_names:
        rows = rows.drop_columns([op])
    try:
        rows = fitted(rows, table, table.columns, "following a stream into")
    except SchemaError as trouble:
        _put_aside(poison, rows, str(trouble))
        empty = rows.slice(0, 0)
        return SortedRows(empty, empty, empty, poison)
    if table.key:
        rows, kinds = _last_of_each_key(table, rows, kinds, poison)
    parts = {kind: rows.filter(pc.equal(kinds, kind)) for kind in KINDS}
    upserts = pa.concat_tables([parts[UPSERT], parts[UPDATE]])
    if not table.key and upserts.num_rows:
        _put_aside(poison, upserts, f"table {table.name!r} has no key, so that it is not known which row to replace")
        upserts = upserts.slice(0, 0)
    inserts = _unless_there(changer, parts[INSERT], poison)
    return SortedRows(inserts, upserts, _if_there(changer, parts[DELETE], poison), poison)


def _kinds(rows: pa.Table, op: str | None) -> pa.ChunkedArray:
    if op is None or op not in rows.column_names:
        return pa.chunked_array([pa.array([INSERT] * rows.num_rows, pa.string())])
    return pc.utf8_lower(rows.column(op).cast(pa.string()))


def _last_of_each_key(
    table: Table, rows: pa.Table, kinds: pa.ChunkedArray, poison: list[dict[str, Any]]
) -> tuple[pa.Table, pa.ChunkedArray]:
    """The rows that have a key, the last of those with the same one."""
    keyed = pa.chunked_array([pa.array([True] * rows.num_rows, pa.bool_())])
    for name in table.key:
        keyed = pc.and_(keyed, pc.is_valid(rows[name]))
    _put_aside(poison, rows.filter(pc.invert(keyed)), f"a value of the key ({', '.join(table.key)}) is null")
    rows, kinds = rows.filter(keyed), kinds.filter(keyed)
    numbered = rows.select(list(table.key)).append_column(_AT, pa.array(range(rows.num_rows), pa.int64()))
    last = numbered.group_by(list(table.key)).aggregate([(_AT, "max")])[f"{_AT}_max"]
    places = pc.sort_indices(last)
    chosen = last.take(places)
    return rows.take(chosen), kinds.take(chosen)


def _unless_there(changer: Changer, inserts: pa.Table, poison: list[dict[str, Any]]) -> pa.Table:
    """The rows to add whose key is not there."""
    key = list(changer.table.key)
    if not key or not inserts.num_rows:
        return inserts
    known = _has_keys(changer, inserts.select(key))
    _put_aside(poison, inserts.filter(known), "a row with this key is there already")
    return inserts.filter(pc.invert(known))


def _has_keys(changer: Changer, keys: pa.Table) -> pa.Array:
    """For each key, whether the table has it; what is equal, `by_key` says."""
    found = by_key(changer.engine, changer.table, changer.table.base, keys)
    found = found.group_by(keys.column_names).aggregate([])  # each once, also where the key is no key
    return pc.is_valid(pairs(changer.engine, keys, found).sort_by("new")["old"])


def _if_there(changer: Changer, deletes: pa.Table, poison: list[dict[str, Any]]) -> pa.Table:
    """The rows to take out that are there."""
    if not deletes.num_rows:
        return deletes
    key = list(changer.table.key)
    there = _has_keys(changer, deletes.select(key)) if key else _has_rows(changer, deletes)
    _put_aside(poison, deletes.filter(pc.invert(there)), "there is no such row to delete")
    return deletes.filter(there)


def _has_rows(changer: Changer, rows: pa.Table) -> pa.Array:
    """For each row of a bag, whether the table has one for it."""
    found = by_content(changer.engine, changer.table, changer.table.base, rows).select(rows.column_names)
    left = Counter(tuple(map(repr, row.values())) for row in found.to_pylist())
    there = []
    for row in rows.to_pylist():
        name = tuple(map(repr, row.values()))
        there.append(left[name] > 0)
        left[name] -= 1
    return pa.array(there, pa.bool_())


def _put_aside(poison: list[dict[str, Any]], rows: pa.Table, reason: str) -> None:
    poison += [{"reason": reason, "record": record} for record in rows.slice(0, MOST_SHOWN).to_pylist()]
    poison += [{"reason": reason, "record": None}] * max(0, rows.num_rows - MOST_SHOWN)
