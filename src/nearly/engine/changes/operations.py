"""Insert, delete, update and merge: what a user asks for, as the rows that come and go.

Law: a change is found for one version of a table and committed to that version alone; whatever is wrong with it is told before
anything is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from nearly.engine.changes.batch_files import Change
from nearly.engine.changes.finding import Finder, refuse_windows, stored_rows
from nearly.engine.changes.given_rows import as_arrow, fitted
from nearly.engine.changes.positions import Positions, absent, by_content, by_key, duplicates, pairs, rows_at
from nearly.engine.engine import Engine
from nearly.engine.native.reading import FILE, ROW
from nearly.engine.storage.layouts import Table
from nearly.errors import SchemaError
from nearly.plan.schema import SchemaColumn

ERROR, IGNORE = "error", "ignore"
"""What to do about rows to delete that are not there."""


@dataclass(frozen=True, slots=True)
class Changer:
    """Finds what a change does to one version of a table."""

    engine: Engine
    table: Table
    seen: tuple[Table, ...] = ()

    @property
    def finder(self) -> Finder:
        return Finder(self.engine, self.table, self.seen)

    def insert(self, rows: Any) -> Change:
        came = fitted(as_arrow(rows), self.table, self.table.columns, "inserting into")
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
        return self._without("delete", found)

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
        new = [exp.alias_(value, f"nearly_new_{place}") for place, value in enumerate(stored)]
        found = _ordered(finder.rows(self._scope(alias, where, common, [*finder.own(alias), *new])))
        before = after = stored_rows(self.table, found)
        for place, (column, _) in enumerate(values, len(self.table.columns) + 2):
            index = self.table.column_names.index(column.name)
            field = after.schema.field(index)
            after = after.set_column(index, field, found.column(place).cast(field.type))
        if {column.name for column, _ in values} & set(self.table.key):
            self.refuse_taken_keys(after, Positions.of(found), "updated")
        return Change("update", after, before, Positions.of(found), found.num_rows)

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
        given = fitted(as_arrow(rows), self.table, self.table.columns, "merging into")
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

    def _replaced(self, operation: str, given: pa.Table, found: pa.Table) -> Change:
        """The given rows, those that replace others first and in the order of these."""
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
        return self.table.key or (self.table.column_names if len(self.table.layouts) > 1 else ())

    def _whole(self, found: pa.Table) -> pa.Table:
        """The rows that were found, with all their columns, in the order of their places."""
        return stored_rows(self.table, rows_at(self.engine, self.table, self.table.base, Positions.of(found)))

    def _columns(self, names: tuple[str, ...]) -> tuple[SchemaColumn, ...]:
        return tuple(self.table.column(name) for name in names)

    def _keys(self, rows: pa.Table, what: str) -> pa.Table:
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

    def refuse_taken_keys(self, came: pa.Table, places: Positions, what: str) -> None:
        """Rows that come may have no key twice, none of them missing, and none of a row that stays."""
        keys = self._keys(came, what)
        there = by_key(self.engine, self.table, self.table.base, keys)
        changed = set(zip(places.files.tolist(), places.rows.tolist(), strict=True))
        for row in there.select([*self.table.key, FILE, ROW]).to_pylist():
            if (row[FILE], row[ROW]) not in changed:
                taken = ", ".join(f"{name} = {row[name]!r}" for name in self.table.key)
                raise SchemaError(f"table {self.table.name!r} already has {taken}; after the change its key would be no key")


def _ordered(found: pa.Table) -> pa.Table:
    """Rows in the order of their places."""
    return found.sort_by([(FILE, "ascending"), (ROW, "ascending")])


def _told(rows: pa.Table, key: tuple[str, ...]) -> str:
    """The key of the first row, as text."""
    row = rows.slice(0, 1).to_pylist()[0]
    return "a row with " + ", ".join(f"{name} = {row[name]!r}" for name in key)
