"""Cell decomposition: predicates that overlap are cut into disjoint cells, one for each combination that some row can have.

A cell of constraints 1..n is the rows for which a certain subset of the predicates is true and the others are not. Of the 2**n
combinations few are satisfiable. They are found by a depth-first search that keeps, for every conjunction X of decided
predicates, its exact region; then for the next predicate Y

    X and Y empty       ->  Y is false in all of X, and X needs no split (the rewriting X and not Y = X)
    X and not Y empty   ->  Y is true in all of X
    otherwise           ->  X is split in two, both satisfiable by construction

so no unsatisfiable conjunction is ever extended: the search builds about two nodes for every cell, rather than 2**n. (X. Liang
et al., SIGMOD 2020, section 4.1, with box arithmetic in place of the SMT solver.)

When the budget runs out, what is left of the search becomes *doubtful* cells: rows that are in the members for sure and perhaps in
others. They loosen the programme and never make it wrong: see `allocation`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from nearly.algebra.boxes import Region, Space, difference, intersection, meet, within
from nearly.missing.statements.bound_set import BoundConstraint

MOST_CELLS = 20_000


class TimeLimit:
    """So many seconds from now; None for no limit."""

    def __init__(self, seconds: float | None = None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float | None:
        """Seconds that are left, never negative."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    @property
    def is_over(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end


@dataclass(frozen=True, slots=True)
class Cell:
    """Rows in the predicates of all `members`, perhaps in those of `doubtful`, in no other; places in the component."""

    members: tuple[int, ...]
    region: Region
    doubtful: tuple[int, ...] = ()


@dataclass(slots=True)
class Decomposition:
    """The cells; `nodes` counts the conjunctions whose satisfiability was established, out of 2**n for the naive method."""

    cells: list[Cell] = field(default_factory=list)
    nodes: int = 0


@dataclass(frozen=True, slots=True)
class _Branch:
    region: Region
    members: tuple[int, ...]
    undecided: tuple[int, ...]


def decompose(
    constraints: Sequence[BoundConstraint],
    start: Region,
    space: Space,
    deadline: TimeLimit | None = None,
    most: int = MOST_CELLS,
) -> Decomposition:
    """The satisfiable cells of the constraints inside `start`, rows in no predicate left out (closure)."""
    found = Decomposition()
    stack = [_Branch(start, (), tuple(range(len(constraints))))] if start else []
    while stack:
        node = stack.pop()
        found.nodes += 1
        if len(found.cells) + len(stack) >= most or (deadline is not None and deadline.is_over):
            found.cells += _doubtful(node, constraints)
            continue
        children = _children(node, constraints, space)
        if children is None:
            continue
        if isinstance(children, _Branch):
            if children.members:
                found.cells.append(Cell(children.members, children.region))
        else:
            stack += children
    return found


def _children(node: _Branch, constraints: Sequence[BoundConstraint], space: Space) -> _Branch | list[_Branch] | None:
    """The node with everything decided, or its two halves at the first predicate that cuts it; None when no row can be there."""
    region, members = node.region, list(node.members)
    for place, index in enumerate(node.undecided):
        constraint = constraints[index]
        if not meet(region, constraint.predicate):
            continue
        if within(region, constraint.predicate, space):
            region = intersection(region, constraint.values)
            members.append(index)
            if not region:
                return None
            continue
        rest = node.undecided[place + 1 :]
        outside = _Branch(difference(region, constraint.predicate, space), tuple(members), rest)
        inside = _Branch(intersection(region, constraint.allowed), (*members, index), rest)
        return [outside, inside] if inside.region else [outside]
    return _Branch(region, tuple(members), ())


def _doubtful(node: _Branch, constraints: Sequence[BoundConstraint]) -> list[Cell]:
    """A node that is not searched any further, as one cell; rows in no predicate at all cannot be told apart from it any more."""
    touching = tuple(index for index in node.undecided if meet(node.region, constraints[index].predicate))
    if not node.members and not touching:
        return []
    return [Cell(node.members, node.region, touching)]
