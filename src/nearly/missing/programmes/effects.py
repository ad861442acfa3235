"""What a row in a cell can do to an aggregate: count with a value from a range, or not count at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from nearly.algebra.boxes import Box, Region, Space, difference, intersection
from nearly.algebra.half_spaces import lowest
from nearly.algebra.ordered_sets import OrderedSet
from nearly.errors import Unsupported
from nearly.plan.explain import show
from nearly.plan.expressions import Call, Cast, Column, Expression, Literal, walk
from nearly.plan.types import is_numeric
from nearly.plan.values.ranges import Extent, KnownColumn, UnreadBlock, range_of, union
from nearly.plan.values.regions import Regions

SpanOf: TypeAlias = Callable[[Box], Extent | None]
"""The values of a measure in a box; None where it is always null."""

AMOUNTS = "amounts"
RANKS = "ranks"
"""The two kinds of spans: numbers to add up, or ranks to compare."""

_OPERATORS = ("+", "-", "*", "neg")
"""Over these, ranges are reached where every column occurs once."""
_ROWS = Extent(Fraction(1), Fraction(1), nullable=False)


@dataclass(frozen=True, slots=True)
class MissingMeasure:
    """The argument of an aggregate; None is that of `count(*)`."""

    regions: Regions
    expression: Expression | None

    @property
    def column(self) -> str | None:
        """The table's column, when the argument is one."""
        return None if self.expression is None else self.regions.column(self.expression)

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(self.regions.sources[name] for name in self._names)

    @property
    def is_tight(self) -> bool:
        """Whether `amounts` are reached: every column occurs once."""
        return len(self._names) == len(set(self._names))

    @property
    def _names(self) -> list[str]:
        return [] if self.expression is None else [each.name for each in walk(self.expression) if isinstance(each, Column)]

    def check(self, *, numeric: bool) -> None:
        """Refuse what ranges are not computed for."""
        if self.expression is None or (self.column is not None and not numeric):
            return
        for each in walk(self.expression):
            if not is_numeric(each.type) or not _is_computed(each):
                raise Unsupported(f"the range of {show(each)}; sums, differences and products of columns and numbers are computed")

    def amounts(self, box: Box) -> Extent | None:
        """The range as numbers."""
        if self.expression is None:
            return _ROWS
        known = {name: self._known(self.regions.sources[name], box) for name in self._names}
        if None in known.values():
            return None
        return range_of(self.expression, UnreadBlock(1, {name: each for name, each in known.items() if each is not None}))

    def ranks(self, box: Box) -> Extent | None:
        """The range as ranks of the column's domain, for MIN and MAX over any type; None for an end that does not exist."""
        column = self.column
        if column is None:
            return self.amounts(box)
        side = self._side(box, column)
        return Extent(*self._ends(column, box), side.null) if side.pieces else None

    def _side(self, box: Box, column: str) -> OrderedSet:
        return box.sides.get(column, self.regions.domain(column).everything)

    def _known(self, column: str, box: Box) -> KnownColumn | None:
        side, value = self._side(box, column), self.regions.domain(column).value
        if not side.pieces:
            return None
        low, high = self._ends(column, box)
        return KnownColumn(value(low), value(high), None if side.null else 0)

    def _ends(self, column: str, box: Box) -> tuple[Any, Any]:
        """The least and greatest rank of a column in a box."""
        if any(column in plane.columns for plane in box.planes):
            ends = [lowest(box.planes, box.sides, {column: sign}) for sign in (1, -1)]
            if ends[0] is not None and ends[1] is not None:
                return ends[0][column], ends[1][column]
        side = self._side(box, column)
        return side.first, self.regions.domain(column).last(side)


def _is_computed(expression: Expression) -> bool:
    match expression:
        case Cast():
            return not expression.safe
        case Literal():
            return expression.value is not None
        case Call():
            return expression.function in _OPERATORS
    return isinstance(expression, Column)


@dataclass(frozen=True, slots=True)
class Effect:
    """A row in the cell may count (`counts`) with a value from `low` to `high`, or be `silent`: outside the query, or null."""

    counts: bool
    silent: bool
    low: Any = None
    high: Any = None

    def at(self, end: str) -> Any:
        return self.low if end == "low" else self.high


@dataclass(frozen=True, slots=True)
class RangeQuestion:
    """Which rows an aggregate is about, and what it takes of each."""

    region: Region
    measure: MissingMeasure

    def effect(self, cell: Region, space: Space, span_of: SpanOf) -> Effect:
        """What the rows of a cell can do."""
        spans = [span_of(box) for box in intersection(cell, self.region)]
        silent = any(each is None or each.nullable for each in spans) or bool(difference(cell, self.region, space))
        found = union(each for each in spans if each is not None)
        return Effect(any(each is not None for each in spans), silent, found.low, found.high)


def in_units(effects: Sequence[Effect]) -> tuple[list[Effect], Fraction]:
    """The effects with their ends as whole multiples of a common unit; None for no limit stays."""
    ends = [end for effect in effects for end in (effect.low, effect.high) if end is not None]
    scale = math.lcm(*{end.denominator for end in ends})

    def whole(end: Any) -> int | None:
        return None if end is None else end.numerator * (scale // end.denominator)

    return [Effect(each.counts, each.silent, whole(each.low), whole(each.high)) for each in effects], Fraction(1, scale)
