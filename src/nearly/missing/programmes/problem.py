"""The question a query asks of the missing rows, in parts that can be solved one by one.

There may be thousands of constraints that touch no other one: `DisjointIndex` classifies them against a query at once. Each is a
box; per column, its ends are positions in the sorted list of all ends, so that one comparison of integer arrays decides for all of
them whether they meet the query and whether they lie inside it. Only where this cannot decide are they looked at one by one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from nearly.algebra.boxes import EVERYWHERE, Box, Region, meet
from nearly.algebra.ordered_sets import OrderedSet
from nearly.missing.programmes.allocation import AllocationBlock, Independent, Programme
from nearly.missing.programmes.cells import Cell, TimeLimit, decompose
from nearly.missing.programmes.effects import AMOUNTS, Effect, RangeQuestion, SpanOf, in_units
from nearly.missing.statements.bound_set import BoundConstraint, BoundSet, sole_box
from nearly.plan.values.regions import RowSpace


@dataclass(frozen=True, slots=True)
class Component:
    """Cells that are bounded together; `constraints` are the positions in the set that the cells' members refer to."""

    block: AllocationBlock
    cells: tuple[Cell, ...]
    constraints: tuple[int, ...]

    @property
    def is_exact(self) -> bool:
        return not any(cell.doubtful for cell in self.cells)


@dataclass(frozen=True, slots=True)
class AffectedPart:
    """A part, and what the rows of each of its cells can do to the aggregate at hand; amounts are multiples of `unit`."""

    part: Component
    effects: Sequence[Effect]
    unit: Fraction = Fraction(1)


@dataclass(frozen=True)
class Problem:
    """A bound set, made ready for many questions: what does not depend on the question is computed once."""

    bound: BoundSet
    _cells: dict[tuple[int, ...], tuple[Cell, ...]] = field(default_factory=dict)

    def affected(
        self, question: RangeQuestion, span_of: SpanOf, kind: str, deadline: TimeLimit, *, reuse: bool = False
    ) -> list[AffectedPart]:
        """The parts that the question touches. With `reuse`, cells are computed for all questions rather than for this one."""
        found = []
        if self.alone.cells:
            found.append(AffectedPart(self.alone, *self.index.effects(question, span_of, kind)))
        space = self.bound.rows.everything
        for component in self.bound.components:
            if len(component) > 1 and any(meet(self._constraint(each).predicate, question.region) for each in component):
                part = self.part(component, question.region, deadline, reuse=reuse)
                effects = [question.effect(cell.region, space, span_of) for cell in part.cells]
                found.append(AffectedPart(part, *_whole(effects, kind)))
        return found

    @cached_property
    def index(self) -> DisjointIndex:
        return DisjointIndex(self.bound.rows, tuple(self._constraint(each).allowed for each in self.alone.constraints))

    @cached_property
    def alone(self) -> Component:
        """The constraints that touch no other one, each a cell of its own."""
        places = tuple(component[0] for component in self.bound.components if len(component) == 1)
        members = [self._constraint(place) for place in places]
        high = tuple(member.high if member.allowed else 0 for member in members)
        cells = tuple(Cell((local,), member.allowed) for local, member in enumerate(members))
        return Component(Independent(tuple(member.low for member in members), high), cells, places)

    def part(self, component: tuple[int, ...], region: Region, deadline: TimeLimit, *, reuse: bool = False) -> Component:
        """The cells of constraints that overlap.

        The query's region is pushed down into the decomposition where no constraint asks for a least number of rows: rows outside
        the query then do nothing. Otherwise they matter, because they can satisfy a lower bound in place of rows inside.
        """
        constraints = [self._constraint(each) for each in component]
        floored = any(constraint.low for constraint in constraints)
        everywhere = floored or reuse or component in self._cells
        cells = self._cells.get(component)
        if cells is None:
            start = EVERYWHERE if everywhere else region
            cells = tuple(decompose(constraints, start, self.bound.rows.everything, deadline).cells)
        low, high = tuple(each.low for each in constraints), tuple(each.high for each in constraints)
        found = Component(Programme(cells, low, high, deadline), cells, component)
        if everywhere and found.is_exact:
            self._cells[component] = cells
        return found

    def _constraint(self, place: int) -> BoundConstraint:
        return self.bound.constraints[place]


@dataclass(frozen=True, slots=True)
class End:
    """One end of a range: the value (None for no limit), whether an instance reaches it, and that instance.

    `counts` has the rows of every cell of every part, `takes` whether those rows count (with their value at `side`) or are
    silent. `exists` is False where no instance gives the aggregate a value. `gains` is what one more row of each cell would add
    to the value (in `units`), `certain` the number of certain rows behind an average.
    """

    value: Any
    proven: bool
    affected: Sequence[AffectedPart]
    counts: Sequence[tuple[int, ...]]
    takes: Sequence[Sequence[bool]]
    side: str
    exists: bool = True
    gains: Sequence[Sequence[int | None]] = ()
    units: Sequence[Fraction] = ()
    certain: int = 0

    @property
    def rows(self) -> int:
        """How many missing rows count."""
        chosen = (zip(*pair, strict=True) for pair in zip(self.counts, self.takes, strict=True))
        return sum(count for pairs in chosen for count, take in pairs if take)


@dataclass(frozen=True, slots=True)
class _Axis:
    """One column of all constraints: ends as positions among `ends`."""

    ends: list[Any]
    first: Any
    end: Any
    null: Any
    plain: Any


@dataclass(slots=True)
class DisjointIndex:
    """Constraints that touch no other one, with what was computed of each column and measure so far."""

    rows: RowSpace
    regions: tuple[Region, ...]
    _axes: dict[str, _Axis] = field(default_factory=dict)
    _spans: dict[Any, tuple[list[Effect], Fraction]] = field(default_factory=dict)

    def effects(self, question: RangeQuestion, span_of: SpanOf, kind: str) -> tuple[list[Effect], Fraction]:
        """The effect of each constraint's rows, amounts in a common unit; `kind` tells apart what spans are computed."""
        box = sole_box(question.region)
        found = None if box is None or question.measure.columns & set(box.sides) else self._classify(box)
        if found is None:
            return self._one_by_one(question, span_of, kind)
        meets, inside = found
        key = kind, question.measure.expression
        if key not in self._spans:
            self._spans[key] = self._one_by_one(RangeQuestion(EVERYWHERE, question.measure), span_of, kind)
        alone, unit = self._spans[key]
        chosen = [_OUTSIDE] * len(alone)
        for place in np.flatnonzero(meets).tolist():
            chosen[place] = alone[place] if inside[place] else replace(alone[place], silent=True)
        return chosen, unit

    def _one_by_one(self, question: RangeQuestion, span_of: SpanOf, kind: str) -> tuple[list[Effect], Fraction]:
        return _whole([question.effect(region, self.rows.everything, span_of) for region in self.regions], kind)

    def _classify(self, box: Box) -> tuple[Any, Any] | None:
        """Which constraints meet a box, and which of them lie inside it; None where ranges alone do not tell."""
        meets, inside = np.ones((2, len(self.regions)), dtype=bool)
        for column, side in box.sides.items():
            axis = self._axis(column)
            if side.null or len(side.pieces) != 1 or not axis.plain.all():
                return None
            ((first, end),) = side.pieces
            meets &= (axis.first < bisect_left(axis.ends, end)) & (axis.end >= bisect_right(axis.ends, first))
            inside &= (axis.first >= bisect_left(axis.ends, first)) & (axis.end < bisect_right(axis.ends, end)) & ~axis.null
        return meets, inside & meets

    def _axis(self, column: str) -> _Axis:
        if column not in self._axes:
            self._axes[column] = _axis_of([_side(region, column, self.rows) for region in self.regions])
        return self._axes[column]


_OUTSIDE = Effect(counts=False, silent=True)


def _whole(effects: list[Effect], kind: str) -> tuple[list[Effect], Fraction]:
    return in_units(effects) if kind == AMOUNTS else (effects, Fraction(1))


def _side(region: Region, column: str, rows: RowSpace) -> OrderedSet | None:
    """The values of a column in a region of one box; None where only the whole region tells."""
    box = sole_box(region)
    side = None if box is None else box.sides.get(column, rows.everything[column])
    return side if side is not None and len(side.pieces) == 1 else None


def _axis_of(sides: Sequence[OrderedSet | None]) -> _Axis:
    known = [side for side in sides if side is not None]
    ends = sorted({end for side in known for end in side.pieces[0]})
    place = {end: index for index, end in enumerate(ends)}
    first = np.array([0 if side is None else place[side.first] for side in sides])
    end = np.array([0 if side is None else place[side.end] for side in sides])
    null = np.array([side is not None and side.null for side in sides], dtype=bool)
    return _Axis(ends, first, end, null, np.array([side is not None for side in sides], dtype=bool))
