"""Exact numbers to values of a column, as the engine would give them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal as Number
from fractions import Fraction
from typing import Any

import pyarrow as pa

from nearly.answer import relative_error
from nearly.missing.programmes.aggregate_range import AggregateRange
from nearly.plan.functions.casting import LIMITS, number
from nearly.plan.types import DataType, Decimal


def end_value(found: AggregateRange, side: str, type_: DataType) -> Any:
    """The end of a range as a value of the aggregate's type; None for no limit, or one beyond the type.

    Spark rounds an average to its type. Rounding is monotone, so rounding both ends the same way keeps every instance inside
    them, and the instances at the ends on them.
    """
    value = found.low if side == "low" else found.high
    if value is None:
        return None
    column = found.question.measure.column
    if found.is_column and column is not None:
        reached = found.question.measure.regions.rows.domains[column].value(value)
        return None if isinstance(reached, float) and not math.isfinite(reached) else reached
    return rounded(Fraction(value), type_)


def rounded(value: Fraction, type_: DataType) -> int | float | Number | None:
    """The number in a type, half up as Spark does; None where the type cannot hold it."""
    if isinstance(type_, Decimal):
        unscaled = _half_up(value * 10**type_.scale)
        return number(unscaled, type_.scale) if abs(unscaled) < 10**type_.precision else None
    if type_ in LIMITS:
        whole = _half_up(value)
        return whole if -LIMITS[type_] <= whole < LIMITS[type_] else None
    try:
        return float(value)
    except OverflowError:
        return None


def _half_up(value: Fraction) -> int:
    """The nearest whole number, halves away from zero."""
    return math.floor(abs(value) + Fraction(1, 2)) * (1 if value >= 0 else -1)


def error_of(table: pa.Table, low: pa.Table, high: pa.Table, aggregates: Sequence[int]) -> float:
    """How far the aggregates of the certain rows may be from the whole answer's; see `Answer.error`."""
    columns = ([each.column(place).to_pylist() for each in (table, low, high)] for place in aggregates)
    return max((relative_error(*cell) for column in columns for cell in zip(*column, strict=True)), default=0.0)
