"""Statements that change a table, as the changes they stand for."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from nearly.engine.changes.batch_files import Change
from nearly.engine.changes.finding import Finder
from nearly.engine.changes.merging import merge
from nearly.engine.changes.operations import Changer
from nearly.errors import SchemaError, unknown
from nearly.plan.schema import SchemaColumn
from nearly.plan.syntax.statements import DeleteFrom, InsertInto, MergeInto, Statement, UpdateSet
from nearly.plan.types import NULL, DataType


@dataclass(frozen=True, slots=True)
class Changed:
    """What a statement did to a table, and the version that it made; one that changed nothing made none."""

    operation: str
    table: str
    version: int
    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __str__(self) -> str:
        counts = f"{self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted"
        return f"{self.operation}: {counts}; {self.table} is at version {self.version}"


def change_of(changer: Changer, statement: Statement) -> Change:
    """What a statement does to a table."""
    match statement:
        case InsertInto():
            return changer.insert_rows(changer.finder.collect(inserted(changer.finder, statement), changer.stem))
        case DeleteFrom():
            return changer.delete_where(statement.where, statement.alias, statement.common)
        case UpdateSet():
            values = [(changer.table.column(name), value) for name, value in statement.assignments]
            return changer.update(values, statement.where, statement.alias, statement.common)
        case MergeInto():
            return merge(changer, statement)


def inserted(finder: Finder, statement: InsertInto) -> exp.Select:
    """The query for the rows of an INSERT with all columns of the table; those it does not name are null."""
    table = finder.table
    given = finder.columns(statement.query)
    taken = _by_name(finder, given) if statement.by_name else _by_position(finder, statement, given)
    names = [f"given_{place}" for place in range(len(given))]
    alias = exp.TableAlias(this=exp.to_identifier("given"), columns=[exp.to_identifier(name) for name in names])
    source = exp.Subquery(this=statement.query.copy(), alias=alias)
    items = []
    for column in table.columns:
        place = taken.get(column.name)
        value, type_ = (exp.Null(), NULL) if place is None else (exp.column(names[place], table="given"), given[place][1])
        items.append(exp.alias_(finder.cast(value, type_, column), column.name, quoted=True))
    return exp.Select(expressions=items, from_=exp.From(this=source))


def _by_position(finder: Finder, statement: InsertInto, given: list[tuple[str | None, DataType]]) -> dict[str, int]:
    """Which column of the query each named column of the table takes."""
    table = finder.table
    columns: list[SchemaColumn] = [table.column(name) for name in statement.columns or table.column_names]
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        raise SchemaError(f"INSERT INTO {table.name} names a column twice (case does not count)")
    if len(names) != len(given):
        raise SchemaError(
            f"INSERT INTO {table.name} takes {len(names)} columns ({', '.join(names[:6])}{', ...' if len(names) > 6 else ''}), "
            f"the rows have {len(given)}"
        )
    return {name: place for place, name in enumerate(names)}


def _by_name(finder: Finder, given: list[tuple[str | None, DataType]]) -> dict[str, int]:
    table = finder.table
    known = {name.lower(): name for name in table.column_names}
    found: dict[str, int] = {}
    for place, (name, _) in enumerate(given):
        if name is None:
            raise SchemaError(f"INSERT INTO {table.name} BY NAME: give every expression a name by AS")
        if name.lower() not in known:
            raise unknown("column", name, table.column_names)
        if known[name.lower()] in found:
            raise SchemaError(f"INSERT INTO {table.name} BY NAME: column {name!r} is given twice (case does not count)")
        found[known[name.lower()]] = place
    return found
