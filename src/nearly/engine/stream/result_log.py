"""The results of batches as files: how a running task hands them to the driver, and what a killed driver finds again.

    <catalog>/queries/<id>/query.json           what was asked, and which versions of tables are kept for it
    <catalog>/queries/<id>/owner                locked by the driver as long as it lives
    <catalog>/queries/<id>/<site>-<start>.part  what the units of a site from position `start` on gave, up to the `end` in its head
    <catalog>/queries/<id>/<site>-<start>.claim who reads the units from position `start` on: the driver, or the task
    <catalog>/queries/<id>/ranges               variation ranges that the tasks decide by
    <catalog>/queries/<id>/looks                how many answers were made so far
    <catalog>/queries/<id>/ready                the task has started: the driver is to read nothing more itself
    <catalog>/queries/<id>/stop                 the task is to end at once
    <catalog>/queries/<id>/yield                the task is to end after its batch, so that others get their turn

Law: at most one file begins at a position, and it is complete when it is there (it is linked into place). A task that was started
again goes on where the files end, so no unit counts twice whatever is retried, killed or resumed.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearly.engine.native.payload import decode, encode
from nearly.engine.storage.locks import exclusive, is_free
from nearly.engine.storage.pins import QUERY
from nearly.errors import EngineError

RANGES = "ranges"
LOOKS = "looks"
READY = "ready"
STOP = "stop"
YIELD = "yield"
OWNER = "owner"
DRIVER, TASK = "driver", "task"
HEAD = ("site", "start", "end", "seconds", "ranges", "exact")
"""What the head of a batch's file says."""

_LENGTH = 8


@dataclass(frozen=True, slots=True)
class UnitBatch:
    """What a run of a site's units gave: rows for each stage, and how long it took in seconds.

    One that is `exact` has the rows of the query's exact answer instead, from all units, those of earlier batches included.
    """

    site: int
    start: int
    end: int
    seconds: float
    ranges: int
    tables: dict[str, pa.Table]
    bytes: int = 0
    exact: bool = False


@dataclass(frozen=True, slots=True)
class ResultLog:
    """The directory of one query. One that is gone stays gone: whatever is written to it then is lost, and counts as stopped."""

    path: Path

    @classmethod
    def create(cls, path: Path) -> ResultLog:
        """The log in this place, made if it is not there."""
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EngineError(f"cannot make the query's log {path}: {error.strerror}; free some space, or ask .exact()") from error
        return cls(path)

    @property
    def exists(self) -> bool:
        return self.path.is_dir()

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Be the driver of this query; another one is refused, and knows by the lock that it is being driven."""
        with exclusive(self.path / OWNER, f"query {self.path.name} is running, here or in another process"):
            yield

    @property
    def is_driven(self) -> bool:
        return not is_free(self.path / OWNER)

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Write down what was asked, all at once."""
        if not self._replace(QUERY, json.dumps(dict(facts)).encode()):
            raise EngineError(f"the query's log {self.path} was removed; run the query again")

    def description(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self.path / QUERY).read_text())
        except (FileNotFoundError, ValueError):  # a machine that lost its power may leave an empty file
            return None
        return found

    def write(self, batch: UnitBatch) -> bool:
        """Add a batch; False when another attempt was first, or the log is gone."""
        head = {name: getattr(batch, name) for name in HEAD}
        return self._link(self._file(batch.site, batch.start), _packed(head, batch.tables))

    def read(self, site: int, start: int) -> UnitBatch | None:
        """The batch that begins at a position; None while there is none."""
        try:
            content = self._file(site, start).read_bytes()
        except FileNotFoundError:
            return None
        try:
            head, tables = _unpacked(content)
        except (ValueError, KeyError, pa.ArrowException) as trouble:
            raise EngineError(f"the query's log {self.path} is damaged at {site}-{start}; run the query again") from trouble
        return UnitBatch(**{name: head[name] for name in HEAD}, tables=tables, bytes=len(content))

    def write_ranges(self, version: int, tables: Mapping[str, pa.Table]) -> None:
        """Tell the tasks about newer variation ranges."""
        self._replace(RANGES, _packed({"version": version}, tables))

    def read_ranges(self) -> tuple[int, dict[str, pa.Table]]:
        """The newest ranges and their version."""
        try:
            head, tables = _unpacked((self.path / RANGES).read_bytes())
        except FileNotFoundError:
            return 0, {}
        return head["version"], tables

    def note_looks(self, looks: int) -> None:
        """Remember how often somebody looked: intervals that hold at every look must know it, also after a kill."""
        self._replace(LOOKS, str(looks).encode())

    @property
    def looks(self) -> int:
        try:
            return int((self.path / LOOKS).read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def end(self, site: int, start: int = 0) -> int:
        """Where a site's files end."""
        while True:
            try:
                with self._file(site, start).open("rb") as file:
                    head = json.loads(file.read(int.from_bytes(file.read(_LENGTH), "big")))
            except FileNotFoundError:
                return start
            start = head["end"]

    def forget_after(self, site: int, valid: int) -> int:
        """Take back a site's batches from the first one on that was decided under ranges newer than a version; their units."""
        keeping, at, taken = True, 0, 0
        while (batch := self.read(site, at)) is not None:
            keeping = keeping and batch.ranges <= valid
            if not keeping:
                self._file(site, at).unlink(missing_ok=True)
                taken += batch.end - batch.start
            at = batch.end
        return taken

    def claim(self, site: int, start: int, reader: str) -> bool:
        """Be the one who reads from a position on; False when it is another's to read, or the log is gone."""
        path = self._file(site, start).with_suffix(".claim")
        if self._link(path, reader.encode()):
            return True
        try:
            return path.read_text() == reader
        except FileNotFoundError:
            return False

    def say_ready(self) -> None:
        self._wish(READY)

    @property
    def ready(self) -> bool:
        return (self.path / READY).exists()

    def ask_to_stop(self) -> None:
        """A log that is gone has nobody to ask."""
        self._wish(STOP)

    def ask_to_yield(self) -> None:
        self._wish(YIELD)

    def allow(self) -> None:
        """Take such wishes and all claims back."""
        for path in (self.path / READY, self.path / STOP, self.path / YIELD, *self.path.glob("*.claim")):
            path.unlink(missing_ok=True)

    @property
    def stopped(self) -> bool:
        return (self.path / STOP).exists() or not self.exists

    @property
    def yielding(self) -> bool:
        return (self.path / YIELD).exists()

    def remove(self) -> None:
        """Forget the query, whatever of its log is there; who still writes to it must not bring it back."""
        with suppress(OSError):
            self.path.rename(gone := self.path.with_name(f".gone-{uuid.uuid4().hex[:12]}"))
            shutil.rmtree(gone, ignore_errors=True)

    def _file(self, site: int, start: int) -> Path:
        return self.path / f"{site}-{start:06d}.part"

    def _wish(self, name: str) -> None:
        try:
            (self.path / name).touch()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise self._refusal(error) from error

    def _replace(self, name: str, content: bytes) -> bool:
        """Have a file of this content, all at once; False when the log is gone."""
        with self._draft(content) as draft, suppress(FileNotFoundError):
            if draft is not None:
                draft.replace(self.path / name)
                return True
        return False

    def _link(self, path: Path, content: bytes) -> bool:
        """Have a file of this content, all at once, unless there is one of the name; False then, and when the log is gone."""
        with self._draft(content) as draft, suppress(FileExistsError, FileNotFoundError):
            if draft is not None:
                os.link(draft, path)
                return True
        return False

    @contextmanager
    def _draft(self, content: bytes) -> Iterator[Path | None]:
        """A file that is not part of the log yet, and is not left behind; None when the log is gone."""
        draft = self.path / f".{uuid.uuid4().hex}"
        try:
            yield draft if self._written(draft, content) else None
        except OSError as error:
            raise self._refusal(error) from error
        finally:
            with suppress(OSError):
                draft.unlink()

    def _written(self, draft: Path, content: bytes) -> bool:
        try:
            draft.write_bytes(content)
        except FileNotFoundError:
            return False
        return True

    def _refusal(self, error: OSError) -> EngineError:
        return EngineError(f"cannot write the query's log {self.path}: {error.strerror}; free some space, or ask .exact()")


def _packed(head: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> bytes:
    """A head and tables as one run of bytes."""
    bodies = {name: encode(table) for name, table in tables.items()}
    text = json.dumps({**head, "sizes": {name: len(body) for name, body in bodies.items()}}).encode()
    return b"".join([len(text).to_bytes(_LENGTH, "big"), text, *bodies.values()])


def _unpacked(content: bytes) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    length = int.from_bytes(content[:_LENGTH], "big")
    head: dict[str, Any] = json.loads(content[_LENGTH : _LENGTH + length])
    tables, place = {}, _LENGTH + length
    for name, size in head["sizes"].items():
        tables[name] = decode(content[place : place + size])
        place += size
    return head, tables
