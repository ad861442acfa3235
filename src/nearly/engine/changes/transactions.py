"""Commits of changes to one table or several, all of them or none."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from nearly.engine.changes.batch_files import Change, new_directory, write_batch
from nearly.engine.changes.operations import Changer
from nearly.engine.engine import Engine
from nearly.engine.storage.batches import Batch, after
from nearly.engine.storage.catalog import view_refusal
from nearly.engine.storage.layouts import Table
from nearly.errors import Conflict, SchemaError

Find = Callable[[Changer], Change]
"""Finds what a change does to a table."""

LAST_NUMBER = 1 << 63
"""Numbers of a stream's batches lie below."""


class Transaction:
    """Changes that are written one by one and become visible together, when the block ends without an error.

    Others who change the same tables wait meanwhile. Queries see the tables as they were before.
    """

    def __init__(self, engine: Engine, several: bool = False) -> None:
        self._engine = engine
        self._several = several
        self._tables: dict[str, Table] = {}
        self._batches: list[tuple[Table, Batch]] = []
        self._directories: list[Path] = []
        self._held = ExitStack()

    def __enter__(self) -> Self:
        if self._several:  # two that wait for tables of each other would wait for ever
            self._held.enter_context(self._engine.catalog.transacting())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._held:
            try:
                if kind is None:
                    self.commit()
            except Conflict:  # any other error may have come after the commit, whose files are then needed
                self._remove()
                raise
            self._remove()

    def change(self, name: str, find: Find, stream: tuple[str, int] | None = None) -> Table:
        """Make one more change to a table, as it is after those before; a batch that was taken from a stream changes nothing."""
        table = self._table(name)
        if stream is not None and self._taken(table, stream):
            return table
        directory = new_directory(self._engine, table)
        try:
            change = find(Changer(self._engine, table, directory, tuple(self._tables.values())))
            if change.is_empty and stream is None:  # that a batch was taken is remembered also where it changed nothing
                return table
            batch = write_batch(self._engine, table, replace(change, stream=stream), directory)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        self._directories.append(directory)
        self._batches.append((table, batch))
        self._tables[table.name.lower()] = changed = after(table, [batch])
        return changed

    def commit(self) -> None:
        """Make all changes so far visible."""
        if self._batches:
            self._engine.catalog.commit_batches(self._batches)
        self._batches.clear()
        self._directories.clear()

    def _table(self, name: str) -> Table:
        """The table as the next change finds it; from the first on, it is this transaction's turn."""
        known = self._tables.get(name.lower()) if isinstance(name, str) else None
        if known is None:
            catalog = self._engine.catalog
            self._held.enter_context(catalog.changing(name))
            known = catalog.table(name)
            if known.view is not None:
                raise view_refusal(known)
            self._held.enter_context(self._engine.reading([known]))
            self._tables[name.lower()] = known
        return known

    def _taken(self, table: Table, stream: tuple[str, int]) -> bool:
        name, number = _checked(stream)
        mine = [
            batch.stream[1]
            for changed, batch in self._batches
            if changed.name == table.name and batch.stream and batch.stream[0] == name
        ]
        last = max(mine, default=self._engine.catalog.taken(table.name, name))
        return last is not None and number <= last

    def _remove(self) -> None:
        """What was written and not committed."""
        for directory in self._directories:
            shutil.rmtree(directory, ignore_errors=True)
        self._directories.clear()


def _checked(stream: object) -> tuple[str, int]:
    """The name of a stream and the number of a batch of it."""
    match stream:
        case (str(name), int(number)) if name and not isinstance(number, bool) and 0 <= number < LAST_NUMBER:
            return name, number
    raise SchemaError(f"batch={stream!r} must be the name of a stream and a whole number from 0 on, such as ('orders', 7)")
