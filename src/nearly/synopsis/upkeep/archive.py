"""Changes in the order in which they happened, which rows there are after them, and the rows themselves.

From the archive a tree can be built again (JanusAQP, section 3.2.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from nearly.synopsis.build.drafting import Draft, LeafCounts, finished
from nearly.synopsis.structure.rows import Hashes, Integers, Mask, Rows
from nearly.synopsis.structure.state import TreeState


class Archive(Protocol):
    """Rows at the beginning, and all changes since, numbered from 1."""

    def base(self, draft: Draft) -> LeafCounts:
        """One pass over the rows at the beginning."""
        ...

    def changes(self, upto: int) -> Iterator[Changes]:
        """The changes up to a number, in order."""
        ...

    def contents(self) -> Hashes:
        """The content (see `Rows.content`) of every row at the beginning."""
        ...


def rebuild(archive: Archive, draft: Draft, upto: int) -> TreeState:
    """The state of a new tree after the change of number `upto`."""
    state = finished(draft, archive.base(draft))
    for changes in archive.changes(upto):
        apply(state, changes)
    return state


@dataclass(slots=True)
class MemoryArchive:
    """Rows kept in memory."""

    rows: list[Rows]
    log: list[Changes] = field(default_factory=list)

    def base(self, draft: Draft) -> LeafCounts:
        part = LeafCounts.nothing(draft)
        for rows in self.rows:
            part.add(draft, rows)
        return part

    def contents(self) -> Hashes:
        return np.concatenate([np.empty(0, np.uint64), *(rows.content for rows in self.rows)])

    def changes(self, upto: int) -> Iterator[Changes]:
        yield from self.log[:upto]


def known_rows(archive: Archive, upto: int) -> KnownRows:
    """The rows that there are after the change of number `upto`; one pass over the archive."""
    found = KnownRows(archive.contents())
    for changes in archive.changes(upto):
        found.apply(changes)
    return found


@dataclass(frozen=True, slots=True)
class Change:
    """Rows that come, or go. An update is a delete followed by an insert."""

    insert: bool
    rows: Rows


Changes = Sequence[Change]


def apply(state: TreeState, changes: Changes) -> None:
    """Move a state by changes."""
    for change in changes:
        if not len(change.rows):
            continue
        if change.insert:
            state.insert(change.rows)
        else:
            state.delete(change.rows)


def size(changes: Changes) -> int:
    return sum(len(change.rows) for change in changes)


FEW = 1 << 20
"""So many different rows of changes are kept apart from the archive's, which are costly to move."""


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

    def missing(self, contents: Hashes, pending: list[Change]) -> Mask:
        """Which of these rows are not there, changes that are about to be applied included."""
        there = self._archived.count(contents) + self._changed.count(contents) + _moved(pending).count(contents)
        order = np.argsort(contents, kind="stable")
        ordered = contents[order]
        occurrence = np.empty(len(contents), np.int64)
        occurrence[order] = np.arange(len(contents)) - np.searchsorted(ordered, ordered)
        found: Mask = occurrence >= there
        return found
