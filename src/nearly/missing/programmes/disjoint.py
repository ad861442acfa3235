"""Thousands of constraints that touch no other one, classified against a query at once.

Each constraint is a box; per column, its ends are positions in the sorted list of all ends, so that one comparison of integer
arrays decides for all constraints whether they meet the query and whether they lie inside it. Only constraints that this cannot
decide are looked at one by one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from nearly.algebra.boxes import Box, Region
from nearly.algebra.ordered_sets import OrderedSet
from nearly.missing.programmes.effects import AMOUNTS, Effect, Question, SpanOf, in_units
from nearly.missing.statements.bound_set import BoundConstraint, sole_box
from nearly.missing.statements.domains import RowSpace


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

    @classmethod
    def over(cls, constraints: Sequence[BoundConstraint], rows: RowSpace) -> DisjointIndex:
        return cls(rows, tuple(constraint.allowed for constraint in constraints))

    def effects(self, question: Question, span_of: SpanOf, kind: str) -> tuple[list[Effect], Fraction]:
        """The effect of each constraint's rows, amounts in a common unit; `kind` tells apart what spans are computed."""
        box = sole_box(question.region)
        if box is None or question.measure.columns & set(box.sides) or not all(_is_range(side) for side in box.sides.values()):
            return _whole([self._single(region, question, span_of) for region in self.regions], kind)
        meets, inside, decided = self._classify(box)
        alone, unit = self._alone(question, span_of, kind)
        if not decided.all():
            return _whole([self._single(region, question, span_of) for region in self.regions], kind)
        chosen = [_OUTSIDE] * len(alone)
        for place in np.flatnonzero(inside).tolist():
            chosen[place] = alone[place]
        for place in np.flatnonzero(meets & ~inside).tolist():
            whole = alone[place]
            chosen[place] = Effect(whole.counts, True, whole.low, whole.high)
        return chosen, unit

    def _single(self, region: Region, question: Question, span_of: SpanOf) -> Effect:
        return question.effect(region, self.rows.everything, span_of)

    def _alone(self, question: Question, span_of: SpanOf, kind: str) -> tuple[list[Effect], Fraction]:
        """The effects of a query without a condition, computed once for each measure."""
        key = kind, question.measure.expression
        if key not in self._spans:
            whole = Question((Box({}),), question.measure)
            self._spans[key] = _whole([self._single(region, whole, span_of) for region in self.regions], kind)
        return self._spans[key]

    def _classify(self, box: Box) -> tuple[Any, Any, Any]:
        count = len(self.regions)
        meets, inside, decided = np.ones(count, dtype=bool), np.ones(count, dtype=bool), np.ones(count, dtype=bool)
        for column, side in box.sides.items():
            axis = self._axis(column)
            ((first, end),) = side.pieces
            meets &= (axis.first < bisect_left(axis.ends, end)) & (axis.end >= bisect_right(axis.ends, first))
            inside &= (axis.first >= bisect_left(axis.ends, first)) & (axis.end < bisect_right(axis.ends, end)) & ~axis.null
            decided &= axis.plain
        return meets, inside & meets, decided

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


def _is_range(side: OrderedSet) -> bool:
    return len(side.pieces) == 1 and not side.null
