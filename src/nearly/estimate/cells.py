"""The cells of an answer: estimates and bounds as doubles first, then tables with the types of the exact answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearly.algebra import arrow as pc
from nearly.answer import NO_ROWS, Answer, UnseenRows
from nearly.estimate.intervals import Interval
from nearly.plan.nodes import BoundQuery
from nearly.plan.types import from_arrow, to_arrow
from nearly.plan.values.rounding import DOWN, NEAREST, UP, typed, typed_array

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sides:
    """Columns of the value and of its bounds, each as it came; a bound that is not known is null.

    Columns at the places in `evolving` may still change; of all others every bound equals the value.
    """

    value: tuple[pa.ChunkedArray, ...]
    low: tuple[pa.ChunkedArray, ...]
    high: tuple[pa.ChunkedArray, ...]
    hard_low: tuple[pa.ChunkedArray, ...]
    hard_high: tuple[pa.ChunkedArray, ...]
    evolving: tuple[int, ...] = ()

    @classmethod
    def of(cls, found: pa.Table, query: BoundQuery) -> Sides:
        """Every bound equal to the value."""
        columns = tuple(_typed(found.column(place), type_) for place, type_ in enumerate(_types(query)))
        return cls(columns, columns, columns, columns, columns)

    @property
    def error(self) -> float:
        """The largest distance from a value to the farther end of its interval, relative to the value."""
        return max((_reach(self.value[at], self.low[at], self.high[at]) for at in self.evolving), default=0.0)

    def opened(self, evolving: list[int], known: dict[int, tuple[list[Any], list[Any]]]) -> Sides:
        """Evolving columns without intervals, and with these certain bounds, or none."""
        sides = [list(side) for side in (self.low, self.high, self.hard_low, self.hard_high)]
        for place in evolving:
            type_, rows = self.value[place].type, len(self.value[place])
            ends = known.get(place, ([None] * rows,) * 2)
            nothing = pa.chunked_array([pa.nulls(rows, type_)])
            sides[0][place] = sides[1][place] = nothing
            sides[2][place] = pa.chunked_array([_certain(ends[0], type_, DOWN)])
            sides[3][place] = pa.chunked_array([_certain(ends[1], type_, UP)])
        low, high, hard_low, hard_high = (tuple(side) for side in sides)
        return replace(self, low=low, high=high, hard_low=hard_low, hard_high=hard_high, evolving=tuple(evolving))

    def valued(self, place: int, theta: Floats) -> Sides:
        """One column with other estimates."""
        value = list(self.value)
        value[place] = _typed(pa.chunked_array([pa.array(theta, mask=np.isnan(theta))]), value[place].type)
        return replace(self, value=tuple(value))

    def closed(self, place: int, found: Interval) -> Sides:
        """One column with intervals; where none is to be had, none."""
        type_ = self.value[place].type
        low, high = list(self.low), list(self.high)
        low[place] = _typed(pa.chunked_array([pa.array(found.low, mask=np.isnan(found.low))]), type_, DOWN)
        high[place] = _typed(pa.chunked_array([pa.array(found.high, mask=np.isnan(found.high))]), type_, UP)
        return replace(self, low=tuple(low), high=tuple(high))

    def within_certain(self) -> Sides:
        """Evolving columns, values and intervals, moved to where they can be for sure; certain bounds where there is no interval.

        An interval that lies wholly outside of the certain one was wrong, and does not shrink to its end: it goes.
        """
        sides = [list(side) for side in (self.value, self.low, self.high)]
        for place in self.evolving:
            least, most = self.hard_low[place], self.hard_high[place]
            if least.null_count == most.null_count == len(least):  # nothing is certain
                continue
            low, high = sides[1][place], sides[2][place]
            outside = pc.or_(_true(pc.less(high, least)), _true(pc.greater(low, most)))
            none = pc.or_(outside, pc.and_(pc.is_null(low), pc.is_null(high)))
            sides[0][place] = _moved(sides[0][place], least, most)
            sides[1][place] = pc.if_else(none, least, _moved(low, least, most))
            sides[2][place] = pc.if_else(none, most, _moved(high, least, most))
        value, low_, high_ = (tuple(side) for side in sides)
        return replace(self, value=value, low=low_, high=high_)


def _true(found: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(found, False)


def _moved(side: pa.ChunkedArray, least: pa.ChunkedArray, most: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values between two bounds, as far as these are known; what is null stays so."""
    above = pc.if_else(_true(pc.less(side, least)), least, side)
    return pc.if_else(_true(pc.greater(above, most)), most, above)


def _reach(value: pa.ChunkedArray, low: pa.ChunkedArray, high: pa.ChunkedArray) -> float:
    """How far the farthest end is from its value, relative to that; infinite where a value or an end is not known."""
    if not len(value):
        return 0.0
    if not _is_number(value.type):
        same = pc.and_(_true(pc.equal(value, low)), _true(pc.equal(value, high)))
        return 0.0 if pc.all(same).as_py() else float("inf")
    middle, ends = floats(value), (floats(low), floats(high))
    reach = np.maximum(middle - ends[0], ends[1] - middle)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(reach == 0, 0.0, reach / np.abs(middle))
    return float(np.where(np.isnan(relative), np.inf, relative).max())


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Which rows an answer lacks, and which of its own may go; `error` is the share of rows that this may change."""

    complete: bool = True
    unseen: UnseenRows | None = NO_ROWS
    tentative: pa.BooleanArray | None = None
    error: float = 0.0


def assemble(
    query: BoundQuery, sides: Sides, rows: RowChanges, progress: float, confidence: float, stats: dict[str, Any],
    source: str = "progressive",
) -> Answer:  # fmt: skip
    """An answer that is not yet exact."""
    schema = pa.schema([pa.field(name, type_) for name, type_ in zip(query.names, _types(query), strict=True)])
    columns = (sides.value, sides.low, sides.high, sides.hard_low, sides.hard_high)
    value, low, high, hard_low, hard_high = (pa.Table.from_arrays(list(side), schema=schema) for side in columns)
    return Answer(
        value, low, high, hard_low, hard_high, min(progress, 1.0), False, confidence, max(sides.error, rows.error), source,
        stats, complete=rows.complete, unseen=rows.unseen, tentative=rows.tentative,
    )  # fmt: skip


def _types(query: BoundQuery) -> list[pa.DataType]:
    return [to_arrow(type_) for type_ in query.types]


def _certain(ends: list[Any], type_: pa.DataType, towards: str) -> pa.Array:
    """Ends in the column's type, moved outward; those that do not fit it are not known in it."""
    try:
        return pa.array([typed(end, from_arrow(type_), towards) for end in ends], type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.nulls(len(ends), type_)


def _typed(column: pa.ChunkedArray, type_: pa.DataType, towards: str = NEAREST) -> pa.ChunkedArray:
    """An estimate in the type of the exact value; what does not fit is null."""
    if column.type == type_:
        return column
    if not pa.types.is_floating(column.type) or not (pa.types.is_integer(type_) or pa.types.is_decimal(type_)):
        return column.cast(type_)
    values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=float)
    return pa.chunked_array([typed_array(values, from_arrow(type_), towards)])


def floats(column: pa.ChunkedArray) -> Floats:
    """A column of numbers as doubles, NaN where it is null."""
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float)
