"""Whether a condition follows from others: it is one of them, or a range that contains one of theirs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nearly.plan.expressions import Call, Column, Expression, Literal
from nearly.plan.types import FRACTIONS


@dataclass(frozen=True, slots=True)
class _Range:
    """Values of a column between two ends, each of which may be open, or absent."""

    column: Column
    low: Any = None
    high: Any = None
    low_open: bool = False
    high_open: bool = False

    def contains(self, other: _Range) -> bool:
        if self.column != other.column:
            return False
        low = self.low is None or (other.low is not None and (other.low > self.low or (
            other.low == self.low and (other.low_open or not self.low_open))))  # fmt: skip
        high = self.high is None or (other.high is not None and (other.high < self.high or (
            other.high == self.high and (other.high_open or not self.high_open))))  # fmt: skip
        return low and high


def is_implied(predicate: Expression, by: Iterable[Expression]) -> bool:
    """Whether a predicate in normal order is true wherever all of some others are."""
    given = list(by)
    if predicate in given:
        return True
    wanted = _range(predicate)
    return wanted is not None and any(wanted.contains(found) for found in map(_range, given) if found is not None)


def _range(predicate: Expression) -> _Range | None:
    match predicate:
        case Call(function="<" | "<=" as test, arguments=(Column() as column, Literal(value=value))) if _is_plain(column, value):
            return _Range(column, high=value, high_open=test == "<")
        case Call(function="<" | "<=" as test, arguments=(Literal(value=value), Column() as column)) if _is_plain(column, value):
            return _Range(column, low=value, low_open=test == "<")
        case Call(function="=", arguments=(Column() as column, Literal(value=value))) if _is_plain(column, value):
            return _Range(column, value, value)
        case Call(function="=", arguments=(Literal(value=value), Column() as column)) if _is_plain(column, value):
            return _Range(column, value, value)
    return None


def _is_plain(column: Column, value: Any) -> bool:
    """Values of a column that Python orders as the engines do."""
    return value is not None and column.type not in FRACTIONS and not isinstance(value, bool | str | bytes)
