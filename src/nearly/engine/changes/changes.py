"""Changes as a session offers them: one by one, or several in a transaction of the thread that began it."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearly.engine.changes.batch_files import Change
from nearly.engine.changes.compaction import compact, compact_alone, is_due
from nearly.engine.changes.feed import changes
from nearly.engine.changes.finding import parsed, parsed_values
from nearly.engine.changes.operations import ERROR, Changer
from nearly.engine.changes.statements import Changed, change_of
from nearly.engine.changes.streams.following import ANYTHING, Also, Follower
from nearly.engine.changes.streams.quarantine import read_aside
from nearly.engine.changes.transactions import Find, Transaction
from nearly.engine.engine import Engine
from nearly.engine.spark.stream_follow import Following
from nearly.engine.storage.layouts import Table
from nearly.engine.storage.versions import Commit
from nearly.engine.writing.parquet_writer import Progress
from nearly.engine.writing.preparation import prepare
from nearly.errors import Conflict, EngineError, NearlyError, SchemaError
from nearly.plan.syntax.statements import Statement

logger = logging.getLogger(__name__)

ATTEMPTS = 5
"""How often a change is tried again that met another one, as when the table is compacted meanwhile."""

Stream = tuple[str, int]


class Changes:
    """Inserts, deletes, updates and merges rows of the tables of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._mine = threading.local()
        self._waiting: set[str] = set()
        self._later = ThreadPoolExecutor(1, thread_name_prefix="nearly-compact")

    def insert(self, name: str, rows: Any, batch: Stream | None = None) -> Table:
        return self.change(name, lambda found: found.insert(rows), batch)

    def delete(self, name: str, rows: Any, where: str | None, missing: str = ERROR, batch: Stream | None = None) -> Table:
        if (rows is None) == (where is None):
            raise SchemaError("delete takes either rows or where=..., to empty a table where='true'")
        if where is not None:
            condition = parsed(where, "condition")
            return self.change(name, lambda found: found.delete_where(condition), batch)
        return self.change(name, lambda found: found.delete(rows, missing), batch)

    def update(self, name: str, assignments: Mapping[str, str], where: str | None, batch: Stream | None = None) -> Table:
        condition = None if where is None else parsed(where, "condition")
        return self.change(name, lambda found: found.update(parsed_values(found.table, assignments), condition), batch)

    def merge(self, name: str, rows: Any, batch: Stream | None = None) -> Table:
        return self.change(name, lambda found: found.merge(rows), batch)

    def execute(self, statement: Statement, batch: Stream | None = None) -> Changed:
        """Do what a statement says."""
        made: list[Change] = []

        def find(changer: Changer) -> Change:
            made[:] = [change_of(changer, statement)]
            return made[0]

        table = self.change(statement.table, find, batch)
        operation = type(statement).__name__.removesuffix("Into").removesuffix("From").removesuffix("Set").lower()
        if not made:
            return Changed(operation, table.name, table.version)
        change = made[0]
        came = 0 if change.came is None else change.came.num_rows
        gone = 0 if change.places is None else len(change.places)
        return Changed(operation, table.name, table.version, came - change.updated, change.updated, gone - change.updated)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All changes of this thread, until the block ends, become visible together; none when it ends by an error."""
        self._engine.life.refuse_over()
        self.refuse_inside("another transaction")
        with Transaction(self._engine, several=True) as transaction:
            self._mine.open = transaction
            try:
                yield
            finally:
                self._mine.open = None

    def refuse_inside(self, what: str) -> None:
        """Refuse what cannot be part of a transaction; it would wait for the transaction's own end."""
        if getattr(self._mine, "open", None) is not None:
            raise EngineError(f"a transaction is open in this thread; {what} cannot be nested in it, but comes before or after")

    def compact(self, name: str, progress: Progress | None = None) -> Table:
        """Compact a table, and write again what is behind of its other layouts; where commits come between, they have to wait."""
        self._engine.life.refuse_over()
        self.refuse_inside("compact")
        try:
            table = compact(self._engine, name, progress)
        except Conflict:
            table = compact_alone(self._engine, name, progress)
        for layout in (*table.behind, *(each for each in table.layouts[1:] if each.vectors)):
            by, buckets = (None, None) if layout.clustering is None else (layout.clustering.columns, layout.clustering.buckets)
            table = prepare(self._engine.catalog, self._engine.cluster.spark, name, by, buckets)
        return table

    def follow(self, name: str, stream: Any, source: str, op: str | None, checkpoint: Path | None, every: str) -> Following:
        return self.follower(name, source, op).follow(stream, checkpoint, every)

    def follow_kafka(
        self, name: str, servers: str, topics: Sequence[str], source: str, op: str | None, checkpoint: Path | None, every: str,
        settings: Mapping[str, str],
    ) -> Following:  # fmt: skip
        return self.follower(name, source, op).follow_kafka(servers, topics, settings, checkpoint, every)

    def quarantine(self, name: str) -> pa.Table:
        return read_aside(self._engine.catalog.directory(self._engine.catalog.table(name).name))

    def follower(self, name: str, source: str, op: str | None, also: Also = ANYTHING) -> Follower:
        """Who takes the batches of a stream into a table, and compacts it in the background when that is due."""
        self._engine.life.refuse_over()
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", source):
            raise SchemaError(f"name={source!r} names the stream: 1 to 60 letters, digits, - and _")
        return Follower(self._engine, self._engine.catalog.table(name).name, source, op, also, self.compact_later)

    def between(self, name: str, since: int, until: int | None = None) -> pa.Table:
        self._engine.life.refuse_over()
        return changes(self._engine, name, since, until)

    def history(self, name: str) -> list[Commit]:
        self._engine.life.refuse_over()
        return self._engine.catalog.commits(name)

    def close(self) -> None:
        """Wait for a compaction that is under way; it ends with the session, at its next batch of rows."""
        self._later.shutdown(cancel_futures=True)

    def compact_later(self, table: Table) -> None:
        """Compact a table in the background when that is due; a commit meanwhile puts it off."""
        name = table.name.lower()
        if name in self._waiting or not is_due(self._engine, table):
            return

        def work() -> None:
            try:
                with suppress(Conflict):
                    compact(self._engine, name)
            except NearlyError:
                if not self._engine.life.is_over:
                    logger.warning("table %r could not be compacted", name, exc_info=True)
            finally:
                self._waiting.discard(name)

        self._waiting.add(name)
        self._later.submit(work)

    def change(self, name: str, find: Find, batch: Stream | None = None) -> Table:
        """Make the change that `find` finds; others that meet it are waited for."""
        self._engine.life.refuse_over()
        transaction: Transaction | None = getattr(self._mine, "open", None)
        if transaction is not None:
            return transaction.change(name, find, batch)
        for attempt in range(ATTEMPTS):
            try:
                with Transaction(self._engine) as alone:
                    table = alone.change(name, find, batch)
                break
            except Conflict:
                if attempt == ATTEMPTS - 1:
                    raise
        self.compact_later(table)
        return table
