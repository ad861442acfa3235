"""The tables of a plan in two versions: under which names stages read them, and what lies between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from nearly.engine.engine import Engine
from nearly.engine.storage.differences import Part
from nearly.engine.storage.layouts import Table
from nearly.errors import SchemaError, Unsupported
from nearly.plan.nodes import Plan, Scan
from nearly.rewrite.delta.changed import WEIGHT, TableChange


@dataclass(frozen=True, slots=True)
class Moved:
    """A table that changed: before and after, and the parts of files that came and went."""

    before: Table
    after: Table
    parts: tuple[Part, ...]
    names: TableChange

    @property
    def most_rows(self) -> int:
        """So many rows came and went at most."""
        return sum(part.most_rows for part in self.parts)

    @property
    def is_counted(self) -> bool:
        """Whether exactly so many did: what came may be gone again."""
        return not any(part.vectors for part in self.parts)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a plan: those that moved, by the names of its scans in lower case, and those that stayed."""

    moved: Mapping[str, Moved]
    same: tuple[Table, ...]

    @property
    def all(self) -> tuple[Table, ...]:
        """Every table in every version that some stage may read, under the name by which it does."""
        pairs = ((each.before, each.after) for each in self.moved.values())
        return (*self.same, *(table for pair in pairs for table in pair))

    @property
    def changes(self) -> tuple[tuple[str, TableChange], ...]:
        return tuple((name, each.names) for name, each in sorted(self.moved.items()))

    @property
    def keys(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The columns that tell the rows of a table apart in both versions, by its name in lower case."""
        found = {table.name.lower(): table.key for table in self.same if table.key}
        found |= {name: each.after.key for name, each in self.moved.items() if each.after.key == each.before.key}
        return tuple(sorted((name, key) for name, key in found.items() if key))


def versions_of(
    engine: Engine, plan: Plan, before: Mapping[str, Table], after: Mapping[str, Table], stored: Iterable[Plan] = ()
) -> Tables:
    """The tables that a plan reads, each as it was and as it is; one that is not given is as it is in the catalog."""
    old, new = ({name.lower(): table for name, table in given.items()} for given in (before, after))
    moved: dict[str, Moved] = {}
    same: list[Table] = []
    for name in dict.fromkeys(scan.table for scan in scans_of(plan)):
        key = name.lower()
        now = replace(new.get(key) or engine.catalog.table(name), name=name)
        was = old.get(key, now)
        if was.content == now.content:
            same.append(now)
        else:
            parts = engine.catalog.difference(was, now)
            names = TableChange.of(name, grew=all(part.weight > 0 for part in parts))
            moved[key] = Moved(replace(was, name=names.before), now, parts, names)
    kept = dict.fromkeys(scan.table for each in stored for scan in scans_of(each))
    tables = Tables(moved, (*same, *(engine.catalog.table(name) for name in kept)))
    _refuse_own_column(tables)
    _refuse_other_columns(plan, tables)
    return tables


def scans_of(plan: Plan) -> Iterator[Scan]:
    for node in plan.walk():
        if isinstance(node, Scan):
            yield node


def _refuse_own_column(tables: Tables) -> None:
    """What came and went in a table has its columns and one more, whose name must not be one of theirs."""
    for moved in tables.moved.values():
        if any(column.lower() == WEIGHT for column in moved.after.column_names):
            raise Unsupported(f"table {moved.after.name!r} has a column {WEIGHT!r}, by which changes are told")


def _refuse_other_columns(plan: Plan, tables: Tables) -> None:
    """A plan is right for tables with the columns it was bound to: their types, and that some have no nulls."""
    for scan in scans_of(plan):
        found = tables.moved.get(scan.table.lower())
        for table in (found.before, found.after) if found is not None else ():
            known = {column.name: column for column in table.columns}
            for field in scan.fields:
                column = known.get(field.source)
                if column is None or column.type != field.type:
                    told = f"table {table.name!r} has no column {field.source!r} of type {field.type}"
                    raise SchemaError(f"{told}; bind the query again")
                if column.nullable and not field.nullable:
                    raise SchemaError(
                        f"column {field.source!r} of table {table.name!r} may hold nulls; bind the query to both versions"
                    )
