"""How stages read tables: in any version by its name, and what changed in them, with no more columns than some scan asks for."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from nearly.engine.deltas.versions import Moved, Tables, scans_of
from nearly.engine.jobs.native_kernel import STATIC_ROWS, NativeKernel, static_name
from nearly.engine.storage.layouts import Table
from nearly.engine.storage.ticket_order import files_below
from nearly.plan.dialects import native
from nearly.plan.nodes import Plan
from nearly.plan.types import to_arrow
from nearly.rewrite.delta.changed import BEFORE, WEIGHT
from nearly.rewrite.sample.push_hash import drawn_below, tables_drawn

MOST_KEPT = 1_000_000
"""A change whose rows lie among others is kept in memory for whoever asks next, up to so many; a larger one is read again."""


def shown_name(table: str) -> str:
    """The name of a table's view: no stage has it, and no part of a rendered query."""
    return f"table {table}"


@dataclass(frozen=True, slots=True)
class TableReader:
    """The tables of one delta."""

    kernel: NativeKernel
    tables: Tables
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tests: Mapping[str, str] = field(default_factory=dict)
    """Of some tables the plan reads only a sample: the test that its rows pass."""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The files that hold all that is read of a table, where these are not all."""

    @classmethod
    def of(cls, kernel: NativeKernel, tables: Tables, plan: Plan, others: Iterable[Plan]) -> TableReader:
        found: dict[str, dict[str, None]] = {}
        for each in (plan, *others):
            for scan in scans_of(each):
                found.setdefault(scan.table.lower(), {}).update(dict.fromkeys(each.source for each in scan.fields))
        tests = {name: native.expression(test).sql(dialect="duckdb") for name, test in tables_drawn(plan).items()}
        files = {name: paths for each in others for name, paths in _files_of(kernel, each).items()}
        return cls(kernel, tables, {name: tuple(columns) for name, columns in found.items()}, tests, files)

    @property
    def moved(self) -> Mapping[str, Moved]:
        return self.tables.moved

    def query(self, name: str) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The rows of a table, and what must be in memory for it."""
        table = self.kernel.catalog.table(name)
        columns, files = self.columns_of(table), self.files.get(name.lower())
        if files is not None:
            return self.kernel.reader.of_files(table, columns, files), ()
        body = self.kernel.reader.text(table, columns)
        if table.rows > STATIC_ROWS:
            return body, ()
        static = static_name(table, body)
        return f'SELECT * FROM "{static}"', ((static, body),)

    def change(self, moved: Moved, name: str) -> pa.Table | str:
        """What came and went in a table, as far as the plan looks at it: rows, or where they are many, a query for them."""
        test = self.tests.get(name)
        if test is None:
            return self._whole_change(moved, name)
        if moved.parts and not self.kernel.recent.holds(_identity(moved), (*self.columns[name], WEIGHT)):
            return self._sampled_change(moved, name, test)
        rows = self._whole_change(moved, name)
        if isinstance(rows, str):
            return f"SELECT * FROM ({rows}) WHERE {test}"
        return self.kernel.local.run(f"SELECT * FROM given WHERE {test}", (), {"given": rows})

    def _sampled_change(self, moved: Moved, name: str, test: str) -> str:
        """The rows of a change that pass a test, of which the others are not kept: they are many times more."""
        columns, reader = (*self.columns[name], WEIGHT), self.kernel.reader
        parts = ((part, reader.part(part, columns, WEIGHT)) for part in moved.parts)
        return " UNION ALL ".join(
            f"({tested_last(rows, test)})" if part.named else f"SELECT * FROM ({rows}) WHERE {test}" for part, rows in parts
        )

    def sampled(self, name: str, rows: str) -> str:
        """Those of some rows of a table, in any of its versions, that the plan looks at."""
        test = self.tests.get(name.lower().removesuffix(BEFORE))
        return rows if test is None else tested_last(rows, test)

    def _whole_change(self, moved: Moved, name: str) -> pa.Table | str:
        columns, reader = (*self.columns[name], WEIGHT), self.kernel.reader
        if not moved.parts:
            types = {column.name: to_arrow(column.type) for column in moved.after.columns} | {WEIGHT: pa.int64()}
            return pa.schema([(each, types[each]) for each in columns]).empty_table()
        if moved.most_rows > MOST_KEPT or self._is_quickly_read(moved, columns):
            return " UNION ALL ".join(reader.part(part, columns, WEIGHT) for part in moved.parts)
        local = self.kernel.local

        def read(wanted: Iterable[str]) -> pa.Table:
            return pa.concat_tables(
                local.run(reader.part(part, tuple(wanted), WEIGHT, in_order=True), (), {}) for part in moved.parts
            )

        return self.kernel.recent.rows(moved.after, _identity(moved), columns, read)

    def _is_quickly_read(self, moved: Moved, columns: Sequence[str]) -> bool:
        """Whether a change is in files of its own: reading some of its rows there is as quick as it is from memory."""
        return not any(part.named for part in moved.parts) and not self.kernel.recent.holds(_identity(moved), columns)

    def columns_of(self, table: Table) -> tuple[str, ...]:
        """Those that some scan reads; one at least, since rows without columns cannot be counted."""
        return self.columns.get(table.name.lower().removesuffix(BEFORE)) or table.column_names[:1]


def tested_last(rows: str, test: str) -> str:
    """The rows of a query that pass a test, which is made of few: DuckDB would test all that is read to find them."""
    return f"WITH found AS MATERIALIZED ({rows}) SELECT * FROM found WHERE {test}"


def _files_of(kernel: NativeKernel, plan: Plan) -> dict[str, tuple[str, ...]]:
    """The files of stored tables in which the sample lies that a plan reads of them."""
    found = {}
    for name, test in tables_drawn(plan).items():
        drawn = drawn_below(test)
        files = None if drawn is None else files_below(kernel.catalog.table(name).base, *drawn)
        if files is not None:
            found[name] = files
    return found


def _identity(moved: Moved) -> Hashable:
    """Tells what changed in a table apart."""
    return tuple(part.identity for part in moved.parts)
