"""Micro-batches of a stream: which rows come, which replace others, which go, and which cannot be used and why.

A column may say what each row is: `insert`, `upsert` (or `update`) or `delete`. An update may bring the former values in columns
`old_<name>`: the row that they tell is replaced, which a table without a key needs to know. Of several rows with one key in a
batch, the last one counts; in a bag, rows come before others go. Law: every row of a batch is taken or put aside with a reason;
none is lost without a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearly.engine.changes.given_rows import fitted
from nearly.engine.changes.operations import Changer
from nearly.engine.changes.positions import by_content, by_key, pairs
from nearly.engine.storage.layouts import Table
from nearly.errors import SchemaError

INSERT, UPSERT, UPDATE, DELETE = "insert", "upsert", "update", "delete"
KINDS = (INSERT, UPSERT, UPDATE, DELETE)
OLD = "old_"
"""Prefix of the columns that hold a row as it was before an update."""
MOST_SHOWN = 1000
"""Of a batch in which many records are bad, so many are written down; all are counted."""
NOT_THERE = "there is no such row to delete"
_AT, _DELETES = "nearly_at", "nearly_deletes"

Poison = list[dict[str, Any]]
"""Records that cannot be used, each with the reason."""
Unfit = Callable[[pa.Table], Sequence[tuple[pa.Array, str]]]
"""Which rows that come somebody cannot take, and why."""


@dataclass(slots=True)
class SortedRows:
    """A batch in parts: rows to add, to add or replace, and to take out; and what was put aside."""

    inserts: pa.Table
    upserts: pa.Table
    deletes: pa.Table
    poison: Poison = field(default_factory=list)


def sorted_rows(changer: Changer, rows: pa.Table, op: str | None, unfit: Unfit = lambda _: ()) -> SortedRows:
    """The parts of a batch for a table as it is now."""
    table, poison = changer.table, Poison()
    kinds = _kinds(rows, op)
    known = pc.fill_null(pc.is_in(kinds, value_set=pa.array(KINDS)), False)
    _put_aside(poison, rows.filter(pc.invert(known)), f"the column {op!r} must be one of {', '.join(KINDS)}")
    rows, kinds = rows.filter(known), kinds.filter(known)
    if op is not None and op in rows.column_names:
        rows = rows.drop_columns([op])
    rows, kinds = _with_former(table, rows, kinds)
    try:
        rows = fitted(rows, table, table.columns, "following a stream into")
    except SchemaError as trouble:
        _put_aside(poison, rows, str(trouble))
        empty = rows.slice(0, 0)
        return SortedRows(empty, empty, empty, poison)
    rows, kinds = _without_unfit(rows, kinds, unfit, poison)
    return (_keyed if table.key else _bag)(changer, rows, kinds, poison)


def _kinds(rows: pa.Table, op: str | None) -> pa.ChunkedArray:
    if op is None or op not in rows.column_names:
        return pa.chunked_array([pa.array([INSERT] * rows.num_rows, pa.string())])
    return pc.utf8_lower(rows.column(op).cast(pa.string()))


def _with_former(table: Table, rows: pa.Table, kinds: pa.ChunkedArray) -> tuple[pa.Table, pa.ChunkedArray]:
    """The rows without former values; a row that an update takes out under another key, or from a bag, is deleted before it."""
    own = {name.lower() for name in table.column_names}
    old = {n: n[len(OLD) :] for n in rows.column_names if n.lower().startswith(OLD) and n.lower() not in own}
    if not old:
        return rows, kinds
    plain, numbers = rows.drop_columns(list(old)), np.arange(rows.num_rows)
    spelled = {name.lower(): place for place, name in enumerate(plain.column_names)}
    keys = {name.lower() for name in table.key}
    before, leaves = plain, pa.chunked_array([pa.array(np.full(rows.num_rows, not keys))])
    for name, column in old.items():
        if (place := spelled.get(column.lower())) is not None:
            was, now = rows[name], plain.column(place)
            if column.lower() in keys:
                was = pc.coalesce(was, now)
                leaves = pc.or_(leaves, pc.fill_null(pc.not_equal(was, now), False))
            before = before.set_column(place, plain.field(place), was.cast(now.type))
    leaves = pc.and_(leaves, pc.equal(kinds, UPDATE))
    gone = before.filter(leaves)
    if not keys:
        kinds = pc.if_else(leaves, INSERT, kinds)
    order = np.concatenate([2 * numbers + 1, 2 * numbers[np.asarray(leaves)]])
    deletes = pa.chunked_array([pa.array([DELETE] * gone.num_rows, pa.string())])
    both = pa.concat_tables([plain, gone]).append_column(_AT, pa.chunked_array([*kinds.chunks, *deletes.chunks]))
    ordered = both.take(pa.array(np.argsort(order, kind="stable")))
    return ordered.drop_columns([_AT]), ordered[_AT]


def _without_unfit(rows: pa.Table, kinds: pa.ChunkedArray, unfit: Unfit, poison: Poison) -> tuple[pa.Table, pa.ChunkedArray]:
    """What somebody else can take, too; rows that go are nobody's trouble."""
    bad = np.zeros(rows.num_rows, bool)
    for mask, reason in unfit(rows):
        odd = np.asarray(mask) & ~bad & ~np.asarray(pc.equal(kinds, DELETE))
        _put_aside(poison, rows.filter(pa.array(odd)), reason)
        bad |= odd
    return (rows.filter(pa.array(~bad)), kinds.filter(pa.array(~bad))) if bad.any() else (rows, kinds)


def _bag(changer: Changer, rows: pa.Table, kinds: pa.ChunkedArray, poison: Poison) -> SortedRows:
    """Rows that come, and rows that go, of those that are there or come in the same batch."""
    inserts, deletes = (rows.filter(pc.equal(kinds, kind)) for kind in (INSERT, DELETE))
    upserts = rows.filter(pc.is_in(kinds, value_set=pa.array([UPSERT, UPDATE])))
    told = f"table {changer.table.name!r} has no key, so that it is not known which row to replace"
    _put_aside(poison, upserts, told)
    if deletes.num_rows:
        found = by_content(changer.engine, changer.table, changer.table.base, deletes).select(deletes.column_names)
        there = _met(deletes, found)
        deletes, left = deletes.filter(there), deletes.filter(pc.invert(there))
        if left.num_rows:
            passing = _met(left, inserts)
            inserts = inserts.filter(pc.invert(_met(inserts, left.filter(passing))))
            _put_aside(poison, left.filter(pc.invert(passing)), NOT_THERE)
    return SortedRows(inserts, upserts.slice(0, 0), deletes, poison)


def _keyed(changer: Changer, rows: pa.Table, kinds: pa.ChunkedArray, poison: Poison) -> SortedRows:
    """The last row of each key; one that is inserted must not be there, unless it was deleted before in the batch."""
    table, key = changer.table, list(changer.table.key)
    keyed = pa.chunked_array([pa.array([True] * rows.num_rows, pa.bool_())])
    for name in key:
        keyed = pc.and_(keyed, pc.is_valid(rows[name]))
    _put_aside(poison, rows.filter(pc.invert(keyed)), f"a value of the key ({', '.join(table.key)}) is null")
    rows, kinds = rows.filter(keyed), kinds.filter(keyed)
    numbered = rows.select(key).append_column(_AT, pa.array(range(rows.num_rows), pa.int64()))
    numbered = numbered.append_column(_DELETES, pc.equal(kinds, DELETE).cast(pa.int64()))
    groups = numbered.group_by(key).aggregate([(_AT, "max"), (_AT, "count"), (_DELETES, "sum")]).sort_by(f"{_AT}_max")
    rows, kinds = rows.take(groups[f"{_AT}_max"]), kinds.take(groups[f"{_AT}_max"])
    again = pc.and_(pc.equal(kinds, INSERT), pc.greater(groups[f"{_DELETES}_sum"], 0))
    kinds = pc.if_else(pc.or_(again, pc.equal(kinds, UPDATE)), UPSERT, kinds)
    inserts, upserts = (rows.filter(pc.equal(kinds, kind)) for kind in (INSERT, UPSERT))
    if inserts.num_rows:
        known = _has_keys(changer, inserts.select(key))
        _put_aside(poison, inserts.filter(known), "a row with this key is there already")
        inserts = inserts.filter(pc.invert(known))
    goes = pc.equal(kinds, DELETE)
    deletes, alone = rows.filter(goes), pc.equal(groups[f"{_AT}_count"].filter(goes), 1)
    if deletes.num_rows:
        there = _has_keys(changer, deletes.select(key))
        _put_aside(poison, deletes.filter(pc.and_(pc.invert(there), alone)), NOT_THERE)
        deletes = deletes.filter(there)
    return SortedRows(inserts, upserts, deletes, poison)


def _has_keys(changer: Changer, keys: pa.Table) -> pa.ChunkedArray:
    """For each key, whether the table has it; what is equal, `by_key` says."""
    found = by_key(changer.engine, changer.table, changer.table.base, keys)
    found = found.group_by(keys.column_names).aggregate([])  # each once, also where the key is no key
    return pc.is_valid(pairs(changer.engine, keys, found).sort_by("new")["old"])


def _met(rows: pa.Table, offered: pa.Table) -> pa.Array:
    """For each row of a bag, whether another bag has one for it."""
    left = Counter(tuple(map(repr, row.values())) for row in offered.to_pylist())
    met = []
    for row in rows.to_pylist():
        name = tuple(map(repr, row.values()))
        met.append(left[name] > 0)
        left[name] -= 1
    return pa.array(met, pa.bool_())


def _put_aside(poison: Poison, rows: pa.Table, reason: str) -> None:
    poison += [{"reason": reason, "record": record} for record in rows.slice(0, MOST_SHOWN).to_pylist()]
    poison += [{"reason": reason, "record": None}] * max(0, rows.num_rows - MOST_SHOWN)
