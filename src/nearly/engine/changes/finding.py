"""Rows of a table that a change is about, found by a query; and values, as they are stored.

Law: a value is stored by Spark's rule of store assignment: it is cast to the column's type where none of its kind can be mistaken
for another, and a value that does not fit is an error; nothing is cut off in silence but digits after the point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
from sqlglot import exp

from nearly.engine.changes.given_rows import arrow_schema
from nearly.engine.changes.positions import placed
from nearly.engine.changes.row_files import BATCH_ROWS, ManyRows, collected, gathered
from nearly.engine.engine import Engine
from nearly.engine.native.failures import NativeFailure
from nearly.engine.native.reading import FILE, ROW
from nearly.engine.planner import Planner, Prepared
from nearly.engine.storage.catalog import Snapshot
from nearly.engine.storage.layouts import AT, Table
from nearly.errors import ParseError, SchemaError, Unsupported
from nearly.plan.schema import SchemaColumn
from nearly.plan.syntax.parse import parse_query, to_text
from nearly.plan.types import BOOLEAN, NULL, DataType, can_store

Take = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Takes something from batches that pass by, and hands on the rest of each."""

_PLACED = f"{AT}now"
"""After the name of a table: the table with the places of its rows, which no subquery of a statement sees."""


@dataclass(frozen=True)
class Finder:
    """Runs the queries of a change to a table, over it and the tables that were changed before in the same transaction."""

    engine: Engine
    table: Table
    seen: tuple[Table, ...] = ()

    def target(self, alias: str) -> exp.Table:
        """The table that is changed, with the places of its rows, to select from."""
        name = exp.to_identifier(self._placed.name, quoted=True)
        return exp.Table(this=name, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))

    def own(self, alias: str, columns: Sequence[str] | None = None) -> list[exp.Expr]:
        """The columns of the table, or some of them, and the places of its rows."""
        names = self.table.column_names if columns is None else columns
        return [exp.column(name, table=alias, quoted=True) for name in (*names, FILE, ROW)]

    def rows(self, query: exp.Expr) -> pa.Table:
        """The rows of a query whose columns have names, by the driver's engine, or by Spark where that cannot tell."""
        with suppress(NativeFailure, Unsupported):
            return self._run_here(self._planner.prepare(to_text(query), "native"))
        prepared = self._planner.prepare(to_text(query), "spark")
        return self.engine.run(replace(prepared, query=None)).table  # the text, which is what Spark knows the meaning of

    def collect(self, query: exp.Expr, stem: Path, take: Take | None = None) -> ManyRows:
        """The rows of a query that has the table's columns in order, however many; `take` first takes its own from each batch."""
        return self._asked(query, stem, lambda batches: collected(batches if take is None else take(batches), self.table, stem))

    def gather(self, query: exp.Expr, stem: Path) -> ManyRows:
        """The rows of a query whose columns have names, however many."""

        def all_of(batches: Iterator[pa.RecordBatch]) -> ManyRows:
            first = next(batches, None)
            return self.rows(query) if first is None else gathered(chain([first], batches), first.schema, stem)

        return self._asked(query, stem, all_of)

    def _asked(self, query: exp.Expr, stem: Path, all_of: Callable[[Iterator[pa.RecordBatch]], ManyRows]) -> ManyRows:
        """What is made of a query's rows: by the driver's engine, or by Spark where that cannot tell."""
        arrow_schema(self.table.columns)
        with suppress(NativeFailure, Unsupported):
            return all_of(self._batches(self._planner.prepare(to_text(query), "native")))
        rmtree(stem.parent, ignore_errors=True)  # what was collected before the trouble
        prepared = self._planner.prepare(to_text(query), "spark")
        return all_of(self._of_run(replace(prepared, query=None)))

    def _batches(self, prepared: Prepared) -> Iterator[pa.RecordBatch]:
        """The driver's engine hands rows over as they come; several sites hand over all at once, but know no places of rows."""
        here = not prepared.snapshot or self.engine.cluster.sites.executors == 1
        if prepared.query is None or not (here or any(table.name == self._placed.name for table in prepared.snapshot)):
            yield from self._of_run(prepared)
            return
        with self.engine.reading(prepared.snapshot):
            for batch in self.engine.at(prepared.snapshot).native.stream_here(prepared.query.plan, BATCH_ROWS):
                yield batch.rename_columns(list(prepared.query.names))

    def _of_run(self, prepared: Prepared) -> Iterator[pa.RecordBatch]:
        yield from self.engine.run(prepared).table.to_batches(BATCH_ROWS)

    def columns(self, query: exp.Expr) -> list[tuple[str | None, DataType]]:
        """What the columns of a query are called, None where only Spark would find names for some, and their types."""
        prepared = self._planner.prepare(to_text(query))
        nameless = prepared.query is not None and prepared.query.unnamed
        return [(None if nameless else name, type_) for name, type_ in self.engine.columns(prepared)]

    def types(self, query: exp.Select) -> tuple[DataType, ...]:
        """The types of a query's columns."""
        try:
            return self._planner.bound(to_text(query)).types
        except Unsupported:
            return tuple(type_ for _, type_ in self.engine.columns(self._planner.prepare(to_text(query), "spark")))

    def stored(self, scope: exp.Select, values: Sequence[tuple[SchemaColumn, exp.Expr]]) -> list[exp.Expr]:
        """Values as their columns hold them; `scope` is a query without items in which they have a meaning."""
        for _, value in values:
            refuse_windows(value)
        found = self.types(_selected(scope, [value for _, value in values])) if values else ()
        return [self.cast(value, type_, column) for (column, value), type_ in zip(values, found, strict=True)]

    def refuse_no_condition(self, scope: exp.Select, conditions: Sequence[exp.Expr]) -> None:
        """Conditions must be true, false or unknown, in the scope they stand in."""
        for each in conditions:
            refuse_windows(each)
        for each, type_ in zip(conditions, self.types(_selected(scope, conditions)) if conditions else (), strict=True):
            if type_ not in (BOOLEAN, NULL):
                raise SchemaError(f"a condition must be boolean, {each.sql(dialect='spark')[:60]} is {type_}")

    def cast(self, value: exp.Expr, found: DataType, column: SchemaColumn) -> exp.Expr:
        """A value of a type as a column holds it."""
        if found == column.type:
            return value.copy()
        if not can_store(found, column.type):
            raise SchemaError(
                f"column {column.name!r} of table {self.table.name!r} is {column.type}, a {found} cannot be stored there; cast it"
            )
        return exp.Cast(this=exp.Paren(this=value.copy()), to=exp.DataType.build(str(column.type), dialect="spark"))

    def _run_here(self, prepared: Prepared) -> pa.Table:
        query = prepared.query
        if query is None:
            raise Unsupported(f"this cannot be evaluated here: {prepared.reason}")
        with self.engine.reading(prepared.snapshot):
            found = self.engine.at(prepared.snapshot).native.run_here(query.plan)
        return found.rename_columns(list(query.names))

    @cached_property
    def _placed(self) -> Table:
        return replace(placed(self.table), name=self.table.name + _PLACED)

    @property
    def _planner(self) -> Planner:
        others = [table for table in self.seen if table.name.lower() != self.table.name.lower()]
        return self.engine.planner.over(Snapshot(self.engine.catalog, [*others, self.table, self._placed]))


def stored_rows(table: Table, found: pa.Table, first: int = 0) -> pa.Table:
    """The columns of a table from rows whose columns, from one on, are these."""
    schema = arrow_schema(table.columns)
    arrays = [found.column(first + place).cast(field.type) for place, field in enumerate(schema)]
    return pa.Table.from_arrays(arrays, schema=schema)


def refuse_windows(node: exp.Expr) -> None:
    """A value of one row cannot hang on which others are changed."""
    for window in node.find_all(exp.Window):
        if window.find_ancestor(exp.Query) is None:
            raise SchemaError("a window function has no meaning in a change; put it into a subquery")


def parsed(text: str, what: str) -> exp.Expr:
    """One condition or expression from SQL text."""
    if not isinstance(text, str) or not text.strip():
        raise ParseError(f"the {what} is SQL text, not {text!r}")
    tree = parse_query(f"SELECT {text}\n")
    used = [name for name, value in tree.args.items() if value]
    items = tree.expressions
    if not isinstance(tree, exp.Select) or used != ["expressions"] or len(items) != 1 or isinstance(items[0], exp.Alias | exp.Star):
        raise ParseError(f"{text!r} is not one {what}")
    found: exp.Expr = items[0].copy()
    return found


def parsed_values(table: Table, assignments: Mapping[str, str]) -> list[tuple[SchemaColumn, exp.Expr]]:
    """The columns that texts are assigned to."""
    if not isinstance(assignments, Mapping) or not assignments:
        raise SchemaError("an update sets at least one column: set={'column': 'expression'}")
    found = [(table.column(_text(name)), parsed(text, "expression")) for name, text in assignments.items()]
    names = [column.name for column, _ in found]
    if len(set(names)) < len(names):
        raise SchemaError("a column is set twice (case does not count)")
    return found


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise SchemaError(f"a column is named by text, not {name!r}")
    return name


def _selected(scope: exp.Select, items: Sequence[exp.Expr]) -> exp.Select:
    query = scope.copy()
    query.set("expressions", [exp.alias_(exp.Paren(this=each.copy()), f"item_{place}") for place, each in enumerate(items)])
    return query
