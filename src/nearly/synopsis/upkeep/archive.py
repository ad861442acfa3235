"""The archive: the rows themselves, from which a tree can be built again (JanusAQP, section 3.2.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from nearly.synopsis.build.drafting import Draft, LeafCounts, finished
from nearly.synopsis.structure.rows import Hashes, Rows
from nearly.synopsis.structure.state import TreeState
from nearly.synopsis.upkeep.changes import Changes, apply
from nearly.synopsis.upkeep.known_rows import KnownRows


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
