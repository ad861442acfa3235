"""Insert, delete, update and merge: what a user asks for, as the rows that come and go.

Law: a change is found for one version of a table and committed to that version alone; whatever is wrong with it is told before
anything is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from nearly.engine.changes.batch_files import CAME, Change
from nearly.engine.changes.finding import Finder, refuse_windows, stored_rows
from nearly.engine.changes.given_rows import as_arrow, fitted, is_frame
from nearly.engine.changes.many_rows import PlacesTaken, in_order_of, written_by_spark
from nearly.engine.changes.positions import absent, by_content, by_key, duplicates, pairs, rows_at
from nearly.engine.changes.row_files import FiledRows, ManyRows
from nearly.engine.engine import Engine
from nearly.engine.native.places import Positions, packed
from nearly.engine.native.reading import FILE, ROW
from nearly.engine.storage.layouts import Table
from nearly.errors import SchemaError
from nearly.plan.schema import SchemaColumn

FEW_ROWS = 100_000
"""A DataFrame of Spark with no more rows comes to the driver as it is."""
ERROR, IGNORE = "error", "ignore"
"""What to do about rows to delete that are not there."""


@dataclass(frozen=True, slots=True)
class Changer:
    """Finds what a change does to one version of a table."""

    engine: Engine
    table: Table
    directory: Path
    """Where rows go that are too many for memory."""
    seen: tuple[Table, ...] = ()

    @property
    def finder(self) -> Finder:
        return Finder(self.engine, self.table, self.seen)

    @property
    def stem(self) -> Path:
        """How the files of rows that come begin."""
        return self.directory / Path(CAME).stem

    def insert(self, rows: Any) -> Change:
        return self.insert_rows(self._given(rows, "inserting into"))

    def insert_rows(self, came: ManyRows) -> Change:
        """Add rows that fit."""
        if self.table.key:
            keys = self._keys(came, "inserted")
            found = by_key(self.engine, self.table, self.table.base, keys)
            if found.num_rows:
                raise SchemaError(
                    f"table {self.table.name!r} already has {_told(found, self.table.key)}; use merge to replace rows by key"
                )
        return Change("insert", came)

    def delete(self, rows: Any, missing: str) -> Change:
        """The rows given, by key where the table has one and no more is given, else by all columns."""
        return self._without("delete", self._found(rows, missing))

    def _found(self, rows: Any, missing: str) -> pa.Table:
        """By what the rows given are told, and where they lie."""
        if missing not in (ERROR, IGNORE):
            raise SchemaError(f"missing={missing!r} must be {ERROR!r} or {IGNORE!r}")
        given = as_arrow(rows)
        by = self._columns(self.table.key) if self.table.key else self.table.columns
        extra = {column.name.lower() for column in self.table.columns} - {column.name.lower() for column in by}
        given = given.select([name for name in given.column_names if name.lower() not in extra])
        wanted = fitted(given, self.table, by, "deleting from")
        if self.table.key:
            wanted = self._keys(wanted, "deleted")
            found = by_key(self.engine, self.table, self.table.base, wanted)
        else:
            found = by_content(self.engine, self.table, self.table.base, wanted)
        self._refuse_ambiguous(found)
        if found.num_rows < wanted.num_rows and missing == ERROR:
            told = f"{wanted.num_rows - found.num_rows} of the rows given, all columns compared"
            what = _told(absent(self.engine, wanted, found), self.table.key) if self.table.key else told
            raise SchemaError(f"table {self.table.name!r} lacks {what}; pass missing='ignore' to delete what there is")
        return found

    def delete_where(self, where: exp.Expr | None, alias: str | None = None, common: exp.Expr | None = None) -> Change:
        """The rows for which a condition is true, or all."""
        finder, alias = self.finder, alias or self.table.name
        found = finder.rows(self._scope(alias, where, common, finder.own(alias, self._told_by)))
        return self._without("delete", found)

    def update(
        self,
        values: Sequence[tuple[SchemaColumn, exp.Expr]],
        where: exp.Expr | None,
        alias: str | None = None,
        common: exp.Expr | None = None,
    ) -> Change:
        """Columns set to values, all of them computed from the rows as they were."""
        finder, alias = self.finder, alias or self.table.name
        stored = finder.stored(self._scope(alias, None, common, []), values)
        new = {column.name: value for (column, _), value in zip(values, stored, strict=True)}
        own = {name: exp.column(name, table=alias, quoted=True) for name in self.table.column_names}
        items = [exp.alias_(new[name], f"nearly_new_{place}") if name in new else own[name] for place, name in enumerate(own)]
        query = self._scope(alias, where, common, [*items, *finder.own(alias, ())])
        query.set("order", exp.Order(expressions=[exp.Ordered(this=exp.column(name, quoted=True)) for name in (FILE, ROW)]))
        taken = PlacesTaken()
        after = finder.collect(query, self.stem, taken.take)
        if set(new) & set(self.table.key):
            self.refuse_taken_keys(after, taken.places, "updated")
        return Change("update", after, None, taken.places, after.num_rows)

    def _scope(self, alias: str, where: exp.Expr | None, common: exp.Expr | None, items: Sequence[exp.Expr]) -> exp.Select:
        """A query over the table as it is changed."""
        query = exp.Select(expressions=list(items), from_=exp.From(this=self.finder.target(alias)))
        if where is not None:
            refuse_windows(where)
            query.set("where", exp.Where(this=where.copy()))
        if common is not None:
            query.set("with_", common.copy())
        return query

    def merge(self, rows: Any) -> Change:
        """Rows with a key that is there replace it, others are added."""
        if not self.table.key:
            raise SchemaError(f"table {self.table.name!r} has no key to merge by; register it with key=[...]")
        given = self._given(rows, "merging into")
        keys = self._keys(given, "merged")
        found = by_key(self.engine, self.table, self.table.base, keys)
        self._refuse_ambiguous(found)
        return self._replaced("merge", given, found)

    def mixed(self, operation: str, inserts: pa.Table, upserts: pa.Table, deletes: pa.Table) -> Change:
        """Rows to add, to add or replace by key, and to take out, all at once; all of them fit, and no key is in two of them."""
        key, base = list(self.table.key), self.table.base
        if not key:
            gone = by_content(self.engine, self.table, base, deletes)
            return replace(self._without(operation, gone), came=inserts)
        replaced = by_key(self.engine, self.table, base, upserts.select(key))
        gone = by_key(self.engine, self.table, base, deletes.select(key))
        change = self._replaced(operation, pa.concat_tables([upserts, inserts]), replaced)
        change = replace(change, places=Positions.of(pa.concat_tables([replaced, gone])))
        parts = [self._whole(replaced), self._whole(gone)] if change.is_mixed else [replaced, gone]
        return replace(change, went=pa.concat_tables(parts))

    def _given(self, rows: Any, what: str) -> ManyRows:
        """The rows that a user gives; a large DataFrame is written by Spark, and taken from its files."""
        if is_frame(rows) and not self.table.base.partitioned_by:
            few = rows.limit(FEW_ROWS + 1).toArrow()
            if few.num_rows > FEW_ROWS:
                return written_by_spark(self.engine, self.table, rows, self.directory, what)
            rows = few
        return fitted(as_arrow(rows), self.table, self.table.columns, what)

    def exchange(self, old: Any, new: Any) -> Change:
        """Rows that are there, and others in their place; those that have the key of one are that row, updated."""
        gone = self._found(old, ERROR)
        came = fitted(as_arrow(new), self.table, self.table.columns, "updating")
        if not self.table.key:
            return replace(self._without("update", gone), came=came)
        self.refuse_taken_keys(came, Positions.of(gone), "updated")
        old_keys, new_keys = gone.select(list(self.table.key)), came.select(list(self.table.key))
        kept = pc.is_valid(pairs(self.engine, new_keys, old_keys).sort_by("new")["old"])
        left = pc.is_null(pairs(self.engine, old_keys, new_keys).sort_by("new")["old"])
        return self.mixed("update", came.filter(pc.invert(kept)), came.filter(kept), old_keys.filter(left))

    def _replaced(self, operation: str, given: ManyRows, found: pa.Table) -> Change:
        """The given rows, those that replace others first and in the order of these."""
        if isinstance(given, FiledRows):
            came = in_order_of(self.engine, self.table, given, found, self.stem)
            return Change(operation, came, None, Positions.of(found), found.num_rows)
        old = _ordered(found).select(list(self.table.key))
        joined = pairs(self.engine, given.select(list(self.table.key)), old)
        matched = pc.is_valid(joined["old"])
        updates = joined.filter(matched).sort_by("old")
        others = joined.filter(pc.invert(matched)).sort_by("new")
        came = pa.concat_tables([given.take(updates["new"]), given.take(others["new"])])
        return Change(operation, came, old, Positions.of(found), updates.num_rows)

    def _without(self, operation: str, found: pa.Table) -> Change:
        told = _ordered(found).select(list(self._told_by))
        return Change(operation, None, told, Positions.of(found))

    @property
    def _told_by(self) -> tuple[str, ...]:
        """The columns by which other layouts find rows that go."""
        return (self.table.key or self.table.column_names) if len(self.table.layouts) > 1 else ()

    def _whole(self, found: pa.Table) -> pa.Table:
        """The rows that were found, with all their columns, in the order of their places."""
        return stored_rows(self.table, rows_at(self.engine, self.table, self.table.base, Positions.of(found)))

    def _columns(self, names: tuple[str, ...]) -> tuple[SchemaColumn, ...]:
        return tuple(self.table.column(name) for name in names)

    def _keys(self, rows: ManyRows, what: str) -> pa.Table:
        """The keys of rows, of which each must be there and different."""
        keys = rows.select(list(self.table.key))
        for name in self.table.key:
            if keys[name].null_count:
                raise SchemaError(f"a row to be {what} has no value in the key column {name!r} of table {self.table.name!r}")
        twice = duplicates(self.engine, keys)
        if twice.num_rows:
            raise SchemaError(f"{_told(twice, self.table.key)} is given more than once to be {what} in table {self.table.name!r}")
        return keys

    def _refuse_ambiguous(self, found: pa.Table) -> None:
        if self.table.key:
            twice = duplicates(self.engine, found.select(list(self.table.key)))
            if twice.num_rows:
                raise SchemaError(f"table {self.table.name!r} has {_told(twice, self.table.key)} more than once; its key is no key")

    def refuse_taken_keys(self, came: ManyRows, places: Positions, what: str) -> None:
        """Rows that come may have no key twice, none of them missing, and none of a row that stays."""
        keys = self._keys(came, what)
        there = by_key(self.engine, self.table, self.table.base, keys)
        stays = ~np.isin(packed(there[FILE].to_numpy(), there[ROW].to_numpy()), places.packed)
        if stays.any():
            taken = _told(there.filter(pa.array(stays)), self.table.key).removeprefix("a row with ")
            raise SchemaError(f"table {self.table.name!r} already has {taken}; after the change its key would be no key")


def _ordered(found: pa.Table) -> pa.Table:
    """Rows in the order of their places."""
    return found.sort_by([(FILE, "ascending"), (ROW, "ascending")])


def _told(rows: pa.Table, key: tuple[str, ...]) -> str:
    """The key of the first row, as text."""
    row = rows.slice(0, 1).to_pylist()[0]
    return "a row with " + ", ".join(f"{name} = {row[name]!r}" for name in key)
