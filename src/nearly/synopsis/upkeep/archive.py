"""The archive: the rows themselves, from which a tree can be built again (JanusAQP, section 3.2.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from nearly.synopsis.build.drafting import Draft, Part, finished
from nearly.synopsis.structure.catch_up import CatchUp
from nearly.synopsis.structure.rows import Rows, empty, tickets_of
from nearly.synopsis.structure.state import Leaves, State
from nearly.synopsis.upkeep.changes import Changes, apply

READING_ORDER = 0x6F72646572


class Archive(Protocol):
    """Rows at the beginning, and all changes since, numbered from 1."""

    def base(self, draft: Draft, goal: tuple[float, float] | None) -> Part:
        """One pass over the rows at the beginning; with a goal, only a random share of them is counted."""
        ...

    def changes(self, upto: int) -> Iterator[Changes]:
        """The changes up to a number, in order."""
        ...

    @property
    def base_rows(self) -> int: ...


def rebuild(archive: Archive, draft: Draft, upto: int, goal: float = 1.0) -> State:
    """The state of a new tree after the change of number `upto`; with a goal below 1 its older part is only estimated."""
    dimensions = draft.frame.tree.dimensions
    part = archive.base(draft, None if goal >= 1.0 else (0.0, goal))
    state = finished(draft, part, empty(dimensions))
    if goal < 1.0:
        state = replace(
            state, leaves=Leaves.nothing(draft.frame), catch_up=CatchUp(part.leaves.statistics, archive.base_rows, goal)
        )
    for changes in archive.changes(upto):
        apply(state, changes)
    return state


def caught_up(archive: Archive, draft: Draft, state: State, goal: float) -> State:
    """A state that has read the archive up to another goal below 1; `draft` has the state's own frame."""
    if state.catch_up is None or goal <= state.catch_up.goal:
        return state
    part = archive.base(draft, (state.catch_up.goal, goal))
    return replace(state, catch_up=CatchUp(state.catch_up.statistics + part.leaves.statistics, archive.base_rows, goal))


@dataclass(slots=True)
class MemoryArchive:
    """Rows kept in memory."""

    rows: list[Rows]
    log: list[Changes] = field(default_factory=list)

    @property
    def base_rows(self) -> int:
        return sum(len(each) for each in self.rows)

    def base(self, draft: Draft, goal: tuple[float, float] | None) -> Part:
        part = Part.nothing(draft)
        for rows in self.rows:
            counted = None
            if goal is not None:
                draw = tickets_of(rows.ticket.view(np.uint64), READING_ORDER)
                counted = (draw >= goal[0]) & (draw < goal[1])
            part.add(draft, rows, counted)
        return part

    def changes(self, upto: int) -> Iterator[Changes]:
        yield from self.log[:upto]
