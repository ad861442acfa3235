"""What a predicate can be on the rows of a block: true, false, null, or several of these.

Law: the value of the predicate on any row of the box is among those the verdict allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nearly.plan.expressions import Call, Column, Expression, Literal
from nearly.plan.values.ranges import Extent, UnreadBlock, range_of


@dataclass(frozen=True, slots=True)
class TruthValues:
    """Which values a predicate may take."""

    true: bool
    false: bool
    null: bool

    @property
    def certain(self) -> bool:
        """Whether every row satisfies the predicate."""
        return self.true and not self.false and not self.null


ANY = TruthValues(True, True, True)
ALWAYS = TruthValues(True, False, False)


def verdict(predicate: Expression | None, box: UnreadBlock) -> TruthValues:
    """The verdict on a predicate; None is no predicate, which is always true. What is not understood may be anything."""
    match predicate:
        case None:
            return ALWAYS
        case Literal(value=value):
            return TruthValues(value is True, value is False, value is None)
        case Call(function="and"):
            return _conjunction(*(verdict(each, box) for each in predicate.arguments))
        case Call(function="or"):
            return _negation(_conjunction(*(_negation(verdict(each, box)) for each in predicate.arguments)))
        case Call(function="not"):
            return _negation(verdict(predicate.arguments[0], box))
        case Call(function="isnull"):
            return _is_null(predicate.arguments[0], box)
        case Call(function="isnotnull"):
            return _negation(_is_null(predicate.arguments[0], box))
        case Call(function="in"):
            value, *choices = (range_of(each, box) for each in predicate.arguments)
            any_of = [_negation(_compared("=", value, each)) for each in choices]
            return _negation(_conjunction(*any_of))
        case Call() if predicate.function in _COMPARISONS:
            left, right = (range_of(each, box) for each in predicate.arguments)
            return _compared(predicate.function, left, right)
    return ANY


def _conjunction(*parts: TruthValues) -> TruthValues:
    """AND: false if one is; null if none is false and one is null."""
    result = ALWAYS
    for part in parts:
        null = (result.null and (part.null or part.true)) or (part.null and result.true)
        result = TruthValues(result.true and part.true, result.false or part.false, null)
    return result


def _negation(part: TruthValues) -> TruthValues:
    return TruthValues(part.false, part.true, part.null)


def _is_null(operand: Expression, box: UnreadBlock) -> TruthValues:
    found = range_of(operand, box)
    known = box.columns.get(operand.name) if isinstance(operand, Column) else None
    only_null = known is not None and known[2] == box.rows
    return TruthValues(found.nullable, not only_null, False)


def _before(left: Any, right: Any) -> bool:
    """Whether left < right for sure; False when an end is unknown or the values have no common order."""
    try:
        return left is not None and right is not None and bool(left < right)
    except TypeError:
        return False


def _less(left: Extent, right: Extent) -> tuple[bool, bool]:
    """Whether left < right (may be true, may be false)."""
    never = _known(left.low, right.high) and not _before(left.low, right.high)
    return not never, not _before(left.high, right.low)


def _equal(left: Extent, right: Extent) -> tuple[bool, bool]:
    apart = _before(left.high, right.low) or _before(right.high, left.low)
    same = left.bounded and right.bounded and left.low == left.high == right.low == right.high
    return not apart, not same


def _known(left: Any, right: Any) -> bool:
    """Whether two ends can be compared."""
    try:
        return left is not None and right is not None and isinstance(left < right, bool)
    except TypeError:
        return False


def _swap(answer: tuple[bool, bool]) -> tuple[bool, bool]:
    return answer[1], answer[0]


_COMPARISONS: dict[str, Callable[[Extent, Extent], tuple[bool, bool]]] = {
    "=": _equal,
    "<>": lambda left, right: _swap(_equal(left, right)),
    "<": _less,
    ">": lambda left, right: _less(right, left),
    "<=": lambda left, right: _swap(_less(right, left)),
    ">=": lambda left, right: _swap(_less(left, right)),
}


def _compared(function: str, left: Extent, right: Extent) -> TruthValues:
    true, false = _COMPARISONS[function](left, right)
    return TruthValues(true, false, left.nullable or right.nullable)
