"""What an aggregate adds up or compares, and the range it takes in a box.

Interval arithmetic gives the exact range of an expression in which every column occurs once, since each operation is monotone in
each operand and the ends of the columns' ranges are values that rows can have; where a column occurs again the range may be too
wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from nearly.algebra.boxes import Box
from nearly.algebra.half_spaces import lowest
from nearly.errors import Unsupported
from nearly.missing.statements.domains import exact_number
from nearly.missing.statements.linear import keeps_values
from nearly.missing.statements.predicates import Regions
from nearly.plan.explain import show
from nearly.plan.expressions import Call, Cast, Column, Expression, Literal, walk
from nearly.plan.types import is_numeric

Amount: TypeAlias = Fraction | float
"""An exact number, or an infinity."""


@dataclass(frozen=True, slots=True)
class Span:
    """The least and greatest value in a box, where it has any; `null` says whether it may be null there."""

    low: Any
    high: Any
    null: bool
    some: bool = True


NOTHING = Span(None, None, null=True, some=False)
ROWS = Span(Fraction(1), Fraction(1), null=False)


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
        if self.expression is None:
            return frozenset()
        return frozenset(self.regions.sources[each.name] for each in walk(self.expression) if isinstance(each, Column))

    @property
    def is_tight(self) -> bool:
        """Whether `amounts` are reached: every column occurs once."""
        names = [each.name for each in walk(self.expression) if isinstance(each, Column)] if self.expression is not None else []
        return len(names) == len(set(names))

    def check(self, *, numeric: bool) -> None:
        """Refuse what ranges are not computed for."""
        if self.expression is None:
            return
        if self.column is not None and not numeric:
            return
        if not is_numeric(self.expression.type):
            raise Unsupported(f"the range of {show(self.expression)}, which is {self.expression.type}: only columns and numbers")
        self._evaluate(self.expression, Box({}))

    def amounts(self, box: Box) -> Span:
        """The range as numbers."""
        if self.expression is None:
            return ROWS
        nulls = [self._side(box, column).null for column in self.columns]
        if not all(self._side(box, column).pieces for column in self.columns):
            return NOTHING
        low, high = self._evaluate(self.expression, box)
        return Span(low, high, any(nulls))

    def ranks(self, box: Box) -> Span:
        """The range as ranks of the column's domain, for MIN and MAX over any type; None for an end that does not exist."""
        column = self.column
        if column is None:
            return self.amounts(box)
        side = self._side(box, column)
        if not side.pieces:
            return NOTHING
        low, high = self._column_ranks(column, box)
        return Span(low, high, side.null)

    def _side(self, box: Box, column: str) -> Any:
        rows = self.regions.rows
        if column not in rows.everything:
            raise Unsupported(f"column {column!r} is of a type that ranges are not computed for")
        return box.sides.get(column, rows.everything[column])

    def _column_ranks(self, column: str, box: Box) -> tuple[Any, Any]:
        if any(column in plane.columns for plane in box.planes):
            ends = [lowest(box.planes, box.sides, {column: sign}) for sign in (1, -1)]
            if ends[0] is not None and ends[1] is not None:
                return ends[0][column], ends[1][column]
        side = self._side(box, column)
        return side.first, self.regions.rows.domains[column].last(side)

    def _evaluate(self, expression: Expression, box: Box) -> tuple[Amount, Amount]:
        column = self.regions.column(expression)
        if column is not None and is_numeric(expression.type):
            domain = self.regions.rows.domains[column]
            low, high = self._column_ranks(column, box)
            return domain.amount(low), domain.amount(high)
        match expression:
            case Literal(value=value) if value is not None and is_numeric(expression.type):
                constant = exact_number(value, "the aggregate")
                return constant, constant
            case Cast(operand=operand) if keeps_values(expression):
                return self._evaluate(operand, box)
            case Call(function="neg", arguments=(operand,)):
                low, high = self._evaluate(operand, box)
                return -high, -low
            case Call(function="+", arguments=(left, right)):
                (a, b), (c, d) = self._evaluate(left, box), self._evaluate(right, box)
                return _sum(a, c, -math.inf), _sum(b, d, math.inf)
            case Call(function="-", arguments=(left, right)):
                (a, b), (c, d) = self._evaluate(left, box), self._evaluate(right, box)
                return _sum(a, -d, -math.inf), _sum(b, -c, math.inf)
            case Call(function="*", arguments=(left, right)):
                (a, b), (c, d) = self._evaluate(left, box), self._evaluate(right, box)
                corners = [_product(x, y) for x in (a, b) for y in (c, d)]
                return min(corners), max(corners)
        raise Unsupported(f"the range of {show(expression)}; sums, differences and products of columns and numbers are computed")


def _sum(left: Amount, right: Amount, unknown: float) -> Amount:
    """The sum; infinities of opposite signs give the end without limit."""
    if isinstance(left, float) and isinstance(right, float) and left != right:
        return unknown
    if isinstance(left, float) or isinstance(right, float):
        return left if isinstance(left, float) else right
    return left + right


def _product(left: Amount, right: Amount) -> Amount:
    if left == 0 or right == 0:
        return Fraction(0)
    if isinstance(left, float) or isinstance(right, float):
        return math.inf if (left > 0) == (right > 0) else -math.inf
    return left * right
