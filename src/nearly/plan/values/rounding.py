"""Exact numbers as values of a type: the one place where a number is rounded, to the nearest value or outwards.

Law: rounded(v, t, DOWN) <= v <= rounded(v, t, UP), and a value of the type is itself. Rounding is monotone in each direction, so
ends that are rounded alike keep everything between them.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context
from decimal import Decimal as Number
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearly.plan.functions.casting import LIMITS, number
from nearly.plan.types import DOUBLE, FLOAT, DataType, Decimal, to_arrow

NEAREST, DOWN, UP = "nearest", "down", "up"
"""To the nearest value, halves away from zero as Spark rounds; or to the next one at most, or at least, as large."""
LARGEST = 1e60
"""Beyond all decimals."""
_ROUNDINGS = {NEAREST: ROUND_HALF_UP, DOWN: ROUND_FLOOR, UP: ROUND_CEILING}


def rounded(value: Fraction, type_: DataType, towards: str = NEAREST) -> Fraction | None:
    """The number with the digits that the type keeps, however large; None for one that is too large for a fraction."""
    if type_ in (DOUBLE, FLOAT):
        return _floating(value, type_, towards)
    unit = 10**type_.scale if isinstance(type_, Decimal) else 1
    return Fraction(_whole(value * unit, towards), unit)


def typed(value: Any, type_: DataType, towards: str = NEAREST) -> Any:
    """A number as a value of the type; None where the type cannot hold it. What is no number is left as it is.

    >>> from nearly.plan.types import INT, decimal
    >>> typed(Fraction(5, 2), INT), typed(2.5, INT, DOWN), typed(Fraction(1, 3), decimal(4, 2), UP)
    (3, 2, Decimal('0.34'))
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | Number | Fraction):
        return value
    held = rounded(Fraction(value), type_, towards)
    if held is None or type_ in (DOUBLE, FLOAT):
        return None if held is None else float(held)
    if isinstance(type_, Decimal):
        unscaled = int(held * 10**type_.scale)
        return number(unscaled, type_.scale) if abs(unscaled) < 10**type_.precision else None
    return int(held) if -LIMITS[type_] <= held < LIMITS[type_] else None


def typed_array(values: NDArray[np.float64], type_: DataType, towards: str = NEAREST) -> pa.Array:
    """Doubles as an array of whole numbers or decimals, by quicker ways to the same values, since answers may have many."""
    if isinstance(type_, Decimal):
        step, most = Number(1).scaleb(-type_.scale), Number(10) ** type_.whole_digits
        context = Context(prec=80, rounding=_ROUNDINGS[towards])
        found = [Number(each).quantize(step, context=context) if abs(each) < LARGEST else None for each in values.tolist()]
        return pa.array([None if each is None or abs(each) >= most else each for each in found], to_arrow(type_))
    whole = {NEAREST: np.rint, DOWN: np.floor, UP: np.ceil}[towards](values)
    fits = np.isfinite(whole) & (whole >= -LIMITS[type_]) & (whole < LIMITS[type_])
    return pa.array(np.where(fits, whole, 0).astype(np.int64), mask=~fits).cast(to_arrow(type_))


def _whole(value: Fraction, towards: str) -> int:
    if towards == NEAREST:
        return math.floor(abs(value) + Fraction(1, 2)) * (1 if value >= 0 else -1)
    return math.floor(value) if towards == DOWN else math.ceil(value)


def _floating(value: Fraction, type_: DataType, towards: str) -> Fraction | None:
    try:
        near = float(value)
    except OverflowError:
        return None
    if type_ == FLOAT:
        with np.errstate(over="ignore"):
            near = float(np.float32(near))
    if not math.isfinite(near):
        return None
    beyond = Fraction(near) > value if towards == DOWN else Fraction(near) < value
    if towards != NEAREST and beyond:
        away = -math.inf if towards == DOWN else math.inf
        near = float(np.nextafter(np.float32(near), np.float32(away))) if type_ == FLOAT else math.nextafter(near, away)
    return Fraction(near) if math.isfinite(near) else None
