"""The batches of changes that a synopsis took, on disk, and which rows there are after them.

Law: a batch is acknowledged when its file is in place, whole; a file is never replaced, and a missing one is an error. Together
with the table they are the archive from which a tree can be built again (JanusAQP, section 3.2.1).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nearly.engine.storage.durable import write_durably, writing_in
from nearly.errors import EngineError
from nearly.synopsis.build.packing import from_bytes, pack_rows, to_bytes, unpack_rows
from nearly.synopsis.structure.rows import Hashes, Integers, Mask
from nearly.synopsis.structure.state import Changes, RowChange

FEW = 1 << 20
"""So many different rows of changes are kept apart from the archive's, which are costly to move."""


@dataclass(frozen=True, slots=True)
class LoggedBatch:
    """Changes with what else must survive with them: where they came from, new texts, and answers given on the way."""

    changes: Changes
    stream: str | None = None
    number: int | None = None
    texts: Mapping[str, list[str]] = field(default_factory=dict)
    replies: tuple[Mapping[str, Any], ...] = ()


class ChangeLog:
    """One file `<number>.npz` for each batch in a directory of its own, numbered from 1."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def append(self, number: int, batch: LoggedBatch) -> None:
        """Acknowledge a batch. One that is there already belongs to somebody else, and is not replaced."""
        if self._file(number).exists():
            raise EngineError(
                f"batch {number} of the synopsis in {self.directory.parent} was written by another session; open it again"
            )
        meta = {"stream": batch.stream, "number": batch.number, "texts": dict(batch.texts), "replies": list(batch.replies),
                "inserts": [change.insert for change in batch.changes]}  # fmt: skip
        arrays: dict[str, Any] = {"meta": np.frombuffer(json.dumps(meta, ensure_ascii=False).encode(), np.uint8)}
        for place, change in enumerate(batch.changes):
            arrays |= pack_rows(change.rows, f"{place}_")
        with writing_in(self.directory.parent):
            self.directory.mkdir(exist_ok=True)
        write_durably(self._file(number), to_bytes(arrays))

    def read(self, number: int) -> LoggedBatch:
        arrays = from_bytes(self._file(number).read_bytes())
        meta = json.loads(arrays["meta"].tobytes())
        changes = tuple(RowChange(insert, unpack_rows(arrays, f"{place}_")) for place, insert in enumerate(meta["inserts"]))
        return LoggedBatch(changes, meta["stream"], meta["number"], meta["texts"], tuple(meta["replies"]))

    def after(self, number: int, upto: int | None = None) -> Iterator[tuple[int, LoggedBatch]]:
        """The batches after a number, in order; with `upto`, all of them up to that one. One that is missing is an error."""
        last = self.last if upto is None else upto
        for each in range(number + 1, last + 1):
            try:
                batch = self.read(each)
            except (OSError, KeyError, ValueError, zipfile.BadZipFile) as trouble:
                raise EngineError(
                    f"batch {each} of the synopsis in {self.directory.parent} cannot be read: {trouble}; drop it and build it again"
                ) from trouble
            yield each, batch

    @property
    def last(self) -> int:
        """The number of the last batch in the log."""
        return max((int(path.stem) for path in self.directory.glob("*.npz") if path.stem.isdigit()), default=0)

    def _file(self, number: int) -> Path:
        return self.directory / f"{number:012d}.npz"


@dataclass(slots=True)
class _Bag:
    hashes: Hashes
    counts: Integers

    @classmethod
    def of(cls, hashes: Hashes, counts: Integers | None = None) -> _Bag:
        """Equal hashes taken together; what comes to nothing is left out."""
        found, places = np.unique(hashes, return_inverse=True)
        summed = np.bincount(places, counts, len(found)).astype(np.int64)
        return cls(found[summed != 0], summed[summed != 0])

    def plus(self, other: _Bag) -> _Bag:
        return _Bag.of(np.concatenate([self.hashes, other.hashes]), np.concatenate([self.counts, other.counts]))

    def count(self, wanted: Hashes) -> Integers:
        if not len(self.hashes):
            return np.zeros(len(wanted), np.int64)
        places = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        return np.where(self.hashes[places] == wanted, self.counts[places], 0)


def _moved(changes: Changes) -> _Bag:
    hashes = [change.rows.content for change in changes]
    signs = [np.full(len(change.rows), 1 if change.insert else -1) for change in changes]
    return _Bag.of(np.concatenate([np.empty(0, np.uint64), *hashes]), np.concatenate([np.empty(0, np.int64), *signs]))


class KnownRows:
    """Law: `missing` marks a row exactly when the bag has fewer rows of its content than were asked for up to it."""

    def __init__(self, contents: Hashes) -> None:
        self._archived = _Bag.of(contents)
        self._changed = _Bag.of(np.empty(0, np.uint64))

    def apply(self, changes: Changes) -> None:
        self._changed = self._changed.plus(_moved(changes))
        if len(self._changed.hashes) > FEW:
            self._archived, self._changed = self._archived.plus(self._changed), _Bag.of(np.empty(0, np.uint64))

    def missing(self, contents: Hashes, pending: list[RowChange]) -> Mask:
        """Which of these rows are not there, changes that are about to be applied included."""
        there = self._archived.count(contents) + self._changed.count(contents) + _moved(pending).count(contents)
        order = np.argsort(contents, kind="stable")
        ordered = contents[order]
        occurrence = np.empty(len(contents), np.int64)
        occurrence[order] = np.arange(len(contents)) - np.searchsorted(ordered, ordered)
        found: Mask = occurrence >= there
        return found


def known_rows(contents: Hashes, changes: Iterable[Changes]) -> KnownRows:
    """The rows that there are after changes to rows of these contents."""
    found = KnownRows(contents)
    for each in changes:
        found.apply(each)
    return found
