"""Between which values an expression lies on the rows of a block, from the ranges of its columns: interval arithmetic.

Law: on every row of the box the expression is null or lies in `range_of(expression, box)`, in Spark's order, which puts NaN on top.

Ends are exact fractions. Rounding to a type is monotone, so an operator's result lies between its rounded exact ends. A fraction
may be infinite where an end is unknown, and NaN, which is above all, where the upper end is: that of all that is computed from it
is then unknown. Over `+`, `-`, `*` and negation in which every column occurs once, rows at the columns' ends reach both ends.

A predicate is an expression over false < true, which may be null: it may hold on the rows where its upper end is true, and holds on
all of them where the lower end is and it is never null.

Reference: Moore 1966, Interval Analysis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal as Number
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from nearly.plan.expressions import Call, Cast, Column, Expression, Literal
from nearly.plan.types import BOOLEAN, FRACTIONS, INTEGERS, Decimal, is_numeric
from nearly.plan.values.rounding import rounded


class KnownColumn(NamedTuple):
    """What is known of a column in a block: the ends of its values and how many are null; None is unknown.

    A column of fractions that may hold NaN has no `high`.
    """

    low: Any
    high: Any
    nulls: int | None


class UnreadBlock(NamedTuple):
    """A block that was not read: its number of rows and what is known of its columns."""

    rows: int
    columns: Mapping[str, KnownColumn]


@dataclass(frozen=True, slots=True)
class Extent:
    """Values from `low` to `high`, None for an unknown end; `nullable` tells whether a value may be null."""

    low: Any = None
    high: Any = None
    nullable: bool = True

    @property
    def bounded(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None


UNKNOWN = Extent()
NO_COLUMNS = UnreadBlock(1, {})


def range_of(expression: Expression, box: UnreadBlock) -> Extent:
    """The range of an expression over the rows of a box; numbers come as fractions, anything not understood as unknown."""
    match expression:
        case Column():
            return _of_column(expression, box)
        case Literal(value=None) if expression.type == BOOLEAN:
            return Extent(False, False)
        case Literal():
            value = exact(expression.value)
            return Extent(value, value, expression.value is None)
        case Cast():
            return _of_cast(expression, range_of(expression.operand, box))
        case Call(function="isnull", arguments=(operand,)):
            return _is_null(operand, box)
        case Call(function="isnotnull", arguments=(operand,)):
            return _not(expression, [_is_null(operand, box)])
        case Call() if expression.function in _OPERATORS:
            return _OPERATORS[expression.function](expression, [range_of(each, box) for each in expression.arguments])
    return UNKNOWN


def exact(value: Any) -> Any:
    """A finite number as a fraction, other values as they are; infinity and NaN are unknown.

    >>> exact(Number("0.10")), exact(float("inf")), exact("a")
    (Fraction(1, 10), None, 'a')
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Number | np.integer | np.floating):
        return value
    if isinstance(value, int | np.integer):
        return Fraction(int(value))
    if not math.isfinite(value):
        return None
    return Fraction(value) if isinstance(value, Number) else Fraction(float(value))


def _of_column(column: Column, box: UnreadBlock) -> Extent:
    if column.name not in box.columns:
        return UNKNOWN
    low, high, nulls = box.columns[column.name]
    return Extent(exact(low), exact(high), nulls is None or nulls > 0)


def _of_cast(cast: Cast, operand: Extent) -> Extent:
    if not (is_numeric(cast.type) and is_numeric(cast.operand.type)):
        return UNKNOWN
    low, high = operand.low, operand.high
    if cast.type in INTEGERS:
        low, high = (None if end is None else Fraction(math.trunc(end)) for end in (low, high))
    return _typed(cast, low, high, [operand], nullable=operand.nullable or cast.safe)


def _typed(
    expression: Expression, low: Fraction | None, high: Fraction | None, operands: Iterable[Extent], nullable: bool
) -> Extent:
    """The ends as the expression's type holds them; a fraction computed from one that may be NaN may be, too."""
    if not is_numeric(expression.type):
        return UNKNOWN
    if expression.type in FRACTIONS and any(each.high is None for each in operands):
        high = None
    low, high = (None if end is None else rounded(end, expression.type) for end in (low, high))
    return Extent(low, high, nullable)


def _strict(ends: Callable[..., tuple[Fraction | None, Fraction | None]]) -> Callable[[Call, list[Extent]], Extent]:
    """An operator over numbers that is null exactly when an operand is."""

    def apply(call: Call, operands: list[Extent]) -> Extent:
        if not all(is_numeric(each.type) for each in call.arguments):
            return UNKNOWN
        low, high = ends(*operands)
        return _typed(call, low, high, operands, any(each.nullable for each in operands))

    return apply


def _sum(left: Any, right: Any) -> Any:
    return None if left is None or right is None else left + right


def _minus(value: Any) -> Any:
    return None if value is None else -value


def _plus(left: Extent, right: Extent) -> tuple[Any, Any]:
    return _sum(left.low, right.low), _sum(left.high, right.high)


def _difference(left: Extent, right: Extent) -> tuple[Any, Any]:
    return _sum(left.low, _minus(right.high)), _sum(left.high, _minus(right.low))


def _times(left: Extent, right: Extent) -> tuple[Any, Any]:
    """The extremes of all corners, an unknown end taken as infinite; zero times infinity is NaN."""
    ends = [(-math.inf if each.low is None else each.low, math.inf if each.high is None else each.high) for each in (left, right)]
    corners = [_product(a, b) for a in ends[0] for b in ends[1]]
    nan = any(not each.bounded and one[0] <= 0 <= one[1] for each, one in ((left, ends[1]), (right, ends[0])))
    low, high = min(corners), math.inf if nan else max(corners)
    return None if isinstance(low, float) else low, None if isinstance(high, float) else high


def _product(left: Any, right: Any) -> Any:
    if left == 0 or right == 0:
        return Fraction(0)
    if isinstance(left, float) or isinstance(right, float):
        return math.inf if (left > 0) == (right > 0) else -math.inf
    return left * right


def _negative(operand: Extent) -> tuple[Any, Any]:
    return _minus(operand.high), _minus(operand.low)


def _absolute(operand: Extent) -> tuple[Any, Any]:
    if not operand.bounded:
        return Fraction(0), None
    ends = abs(operand.low), abs(operand.high)
    return (Fraction(0) if operand.low <= 0 <= operand.high else min(ends)), max(ends)


def _divided(call: Call, operands: list[Extent]) -> Extent:
    """Quotients at the corners, when the divisor cannot be 0; decimals are rounded twice, hence one last digit more."""
    left, right = operands
    if not (is_numeric(call.type) and left.bounded and right.bounded) or right.low <= 0 <= right.high:
        return UNKNOWN
    corners = [a / b for a in (left.low, left.high) for b in (right.low, right.high)]
    slack = Fraction(1, 10**call.type.scale) if isinstance(call.type, Decimal) else Fraction(0)
    return _typed(call, min(corners) - slack, max(corners) + slack, operands, left.nullable or right.nullable)


def _of_case(call: Call, operands: list[Extent]) -> Extent:
    """Any branch may be taken, so the range holds them all; a branch that is always null adds only null."""
    return union(_present(call.arguments[place], operands[place]) for place in (*range(1, len(operands), 2), len(operands) - 1))


def _of_coalesce(call: Call, operands: list[Extent]) -> Extent:
    """As CASE, but null only when every argument may be."""
    found = union(_present(argument, each) for argument, each in zip(call.arguments, operands, strict=True))
    return Extent(found.low, found.high, all(each.nullable for each in operands))


def _present(argument: Expression, found: Extent) -> Extent | None:
    return None if isinstance(argument, Literal) and argument.value is None else found


def union(ranges: Iterable[Extent | None]) -> Extent:
    """The smallest range around all; None stands for nothing but null."""
    found = list(ranges)
    filled = [each for each in found if each is not None]
    nullable = len(filled) < len(found) or any(each.nullable for each in filled)
    if not filled:
        return Extent(nullable=nullable)
    low = None if any(each.low is None for each in filled) else min(each.low for each in filled)
    high = None if any(each.high is None for each in filled) else max(each.high for each in filled)
    return Extent(low, high, nullable)


def _is_null(operand: Expression, box: UnreadBlock) -> Extent:
    known = box.columns.get(operand.name) if isinstance(operand, Column) else None
    return Extent(known is not None and known.nulls == box.rows, range_of(operand, box).nullable, False)


def _truth(found: Extent) -> Extent:
    """A predicate whose ends are known: where nothing is, it may be true and false."""
    return Extent(found.low is True, found.high is not False, found.nullable)


def _and(_: Call, operands: list[Extent]) -> Extent:
    """False if one is; null if none is false and one is null."""
    result = Extent(True, True, False)
    for part in map(_truth, operands):
        null = (result.nullable and (part.nullable or part.high)) or (part.nullable and result.high)
        result = Extent(result.low and part.low, result.high and part.high, null)
    return result


def _not(_: Call, operands: list[Extent]) -> Extent:
    found = _truth(operands[0])
    return Extent(not found.high, not found.low, found.nullable)


def _or(call: Call, operands: list[Extent]) -> Extent:
    return _not(call, [_and(call, [_not(call, [each]) for each in operands])])


def _in(call: Call, operands: list[Extent]) -> Extent:
    return _or(call, [_OPERATORS["="](call, [operands[0], each]) for each in operands[1:]])


def _comparison(ends: Callable[[Extent, Extent], tuple[bool, bool]]) -> Callable[[Call, list[Extent]], Extent]:
    """A comparison by whether it is sure to hold, and whether it can; it is null exactly when an operand is."""

    def apply(_: Call, operands: list[Extent]) -> Extent:
        left, right = operands
        sure, can = ends(left, right)
        return Extent(sure, can, left.nullable or right.nullable)

    return apply


def _order(left: Any, right: Any) -> int | None:
    """The sign of left - right; None when one is unknown or they have no common order."""
    try:
        return None if left is None or right is None else int(left > right) - int(left < right)
    except TypeError:
        return None


def _less(left: Extent, right: Extent) -> tuple[bool, bool]:
    return _order(left.high, right.low) == -1, _order(left.low, right.high) in (-1, None)


def _at_most(left: Extent, right: Extent) -> tuple[bool, bool]:
    sure, can = _less(right, left)
    return not can, not sure


def _equal(left: Extent, right: Extent) -> tuple[bool, bool]:
    apart = -1 in (_order(left.high, right.low), _order(right.high, left.low))
    return left.bounded and right.bounded and left.low == left.high == right.low == right.high, not apart


_OPERATORS: dict[str, Callable[[Call, list[Extent]], Extent]] = {
    "+": _strict(_plus),
    "-": _strict(_difference),
    "*": _strict(_times),
    "/": _divided,
    "neg": _strict(_negative),
    "abs": _strict(_absolute),
    "case": _of_case,
    "coalesce": _of_coalesce,
    "and": _and,
    "or": _or,
    "not": _not,
    "in": _in,
    "=": _comparison(_equal),
    "<>": lambda call, operands: _not(call, [_OPERATORS["="](call, operands)]),
    "<": _comparison(_less),
    ">": _comparison(lambda left, right: _less(right, left)),
    "<=": _comparison(_at_most),
    ">=": _comparison(lambda left, right: _at_most(right, left)),
}
