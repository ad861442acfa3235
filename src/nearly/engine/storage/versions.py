"""The versions of a table: a whole description now and then, and the batches between.

    table.json          the head: which description is the present one, the batches since, and what is kept of the past
    whole-<id>.json     a description of all layouts; never changed
    log-<id>.json       the batches of an epoch that is over; never changed

An epoch is a description and the batches after it. A new one begins when the batches become many, when a layout is added, when the
table is compacted, and when files are replaced. Its description may come with a record of the rows that came and went by that; only
without one there is a gap in the log.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from nearly.engine.storage.batches import Batch, after
from nearly.engine.storage.differences import VersionStep
from nearly.engine.storage.durable import write_durably
from nearly.engine.storage.layouts import Layout, Table
from nearly.engine.storage.pins import Pin, log_of
from nearly.engine.storage.serialise import batch_content, decode, encode, opened, read_batch, sealed
from nearly.errors import EngineError, SchemaError

Key = TypeVar("Key")
HEAD = "table.json"
MOST_BATCHES = 32
"""After so many batches a table is described as a whole again: reading it and committing to it take time for each."""
PINS = "pins"
"""The directory of files that name versions which something lasting needs."""
REMEMBERED = 64
"""So many descriptions, and tables in versions that were asked for, are kept in memory."""
KEPT = dt.timedelta(days=7)
"""Versions of an epoch that is over can be read so long, and longer while something pins them."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table: when it was made, by what, and how many rows that changed."""

    version: int
    time: dt.datetime
    operation: str
    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None


@dataclass(frozen=True, slots=True)
class Epoch:
    """A whole description of a table, and the batches since.

    `change` tells which rows came and went since the version before the description; its files are for those who follow changes.
    """

    file: str
    table: Table
    time: dt.datetime
    operation: str
    batches: tuple[Batch, ...] = ()
    change: Batch | None = None

    def at(self, version: int) -> Table:
        return after(self.table, (batch for batch in self.batches if batch.version <= version))

    @property
    def last(self) -> int:
        return self.batches[-1].version if self.batches else self.table.version

    @property
    def record(self) -> tuple[Batch, ...]:
        """All that is known of what changed."""
        return self.batches if self.change is None else (self.change, *self.batches)

    @property
    def commits(self) -> Iterator[Commit]:
        if self.change is None:
            yield Commit(self.table.version, self.time, self.operation)
        for batch in self.record:
            yield Commit(batch.version, batch.time, batch.operation, batch.inserted, batch.updated, batch.deleted)


@dataclass(frozen=True, slots=True)
class PastEpoch:
    """An epoch that is over: its versions, its files, and the directories that they need."""

    file: str
    log: str
    first: int
    last: int
    ended: dt.datetime
    directories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Versions:
    """All that is known of a table's versions.

    `notes` are of whoever keeps the table up to date, committed with its rows: of a view, which versions of its tables it is of.
    """

    present: Epoch
    table: Table
    past: tuple[PastEpoch, ...] = ()
    streams: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    def with_batch(self, batch: Batch) -> Versions:
        """After one more commit."""
        streams = {**self.streams, batch.stream[0]: batch.stream[1]} if batch.stream else self.streams
        epoch = replace(self.present, batches=(*self.present.batches, batch))
        return replace(self, present=epoch, table=after(self.table, [batch]), streams=streams)


def begun(table: Table, operation: str, time: dt.datetime | None = None, change: Batch | None = None) -> Epoch:
    """A new epoch, not yet written."""
    return Epoch(f"whole-{uuid.uuid4().hex[:12]}.json", table, time or now(), operation, change=change)


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def directories_of(epoch: Epoch, directory: Path) -> set[str]:
    """The directories below the table's own that hold files of an epoch."""
    used = directories_of_table(epoch.table, directory)
    for batch in epoch.record:
        files = [file for each in batch.layouts for file in (*each.files, each.vector)]
        used |= set(_below(directory, [file.path for file in (*files, batch.went) if file is not None]))
    return used


def directories_of_table(table: Table, directory: Path) -> set[str]:
    """The directories below the table's own in which its layouts lie."""
    return {name for layout in (*table.layouts, *table.behind) for name in _below(directory, _paths(layout))}


def _below(directory: Path, paths: Iterable[str]) -> Iterator[str]:
    for path in map(Path, paths):
        if path.is_relative_to(directory) and path != directory:
            yield path.relative_to(directory).parts[0]


def _paths(layout: Layout) -> list[str]:
    return [layout.path, *layout.manifest.paths, *(vector.path for vector in layout.vectors)]


class VersionStore:
    """Reads and writes the versions of the tables of a catalog; what was read is kept until it is replaced."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self._heads: dict[Path, tuple[tuple[int, int], Versions]] = {}
        self._wholes: dict[Path, Table] = {}
        self._at: dict[tuple[Path, int], Table] = {}

    def load(self, directory: Path) -> Versions | None:
        """The versions as last committed, None where there is no table; read again only when the head was replaced."""
        head = directory / HEAD
        try:
            found = stamp(head)
            if head not in self._heads or self._heads[head][0] != found:
                self._heads[head] = found, self._read(directory, head.read_text(encoding="utf-8"))
            return self._heads[head][1]
        except FileNotFoundError:
            if head.exists():
                return self.load(directory)  # it was replaced while it was read
            return None
        except (OSError, UnicodeDecodeError, EngineError) as error:
            raise EngineError(
                f"the catalog file {head} cannot be used: {error}; restore it, or remove the directory {directory} and "
                f"register the table again"
            ) from error

    def begin(self, directory: Path, before: Versions | None, epoch: Epoch, notes: Mapping[str, Any] | None = None) -> Versions:
        """Write a new epoch and make it the present one; versions of the old ones that are still kept can be read."""
        write_durably(directory / epoch.file, encode(epoch.table, self.root).encode())
        past = () if before is None else before.past
        if before is not None and before.present.table.version < epoch.table.version:
            past = (*past, self._closed(directory, before.present))
        alive = tuple(each for each in past if now() - each.ended < KEPT or each.last >= self._pinned(directory))
        kept = before or Versions(epoch, epoch.table)
        versions = Versions(epoch, epoch.table, alive, kept.streams, kept.notes if notes is None else notes)
        self.write(directory, versions)
        return versions

    def write(self, directory: Path, versions: Versions) -> None:
        """Replace the head, which is the commit; whoever does it has the lock, so that it is what he wrote."""
        head = directory / HEAD
        write_durably(head, self.head(versions).encode())
        self._heads[head] = stamp(head), versions

    def head(self, versions: Versions) -> str:
        """The text of a head."""
        present = versions.present
        return sealed({
            "whole": present.file, "time": present.time.isoformat(), "operation": present.operation,
            "batches": [batch_content(batch, present.table.columns, self.root) for batch in present.batches],
            "change": present.change and batch_content(present.change, present.table.columns, self.root),
            "streams": dict(versions.streams),
            "notes": dict(versions.notes),
            "past": [[e.file, e.log, e.first, e.last, e.ended.isoformat(), e.directories] for e in versions.past],
        })  # fmt: skip

    def at(self, directory: Path, versions: Versions, version: int) -> Table:
        """The table in one of its versions."""
        for file, find in self._holding(directory, versions, version):
            if (file, version) not in self._at:
                table = find().at(version)
                _remember(self._at, (file, version), replace(table, name=f"{table.name}@{version}"))
            return self._at[file, version]
        name, spans_ = versions.table.name, self._known(versions)
        known = sorted(each for each in spans_ if not any(a <= each[0] and each[1] <= b for a, b in spans_ - {each}))
        spans = ", ".join(f"{first} to {last}" if first < last else str(first) for first, last in known)
        raise SchemaError(f"table {name!r} has no version {version} that can still be read; there are {spans}")

    def commits(self, directory: Path, versions: Versions) -> list[Commit]:
        """All versions that can be read, the newest first."""
        found: dict[int, Commit] = {}
        for epoch in self._epochs(directory, versions, 0, versions.table.version):
            for commit in epoch.commits:
                known = found.get(commit.version)
                if known is None or known.inserted is None:
                    found[commit.version] = commit if known is None or commit.inserted is not None else known
        return sorted(found.values(), key=lambda commit: -commit.version)

    def batches(self, directory: Path, versions: Versions, since: int, until: int) -> dict[int, Batch]:
        """The batches after one version up to another, by version; what was replaced as a whole has none."""
        epochs = self._epochs(directory, versions, since, until)
        return {batch.version: batch for epoch in epochs for batch in epoch.record if since < batch.version <= until}

    def pin(self, directory: Path, versions: Versions, table: Table) -> Pin | None:
        """What keeps a table as it is; None when its files were replaced meanwhile."""
        for file, find in self._holding(directory, versions, table.version):
            epoch = find()
            known = versions.table if versions.present is epoch and table.version == epoch.last else epoch.at(table.version)
            if known.content == table.content and [each.files for each in known.layouts] == [each.files for each in table.layouts]:
                used = sorted(directories_of_table(table, directory))
                return Pin(table.name, directory.name, file.name, table.version, tuple(used))
        return None

    def pinned(self, directory: Path, versions: Versions | None, pin: Pin) -> Table:
        """The table that a pin keeps, whatever became of its epoch."""
        present = None if versions is None else versions.present
        epoch = present if present is not None and present.file == pin.epoch else self._left(directory, pin)
        return replace(epoch.at(pin.version), name=pin.table)

    def _left(self, directory: Path, pin: Pin) -> Epoch:
        """An epoch that is over; one without batches has no file of them."""
        table = self._whole(directory / pin.epoch)
        if not (directory / pin.log).exists():
            return Epoch(pin.epoch, table, now(), "")
        text = (directory / pin.log).read_text(encoding="utf-8")
        return opened(text, lambda read: self._epoch(pin.epoch, table, read))

    def between(self, directory: Path, versions: Versions, since: int, until: int) -> list[VersionStep]:
        """Descriptions of the table from one version to another, in order, two for each epoch: as it begins and as it ends."""
        found = []
        for epoch in reversed([*self._epochs(directory, versions, since, until)]):
            record = epoch.change if epoch.table.version > since else None
            found += [VersionStep(epoch.at(max(since, epoch.table.version)), record), VersionStep(epoch.at(min(until, epoch.last)))]
        return found

    def _holding(self, directory: Path, versions: Versions, version: int) -> Iterator[tuple[Path, Callable[[], Epoch]]]:
        """The epochs that have a version, the newest first, and how to read them."""
        present = versions.present
        if present.table.version <= version <= present.last:
            yield directory / present.file, lambda: present
        for each in reversed(versions.past):
            if each.first <= version <= each.last:
                yield directory / each.file, partial(self._past, directory, each)

    def _known(self, versions: Versions) -> set[tuple[int, int]]:
        return {(each.first, each.last) for each in versions.past} | {(versions.present.table.version, versions.present.last)}

    def _epochs(self, directory: Path, versions: Versions, first: int, last: int) -> Iterator[Epoch]:
        """The epochs that have versions between two, the newest first."""
        present = versions.present
        if present.last >= first and present.table.version <= last:
            yield present
        for each in reversed(versions.past):
            if each.last >= first and each.first <= last:
                yield self._past(directory, each)

    def _past(self, directory: Path, past: PastEpoch) -> Epoch:
        table = self._whole(directory / past.file)
        text = (directory / past.log).read_text(encoding="utf-8")
        return opened(text, lambda read: self._epoch(past.file, table, read))

    def _closed(self, directory: Path, epoch: Epoch) -> PastEpoch:
        """An epoch that is over, with its batches in a file of their own."""
        log = log_of(epoch.file)
        content = {
            "time": epoch.time.isoformat(), "operation": epoch.operation,
            "batches": [batch_content(batch, epoch.table.columns, self.root) for batch in epoch.batches],
            "change": epoch.change and batch_content(epoch.change, epoch.table.columns, self.root),
        }  # fmt: skip
        write_durably(directory / log, sealed(content).encode())
        used = tuple(sorted(directories_of(epoch, directory)))
        return PastEpoch(epoch.file, log, epoch.table.version, epoch.last, now(), used)

    def _read(self, directory: Path, text: str) -> Versions:
        return opened(text, lambda read: self._versions(directory, read))

    def _versions(self, directory: Path, read: Any) -> Versions:
        whole = self._whole(directory / read["whole"])
        present = self._epoch(read["whole"], whole, read)
        past = tuple(PastEpoch(file, log, low, high, _time(at), tuple(used)) for file, log, low, high, at, used in read["past"])
        return Versions(present, after(whole, present.batches), past, read["streams"], read.get("notes", {}))

    def _epoch(self, file: str, table: Table, read: Any) -> Epoch:
        batches = tuple(read_batch(each, table.columns, self.root) for each in read["batches"])
        change = read["change"] and read_batch(read["change"], table.columns, self.root)
        return Epoch(file, table, _time(read["time"]), read["operation"], batches, change)

    def _whole(self, file: Path) -> Table:
        """A whole description, which never changes."""
        if file not in self._wholes:
            _remember(self._wholes, file, decode(file.read_text(encoding="utf-8"), self.root))
        return self._wholes[file]

    def _pinned(self, directory: Path) -> float:
        """The oldest version that something lasting needs; a pin that a crash left without its number needs all of them."""
        found = [pin.read_text(encoding="utf-8") for pin in (directory / PINS).glob("*.pin")]
        return min((int(each) if each.isdecimal() else 0 for each in found), default=float("inf"))


def _remember(known: dict[Key, Table], key: Key, table: Table) -> None:
    """Keep one more; the oldest goes."""
    while len(known) >= REMEMBERED:
        known.pop(next(iter(known)), None)
    known[key] = table


def stamp(head: Path) -> tuple[int, int]:
    """Differs when a file was replaced."""
    status = head.stat()
    return status.st_mtime_ns, status.st_ino


def _time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)
