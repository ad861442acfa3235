"""Which rows there are, as a bag of hashes of their contents: a delete of a row that is not there must not change a count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearly.synopsis.structure.rows import Hashes, Integers, Mask
from nearly.synopsis.upkeep.changes import Change, Changes

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
