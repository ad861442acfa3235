"""Rows of large tables that a change can meet, kept for whoever asks next: views over the same tables look at the same rows.

The keys that one view asks for are mostly some of those in a column of the change, less what its filters drop. Where that is so,
and the rows for all of them are not many more or were asked for before, these are read, in an order of their own, and remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from nearly.engine.deltas.lookups import KeyLookup
from nearly.engine.deltas.reading import MOST_KEPT, TableReader
from nearly.engine.deltas.versions import Moved
from nearly.engine.deltas.workspace import Workspace
from nearly.engine.storage.layouts import Table
from nearly.plan.quoting import native_name
from nearly.rewrite.delta.domains import Domain

FAR_MORE = 4
"""Rows for so many times the keys that are asked for are read only when someone asks again."""
MOST_KEYS = 0.02
"""Neighbours are kept for keys that are fewer than this share of the table's rows."""


@dataclass(frozen=True, slots=True)
class Around:
    """The rows of a table around a column of a change, `known`: the query of its keys, and what tells them apart from others."""

    keys: str
    table: Table
    files: tuple[str, ...] | None
    column: str
    identity: Hashable
    moved: Moved
    known: str


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Finds rows that are worth keeping."""

    tables: TableReader
    space: Workspace
    rows: Mapping[str, int]
    """Rows of what can be read by name and has some."""

    def around(self, table: Table, files: tuple[str, ...] | None, column: str, keys: Domain, asked: int) -> Around | None:
        """All rows around a column of a change, where the keys asked for, so many at most, are some of its values.

        They lie in some files of the table, where these are given. A sample asks for few of them.
        """
        if self.tables.tests:
            return None
        own = self._moved(keys[0])
        if asked > MOST_KEYS * table.rows:
            return None
        for moved, known in self._columns(table, column, own, keys[1]):
            if max(moved.most_rows, own.most_rows) > MOST_KEPT:  # they are not kept themselves, and comparing keys takes long
                continue
            size, is_wider = self._compared(moved, known, own, keys[1])
            if not is_wider or size > MOST_KEYS * table.rows:
                continue
            identity = (self._identity(moved, known), table.content, table.base.files, files, column)
            if not self.tables.kernel.recent.was_asked(identity) and size > FAR_MORE * asked:
                return None
            return Around(_distinct(moved, known), table, files, column, identity, moved, known)
        return None

    def has(self, around: Around, keys: Domain) -> bool:
        """Whether some keys are among those of rows that were found."""
        own = self._moved(keys[0])
        return (around.moved, around.known) == (own, keys[1]) or self._compared(around.moved, around.known, own, keys[1])[1]

    def _moved(self, change: str) -> Moved:
        return next(moved for moved in self.tables.moved.values() if moved.names.source == change)

    def _identity(self, moved: Moved, column: str) -> Hashable:
        return tuple(part.identity for part in moved.parts), self.tables.tests.get(moved.after.name.lower()), column

    def _compared(self, moved: Moved, known: str, own: Moved, column: str) -> tuple[int, bool]:
        """How many values a column of a change has, and whether all values of another are among them; looked up once."""

        def compare() -> tuple[int, bool]:
            wide, lacking = _distinct(moved, known), "0"
            if (moved, known) != (own, column):
                others = f"({_distinct(own, column)}) AS a ANTI JOIN ({wide}) AS b ON a.k IS NOT DISTINCT FROM b.k"
                lacking = f"(SELECT count(*) FROM {others})"
            ((size, left),) = self.space.execute(f"SELECT (SELECT count(*) FROM ({wide})), {lacking}")
            return int(size), not left

        question = ("among", self._identity(moved, known), self._identity(own, column))
        return self.tables.kernel.recent.answer(question, compare)

    def _columns(self, table: Table, column: str, own: Moved, key: str) -> list[tuple[Moved, str]]:
        """Columns of changes whose values may be the keys: those of the same name first, so that many views choose the same."""
        type_ = table.column(column).type
        found = [
            (moved, each)
            for name, moved in self.tables.moved.items()
            for each in self.tables.columns[name]
            if each == column and moved.after.column(each).type == type_ and moved.names.source in self.rows
        ]
        return [*found, *([(own, key)] if key != column and own.after.column(key).type == type_ else [])]

    def keep(self, around: Around, keys: Callable[[], str]) -> pa.Table:
        """The rows whose keys are in a temporary table; columns that nobody asked for yet are read."""
        kernel = self.tables.kernel

        def read(wanted: Sequence[str]) -> pa.Table:
            lookup = KeyLookup(kernel.reader, self.space, around.table, around.column, keys(), around.files)
            return self.space.table(lookup.rows_in_order(wanted))

        few = around.column in around.table.key  # of any other value there may be many rows
        return kernel.recent.rows(around.table, around.identity, self.tables.columns_of(around.table), read, usual=few)


def _distinct(moved: Moved, column: str) -> str:
    return f"SELECT DISTINCT {native_name(column)} AS k FROM {native_name(moved.names.source)}"
