"""The rows of automatic views: Parquet files below the catalog, known by a list that is replaced as a whole.

    <catalog>/autoview/views.json       what is kept: plans, versions of tables, what it cost and saved
    <catalog>/autoview/rows/<number>/   the rows of one view
    <catalog>/autoview/owner            locked by the process whose session has automatic views

Law: a view is in the list only when its files are complete; files that no list names are removed when the store is opened. The
bytes of all files together never exceed the limit: rows are encoded in memory, and written when it is known that they fit.
"""

from __future__ import annotations

import re
import shutil
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nearly.autoview.candidates import Candidate
from nearly.autoview.options import Holding
from nearly.engine.changes.given_rows import arrow_schema
from nearly.engine.storage.durable import DRAFT, flush, write_durably, writing_in
from nearly.engine.storage.layouts import Table
from nearly.engine.storage.locks import exclusive
from nearly.engine.storage.registration import describe_parquet
from nearly.engine.storage.serialise import opened, sealed
from nearly.errors import EngineError
from nearly.plan.nodes import Field, Scan
from nearly.plan.schema import SchemaColumn
from nearly.rewrite.views.use_stored import StoredPlan

LIST, ROWS, FILE, OWNER = "views.json", "rows", "rows.parquet", "owner"
PREFIX = "autoview "
"""Before the number of a view: no user's table has a name with a space."""
_LIST_DRAFT = re.compile(DRAFT.format(name=re.escape(LIST)))
CLOSING_SECONDS = 10.0
BUSY = "automatic views of this catalog are on in another session; switch them off there first, or use another catalog"


class NoRoom(Exception):
    """The rows of a view need more bytes than there are."""


@dataclass(slots=True)
class MadeView:
    """A view that is there: what it computes, its rows, and version and content of the tables that they are of, by name.

    `zone` is the time zone in which it was computed: dates and texts of points in time are others in another one.
    """

    candidate: Candidate
    table: Table
    versions: Mapping[str, tuple[int, str]]
    holding: Holding
    path: Path
    zone: str
    readers: int = 0
    stale_since: float | None = None
    """When it was first seen that its tables are others now."""

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def id(self) -> str:
        return self.candidate.id

    @property
    def is_sound(self) -> bool:
        """Whether its files are what they were."""
        try:
            self.table.base.verify()
        except EngineError:
            return False
        return True

    def fits(self, tables: Mapping[str, Table], zone: str) -> bool:
        """Whether its rows are of these tables as they are, in this time zone."""
        return self.zone == zone and all(
            name in tables and tables[name].content == content for name, (_, content) in self.versions.items()
        )

    @property
    def plan(self) -> StoredPlan:
        """What the matcher needs."""
        fields = tuple(Field(f"{each.name}_stored", each.name, each.type, each.nullable) for each in self.table.columns)
        stored = self.candidate.stored
        return StoredPlan(self.candidate.plan, stored.maintained, stored.reading, Scan(self.table.name, fields))


@dataclass(frozen=True, slots=True)
class Encoded:
    """The rows of a view as the content of a file, in memory."""

    content: pa.Buffer
    rows: int

    @property
    def bytes(self) -> int:
        return int(self.content.size)


def encoded(candidate: Candidate, batches: Iterable[pa.RecordBatch], most: int) -> Encoded:
    """Encode rows as they come; `NoRoom` as soon as they are more than some bytes."""
    pairs = zip(candidate.stored.columns, candidate.stored.maintained.columns, strict=True)
    schema = arrow_schema([SchemaColumn(name, column.type) for name, column in pairs])
    sink, rows = pa.BufferOutputStream(), 0
    with pq.ParquetWriter(sink, schema, compression="snappy", store_decimal_as_integer=True) as writer:
        for batch in batches:
            writer.write_table(pa.Table.from_batches([batch.rename_columns(schema.names)]).cast(schema))
            rows += batch.num_rows
            if sink.tell() > most:
                raise NoRoom(f"its first {rows:,} rows take {sink.tell():,} bytes")
    content = sink.getvalue()
    if content.size > most:
        raise NoRoom(f"its {rows:,} rows take {content.size:,} bytes")
    return Encoded(content, rows)


class ViewStore:
    """The files of automatic views; one session of one process has them."""

    def __init__(self, directory: Path, limit: int) -> None:
        self.directory, self.limit = directory, limit
        self.lock = threading.RLock()
        self._written = threading.Condition(self.lock)
        self.kept: dict[str, MadeView] = {}
        self.changes = 0
        """How often a view came or went."""
        self._owned = ExitStack()
        self._reserved = 0
        self._dying: list[MadeView] = []
        self._is_closed = False
        self._number = 0
        with writing_in(directory):
            (directory / ROWS).mkdir(parents=True, exist_ok=True)
        self._owned.enter_context(exclusive(directory / OWNER, BUSY))

    def refuse_more(self) -> None:
        """From now on no view comes: a query that is making one may not be done before all are to be gone."""
        with self.lock:
            self._is_closed = True

    def close(self) -> None:
        """Give the directory to whoever wants it next; a view that is being written is removed before."""
        self.refuse_more()
        with self._written:
            self._written.wait_for(lambda: not self._reserved, CLOSING_SECONDS)
        self._owned.close()

    @property
    def rows(self) -> Path:
        """Where the rows are."""
        return self.directory / ROWS

    @property
    def bytes(self) -> int:
        """What all files have, those on their way and those that are still read included."""
        with self.lock:
            return self._reserved + sum(each.holding.bytes for each in (*self.kept.values(), *self._dying))

    def add(
        self,
        candidate: Candidate,
        rows: Encoded,
        versions: Mapping[str, tuple[int, str]],
        holding: Holding,
        zone: str,
        make_room: Callable[[], None] = lambda: None,
    ) -> MadeView:
        """Have a view; one that computes the same goes. `NoRoom` where it does not fit beside what is there, or none may come.

        What `make_room` lets go of is let go of for this view alone. Nobody waits for the writing: meanwhile its bytes are taken.
        """
        with self.lock:
            self._refuse_closed()
            make_room()
            if self.bytes + rows.bytes > self.limit:
                raise NoRoom(f"{self.bytes + rows.bytes:,} bytes")
            self._reserved += rows.bytes
            self._number += 1
            name = f"{PREFIX}{self._number}"
        path = self.rows / uuid.uuid4().hex[:12]
        try:
            with writing_in(path):
                path.mkdir(parents=True)
                (path / FILE).write_bytes(rows.content)
                flush(path / FILE)
            kept = MadeView(candidate, describe_parquet(name, [str(path)]), versions, holding, path, zone)
            with self.lock:
                self._refuse_closed()
                before = self.kept.pop(kept.id, None)
                self.kept[kept.id] = kept
                self.changes += 1
                self._free(rows.bytes)
                if before is not None:
                    self._dying.append(before)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            with self.lock:
                self._free(rows.bytes)
            raise
        self._sweep_dying()
        return kept

    def _free(self, size: int) -> None:
        self._reserved -= size
        self._written.notify_all()

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise NoRoom("automatic views are off")

    def remove(self, id_: str) -> None:
        """Let go of a view; its files go when nobody reads them."""
        with self.lock:
            kept = self.kept.pop(id_, None)
            if kept is not None:
                self.changes += 1
                self._dying.append(kept)
        self._sweep_dying()

    @contextmanager
    def reading(self, views: Iterable[MadeView]) -> Iterator[bool]:
        """While these views are read, their files stay; False where one is gone already."""
        mine = list(views)
        with self.lock:
            there = all(self.kept.get(each.id) is each for each in mine)
            for each in mine:
                each.readers += 1
        try:
            yield there
        finally:
            with self.lock:
                for each in mine:
                    each.readers -= 1
            self._sweep_dying()

    def _sweep_dying(self) -> None:
        with self.lock:
            free = [each for each in self._dying if not each.readers]
            for each in free:
                shutil.rmtree(each.path, ignore_errors=True)
            self._dying = [each for each in self._dying if each.readers]

    def save(self, content: Any) -> None:
        """Write the list, durably."""
        write_durably(self.directory / LIST, sealed(content).encode())

    def restore(self, views: Iterable[MadeView], number: int) -> None:
        """Have views that an earlier session made, and remove all other files."""
        with self.lock:
            self._number = max(self._number, number)
            self.kept = {each.id: each for each in views}
            self.changes += 1
            used = {each.path.name for each in self.kept.values()}
        for found in self.rows.iterdir():
            if found.name not in used:
                shutil.rmtree(found, ignore_errors=True)
        for found in self.directory.iterdir():
            if _LIST_DRAFT.fullmatch(found.name):  # of a session that was killed: nobody else writes here now
                with suppress(OSError):
                    found.unlink()

    @property
    def number(self) -> int:
        return self._number

    def clear(self) -> None:
        """Let go of all views."""
        for id_ in list(self.kept):
            self.remove(id_)


def read_list(directory: Path) -> Any | None:
    """The list that was written last; None where there is none that can be read."""
    with suppress(OSError, EngineError, UnicodeDecodeError):
        return opened((directory / LIST).read_text(encoding="utf-8"), dict)
    return None
