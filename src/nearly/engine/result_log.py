"""The results of batches as files: how a running task hands them to the driver, and what a killed driver finds again.

    <catalog>/queries/<id>/query.json           what was asked
    <catalog>/queries/<id>/<site>-<start>.part  what the units of a site from position `start` on gave, up to the `end` in its head
    <catalog>/queries/<id>/<site>-<start>.claim who reads the units from position `start` on: the driver, or the task
    <catalog>/queries/<id>/ranges               variation ranges that the tasks decide by
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
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearly.engine.worker import decode, encode

RANGES = "ranges"
READY = "ready"
STOP = "stop"
YIELD = "yield"
QUERY = "query.json"
DRIVER, TASK = "driver", "task"
HEAD = ("site", "start", "end", "seconds", "ranges", "exact")
"""What the head of a batch's file says."""

_LENGTH = 8


@dataclass(frozen=True, slots=True)
class Batch:
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
    """The directory of one query."""

    path: Path

    def __post_init__(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Write down what was asked, all at once."""
        draft = self.path / f".{uuid.uuid4().hex}"
        draft.write_text(json.dumps(dict(facts)))
        draft.replace(self.path / QUERY)

    def description(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self.path / QUERY).read_text())
        except FileNotFoundError:
            return None
        return found

    def write(self, batch: Batch) -> bool:
        """Add a batch; False when another attempt was first."""
        head = {name: getattr(batch, name) for name in HEAD}
        draft = self.path / f".{uuid.uuid4().hex}"
        draft.write_bytes(_packed(head, batch.tables))
        try:
            os.link(draft, self._file(batch.site, batch.start))
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        return True

    def read(self, site: int, start: int) -> Batch | None:
        """The batch that begins at a position; None while there is none."""
        try:
            content = self._file(site, start).read_bytes()
        except FileNotFoundError:
            return None
        head, tables = _unpacked(content)
        return Batch(**{name: head[name] for name in HEAD}, tables=tables, bytes=len(content))

    def write_ranges(self, version: int, tables: Mapping[str, pa.Table]) -> None:
        """Tell the tasks about newer variation ranges."""
        draft = self.path / f".{uuid.uuid4().hex}"
        draft.write_bytes(_packed({"version": version}, tables))
        draft.replace(self.path / RANGES)

    def read_ranges(self) -> tuple[int, dict[str, pa.Table]]:
        """The newest ranges and their version."""
        try:
            head, tables = _unpacked((self.path / RANGES).read_bytes())
        except FileNotFoundError:
            return 0, {}
        return head["version"], tables

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
        """Be the one who reads from a position on; False when it is another's to read."""
        path = self._file(site, start).with_suffix(".claim")
        draft = self.path / f".{uuid.uuid4().hex}"
        draft.write_text(reader)
        try:
            os.link(draft, path)
        except FileExistsError:
            return path.read_text() == reader
        finally:
            draft.unlink()
        return True

    def say_ready(self) -> None:
        with suppress(FileNotFoundError):
            (self.path / READY).touch()

    @property
    def ready(self) -> bool:
        return (self.path / READY).exists()

    def ask_to_stop(self) -> None:
        """A log that is gone has nobody to ask."""
        if self.path.exists():
            (self.path / STOP).touch()

    def ask_to_yield(self) -> None:
        (self.path / YIELD).touch()

    def allow(self) -> None:
        """Take such wishes and all claims back."""
        for path in (self.path / READY, self.path / STOP, self.path / YIELD, *self.path.glob("*.claim")):
            path.unlink(missing_ok=True)

    @property
    def stopped(self) -> bool:
        return (self.path / STOP).exists() or not self.path.exists()

    @property
    def yielding(self) -> bool:
        return (self.path / YIELD).exists()

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _file(self, site: int, start: int) -> Path:
        return self.path / f"{site}-{start:06d}.part"


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
