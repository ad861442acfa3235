"""Insert, delete, update and merge: what a user asks for, as the rows that come and go.

Law: a change is found for one version of a table and committed to that version alone; whatever is wrong with it is told before
anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from nearly.engine.changes.batch_files import Change
from nearly.engine.changes.given_rows import arrow_schema, as_arrow, fitted
from nearly.engine.changes.positions import Positions, absent, by_content, by_key, duplicates, placed
from nearly.engine.engine import Engine
from nearly.engine.storage.catalog import Snapshot
from nearly.engine.storage.layouts import Table
from nearly.errors import ParseError, SchemaError, Unsupported
from nearly.plan.parse import parse_query, to_text
from nearly.plan.schema import SchemaColumn

ERROR, IGNORE = "error", "ignore"
"""What to do about rows to delete that are not there."""


@dataclass(frozen=True, slots=True)
class Changer:
    """Finds what a change does to one version of a table."""

    engine: Engine
    table: Table

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
            row = absent(self.engine, wanted, found) if self.table.key else None
            what = _told(row, self.table.key) if row is not None else f"{wanted.num_rows - found.num_rows} of the rows to delete"
            raise SchemaError(f"table {self.table.name!r} has no {what}; pass missing='ignore' to delete what there is")
        return self._without("delete", found)

    def delete_where(self, where: str) -> Change:
        return self._without("delete", self._matching(where, {}))

    def update(self, assignments: Mapping[str, str], where: str | None) -> Change:
        if not assignments:
            raise SchemaError("an update sets at least one column: set={'column': 'expression'}")
        found = self._matching(where, {column.name: text for column, text in self._assigned(assignments)})
        before = self._rows(found)
        after = before
        for column, _ in self._assigned(assignments):
            place = after.schema.get_field_index(column.name)
            after = after.set_column(
                place, after.schema.field(place), found[_new(column.name)].cast(after.schema.field(place).type)
            )
        if {column.name for column, _ in self._assigned(assignments)} & set(self.table.key):
            self._refuse_taken_keys(after, found)
        return Change("update", after, before, Positions.of(found), found.num_rows)

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
            return Change(operation, inserts, self._rows(gone), Positions.of(gone))
        replaced = by_key(self.engine, self.table, base, upserts.select(key))
        gone = by_key(self.engine, self.table, base, deletes.select(key))
        change = self._replaced(operation, pa.concat_tables([upserts, inserts]), replaced)
        went = pa.concat_tables([self._rows(replaced), self._rows(gone)])
        return replace(change, went=went, places=Positions.of(pa.concat_tables([replaced, gone])))

    def _replaced(self, operation: str, given: pa.Table, found: pa.Table) -> Change:
        """The given rows, those that replace others first and in the order of these."""
        key = list(self.table.key)
        numbered = given.append_column("nearly_at", pa.array(range(given.num_rows), pa.int64()))
        old = self._rows(found)
        paired = old.select(key).append_column("nearly_old", pa.array(range(old.num_rows), pa.int64()))
        joined = numbered.select([*key, "nearly_at"]).join(paired, key, join_type="left outer").sort_by("nearly_at")
        matched = pc.is_valid(joined["nearly_old"])
        updates = joined.filter(matched).sort_by("nearly_old")
        others = joined.filter(pc.invert(matched)).sort_by("nearly_at")
        came = pa.concat_tables([given.take(updates["nearly_at"]), given.take(others["nearly_at"])])
        return Change(operation, came, old, Positions.of(found), updates.num_rows)

    def _without(self, operation: str, found: pa.Table) -> Change:
        return Change(operation, None, self._rows(found), Positions.of(found))

    def _rows(self, found: pa.Table) -> pa.Table:
        """The stored columns of rows that were found, in the order of their places."""
        ordered = found.sort_by([("nearly_file", "ascending"), ("nearly_row", "ascending")])
        schema = arrow_schema(self.table.columns)
        columns = [ordered[column.name].cast(field.type) for column, field in zip(self.table.columns, schema, strict=True)]
        return pa.Table.from_arrays(columns, schema=schema)

    def _matching(self, where: str | None, computed: Mapping[str, str]) -> pa.Table:
        """The rows for which a condition is true, with their places and what is computed of them; in the order of places."""
        table = placed(self.table)
        snapshot = Snapshot(self.engine.catalog, [table])
        planner = self.engine.planner.over(snapshot)
        prepared = planner.prepare(_query(self.table, where, computed), "native")
        query = prepared.query
        if query is None or query.unnamed:
            raise Unsupported("this condition cannot be evaluated here")
        with self.engine.reading([self.table]):
            found = self.engine.at(prepared.snapshot).native.run_here(query.plan)
        named = found.rename_columns(list(query.names))
        return named.sort_by([("nearly_file", "ascending"), ("nearly_row", "ascending")])

    def _assigned(self, assignments: Mapping[str, str]) -> list[tuple[SchemaColumn, str]]:
        found = [(self.table.column(name), text) for name, text in assignments.items()]
        names = [column.name for column, _ in found]
        if len(set(names)) < len(names):
            raise SchemaError("a column is set twice (case does not count)")
        return [(column, f"CAST(({text}) AS {column.type})") for column, text in found]

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

    def _refuse_taken_keys(self, after: pa.Table, found: pa.Table) -> None:
        """An update of keys may not meet rows that stay as they are."""
        keys = self._keys(after, "updated")
        there = by_key(self.engine, self.table, self.table.base, keys)
        changed = set(zip(found["nearly_file"].to_pylist(), found["nearly_row"].to_pylist(), strict=True))
        for row in there.select([*self.table.key, "nearly_file", "nearly_row"]).to_pylist():
            if (row["nearly_file"], row["nearly_row"]) not in changed:
                taken = ", ".join(f"{name} = {row[name]!r}" for name in self.table.key)
                raise SchemaError(f"table {self.table.name!r} already has {taken}; the update would make its key no key")


def _query(table: Table, where: str | None, computed: Mapping[str, str]) -> str:
    """The query for rows of a table with their places; a condition and expressions are parsed each for itself."""
    tree = parse_query("SELECT * FROM placeholder_of_table")
    tree.args["from_"].this.set("this", exp.to_identifier(table.name, quoted=True))
    for name, text in computed.items():
        tree.append("expressions", exp.alias_(_parsed(text, "expression"), _new(name), quoted=True))
    if where is not None:
        tree.set("where", exp.Where(this=_parsed(where, "condition")))
    return to_text(tree)


def _parsed(text: str, what: str) -> exp.Expr:
    if not isinstance(text, str) or not text.strip():
        raise ParseError(f"the {what} is SQL text, not {text!r}")
    tree = parse_query(f"SELECT ({text}) AS parsed")
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or set(_used(tree)) != {"expressions"}:
        raise ParseError(f"{text!r} is not one {what}")
    parsed: exp.Expr = tree.expressions[0].this
    return parsed.copy()


def _used(tree: exp.Expr) -> list[str]:
    return [name for name, value in tree.args.items() if value]


def _new(name: str) -> str:
    return f"nearly_new_{name}"


def _told(rows: pa.Table, key: tuple[str, ...]) -> str:
    """The key of the first row, as text."""
    row = rows.slice(0, 1).to_pylist()[0]
    return "a row with " + ", ".join(f"{name} = {row[name]!r}" for name in key)
