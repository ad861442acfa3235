"""The cells of an answer: estimates and bounds as doubles first, then tables with the types of the exact answer."""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearly.answer import Answer
from nearly.estimate.intervals import Interval
from nearly.plan.nodes import Query
from nearly.plan.types import to_arrow

Floats = NDArray[np.float64]
Errors = tuple[float, float]
"""Relative half-widths of the interval for now and of the one that stays valid; infinite where there is none."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Columns of the value and of its bounds, each as it came; a bound that is not known is null."""

    value: tuple[pa.ChunkedArray, ...]
    low: tuple[pa.ChunkedArray, ...]
    high: tuple[pa.ChunkedArray, ...]
    hard_low: tuple[pa.ChunkedArray, ...]
    hard_high: tuple[pa.ChunkedArray, ...]
    errors: Mapping[int, Errors] = field(default_factory=dict)
    """Of the columns that are not certain, by place."""

    @property
    def error(self) -> float:
        return max((fixed for fixed, _ in self.errors.values()), default=0.0)

    @property
    def lasting_error(self) -> float:
        return max((lasting for _, lasting in self.errors.values()), default=0.0)

    @classmethod
    def of(cls, found: pa.Table, query: Query) -> Sides:
        """Every bound equal to the value."""
        columns = tuple(_typed(found.column(place), type_) for place, type_ in enumerate(_types(query)))
        return cls(columns, columns, columns, columns, columns)

    def certain_but(self, evolving: list[int], known: dict[int, tuple[list[Any], list[Any]]]) -> Sides:
        """Evolving columns with these certain bounds, or with none."""
        low, high = list(self.hard_low), list(self.hard_high)
        for place in evolving:
            type_ = self.value[place].type
            ends = known.get(place, ([None] * len(self.value[place]),) * 2)
            low[place] = pa.chunked_array([_certain(ends[0], type_, decimal.ROUND_FLOOR)])
            high[place] = pa.chunked_array([_certain(ends[1], type_, decimal.ROUND_CEILING)])
        return replace(self, hard_low=tuple(low), hard_high=tuple(high))

    def opened(self, places: list[int]) -> Sides:
        """These columns without bounds; where there are numbers among them, only they count as errors."""
        low, high = list(self.low), list(self.high)
        for place in places:
            nothing = pa.chunked_array([pa.nulls(len(self.value[place]), self.value[place].type)])
            low[place] = high[place] = nothing
        numbers = [place for place in places if _is_number(self.value[place].type)]
        errors = dict.fromkeys(numbers or places, (float("inf"), float("inf")))
        return replace(self, low=tuple(low), high=tuple(high), errors=errors)

    def surely(self, place: int, theta: Floats) -> Sides:
        """One column with its certain bounds, as far as they are known, and no others."""
        low, high = list(self.low), list(self.high)
        low[place], high[place] = self.hard_low[place], self.hard_high[place]
        certain = Interval(floats(low[place]), floats(high[place]), np.full(len(theta), np.nan))
        return replace(self.closed(place, theta, certain, certain), low=tuple(low), high=tuple(high))

    def within_certain(self, places: list[int]) -> Sides:
        """These columns, estimates and bounds, moved to where they can be for sure; what has no bounds gets none."""
        sides = [list(side) for side in (self.value, self.low, self.high)]
        for place in places:
            for side in sides:
                inside = pc.min_element_wise(pc.max_element_wise(side[place], self.hard_low[place]), self.hard_high[place])
                side[place] = pc.if_else(pc.is_null(side[place]), side[place], inside)
        value, low, high = (tuple(side) for side in sides)
        return replace(self, value=value, low=low, high=high)

    def valued(self, place: int, theta: Floats) -> Sides:
        """One column with other estimates."""
        value = list(self.value)
        value[place] = _typed(pa.chunked_array([pa.array(theta)]), value[place].type)
        return replace(self, value=tuple(value))

    def closed(self, place: int, theta: Floats, fixed: Interval, lasting: Interval) -> Sides:
        """One column with bounds."""
        type_ = self.value[place].type
        low, high = list(self.low), list(self.high)
        low[place] = _typed(pa.chunked_array([pa.array(fixed.low, mask=np.isnan(fixed.low))]), type_, "down")
        high[place] = _typed(pa.chunked_array([pa.array(fixed.high, mask=np.isnan(fixed.high))]), type_, "up")
        errors = {**self.errors, place: (_relative(theta, fixed), _relative(theta, lasting))}
        return replace(self, low=tuple(low), high=tuple(high), errors=errors)


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def assemble(query: Query, sides: Sides, progress: float, confidence: float, stats: dict[str, Any]) -> Answer:
    """An answer that is not yet exact."""
    schema = pa.schema([pa.field(name, type_) for name, type_ in zip(query.names, _types(query), strict=True)])
    columns = (sides.value, sides.low, sides.high, sides.hard_low, sides.hard_high)
    value, low, high, hard_low, hard_high = (pa.Table.from_arrays(list(side), schema=schema) for side in columns)
    facts = stats | {"anytime_error": sides.lasting_error}
    return Answer(value, low, high, hard_low, hard_high, min(progress, 1.0), False, confidence, sides.error, "progressive", facts)


def _types(query: Query) -> list[pa.DataType]:
    return [to_arrow(type_) for type_ in query.types]


def _certain(ends: list[Any], type_: pa.DataType, rounding: str) -> pa.Array:
    """Ends in the column's type, moved outward; those that do not fit it are not known in it."""
    if pa.types.is_decimal(type_):
        step, context = decimal.Decimal(1).scaleb(-type_.scale), decimal.Context(prec=80, rounding=rounding)
        ends = [None if end is None else decimal.Decimal(end).quantize(step, context=context) for end in ends]
    try:
        return pa.array(ends, type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.nulls(len(ends), type_)


def _relative(theta: Floats, found: Interval) -> float:
    """The largest half-width, relative to the value; infinite where an interval is withheld."""
    present = np.isfinite(theta)
    if not present.any():
        return float("inf") if len(theta) else 0.0
    if found.withheld[present].any():
        return float("inf")
    half = (found.high - found.low)[present] / 2
    size = np.abs(theta[present])
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(half == 0, 0.0, half / size)
    return float(relative.max())


def _typed(column: pa.ChunkedArray, type_: pa.DataType, rounding: str = "nearest") -> pa.ChunkedArray:
    """An estimate in the type of the exact value; what does not fit is null."""
    if column.type == type_:
        return column
    if not pa.types.is_floating(column.type) or pa.types.is_floating(type_):
        return column.cast(type_)
    values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=float)
    if pa.types.is_integer(type_):
        return pa.chunked_array([_integers(values, type_, rounding)])
    if pa.types.is_decimal(type_):
        return pa.chunked_array([_decimals(values, type_, rounding)])
    return column.cast(type_)


_ROUND = {"nearest": np.rint, "down": np.floor, "up": np.ceil}
_DECIMAL_ROUND = {"nearest": decimal.ROUND_HALF_UP, "down": decimal.ROUND_FLOOR, "up": decimal.ROUND_CEILING}


def _integers(values: Floats, type_: pa.DataType, rounding: str) -> pa.Array:
    rounded = _ROUND[rounding](values)
    limit = 2.0 ** (type_.bit_width - 1)
    fits = np.isfinite(rounded) & (rounded >= -limit) & (rounded < limit)
    return pa.array(np.where(fits, rounded, 0).astype(np.int64), mask=~fits).cast(type_)


def _decimals(values: Floats, type_: pa.DataType, rounding: str) -> pa.Array:
    step = decimal.Decimal(1).scaleb(-type_.scale)
    most = decimal.Decimal(10) ** (type_.precision - type_.scale)
    context = decimal.Context(prec=80, rounding=_DECIMAL_ROUND[rounding])
    found = []
    for value in values:
        exact = decimal.Decimal(float(value)).quantize(step, context=context) if np.isfinite(value) else None
        found.append(exact if exact is not None and abs(exact) < most else None)
    return pa.array(found, type_)


def floats(column: pa.ChunkedArray) -> Floats:
    """A column of numbers as doubles, NaN where it is null."""
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float)
