"""The ordered domain behind each column type: values to ranks and back (see `algebra.ordered_sets`)."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal as Number
from decimal import InvalidOperation
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from nearly.algebra.ordered_sets import EMPTY, END_OF_TEXTS, OrderedSet, Rank, span
from nearly.errors import SchemaError, Unsupported
from nearly.plan.expressions import Cast
from nearly.plan.functions.casting import LIMITS, number
from nearly.plan.types import BOOLEAN, DATE, DOUBLE, FLOAT, INTEGERS, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType, Decimal

EXACT_IN_DOUBLES = 2**53
"""Whole numbers up to here stay different when they become doubles."""
DIGITS_OF_A_DOUBLE = 15
"""Decimals of so many digits do."""
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (ranks of timestamps count from here in their own zone)
_FIRST_DAY = dt.date(1970, 1, 1)
_MICROSECONDS_A_DAY = 86_400_000_000
_MICROSECOND = dt.timedelta(microseconds=1)
_FORMATS = {DOUBLE: (">d", ">q"), FLOAT: (">f", ">i")}

Floor = Callable[[Any], tuple[Rank, bool]]


@dataclass(frozen=True, slots=True)
class OrderedDomain:
    """The values of a type in order.

    `floor(value)` is the rank of the greatest value of the type that is at most the given one (which may lie between two values of
    the type), and whether it is that one. `unit` is the amount of one rank where ranks are proportional to amounts.
    """

    type: DataType
    first: Rank
    end: Rank
    floor: Floor
    value: Callable[[Rank], Any]
    unit: Fraction | None = None

    @property
    def values(self) -> OrderedSet:
        """All values, without null."""
        return span(self.first, self.end)

    @property
    def everything(self) -> OrderedSet:
        return OrderedSet(((self.first, self.end),), null=True)

    @property
    def is_wide(self) -> bool:
        """Whether some values fall together when they become doubles."""
        return self.unit is not None and self.end > EXACT_IN_DOUBLES + 1

    def next(self, rank: Rank) -> Rank:
        return rank + "\0" if self.type == STRING else rank + 1

    def last(self, values: OrderedSet) -> Rank | None:
        """The greatest value of the set; None where it has none, as among texts."""
        end = values.end
        if self.type != STRING:
            return end - 1
        return end[:-1] if end is not END_OF_TEXTS and end.endswith("\0") else None

    def at_most(self, value: Any) -> OrderedSet:
        rank, _ = self.floor(value)
        return span(self.first, min(self.next(rank), self.end)) if rank >= self.first else EMPTY

    def below(self, value: Any) -> OrderedSet:
        rank, exact = self.floor(value)
        return span(self.first, min(rank if exact else self.next(rank), self.end)) if rank >= self.first else EMPTY

    def at_least(self, value: Any) -> OrderedSet:
        return self.values - self.below(value)

    def above(self, value: Any) -> OrderedSet:
        return self.values - self.at_most(value)

    def equal(self, value: Any) -> OrderedSet:
        rank, exact = self.floor(value)
        return span(rank, self.next(rank)) & self.values if exact else EMPTY

    def unequal(self, value: Any) -> OrderedSet:
        return self.values - self.equal(value)


def domain_of(type_: DataType, zone: str, column: str) -> OrderedDomain:
    """The domain of a column; `zone` is the session's time zone, in which timestamps without an offset are read."""
    if type_ in LIMITS:
        limit = LIMITS[type_]
        return OrderedDomain(type_, -limit, limit, lambda value: _floor(exact_number(value, column), 0, limit), int, Fraction(1))
    if isinstance(type_, Decimal):
        limit, scale = 10**type_.precision, type_.scale
        floor: Floor = lambda value: _floor(exact_number(value, column), scale, limit)  # noqa: E731
        return OrderedDomain(type_, 1 - limit, limit, floor, lambda rank: number(rank, scale), Fraction(1, 10**scale))
    if type_ in (DOUBLE, FLOAT):
        return _doubles(type_, column)
    if type_ == DATE:
        return _dates(column)
    if type_ in (TIMESTAMP, TIMESTAMP_NTZ):
        return _timestamps(type_, _zone(zone) if type_ == TIMESTAMP else None, column)
    if type_ == STRING:
        return OrderedDomain(STRING, "", END_OF_TEXTS, lambda value: (_of_kind(value, str, column, "a text"), True), str)
    if type_ == BOOLEAN:
        return OrderedDomain(BOOLEAN, 0, 2, lambda value: (int(_of_kind(value, bool, column, "true or false")), True), bool)
    raise Unsupported(f"column {column!r} is of type {type_}; constraints are about numbers, dates, timestamps, texts and booleans")


def keeps_values(cast: Cast) -> bool:
    """Whether a cast of a number keeps all values apart and in order; a bigint beside doubles does so where it is not wide."""
    source, target = cast.operand.type, cast.type
    if source == target:
        return True
    if source in INTEGERS:
        if target in INTEGERS:
            return INTEGERS.index(source) <= INTEGERS.index(target)
        return target == DOUBLE or (isinstance(target, Decimal) and 10**target.whole_digits >= LIMITS[source])
    if isinstance(source, Decimal):
        if isinstance(target, Decimal):
            return target.scale >= source.scale and target.whole_digits >= source.whole_digits
        return target == DOUBLE and source.precision <= DIGITS_OF_A_DOUBLE
    return bool(source == FLOAT and target == DOUBLE)


def exact_number(value: Any, column: str) -> Fraction | float:
    """A number of the user's as what it is written as: the float 149.99 means 149.99; an infinity stays a float."""
    if isinstance(value, np.number):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float | Number | Fraction | str):
        raise SchemaError(f"column {column!r} holds numbers, {value!r} is {_kind(value)}")
    if isinstance(value, float) and math.isinf(value):
        return value
    try:
        return value if isinstance(value, Fraction) else Fraction(Number(repr(value) if isinstance(value, float) else value))
    except (InvalidOperation, ValueError, OverflowError):
        raise SchemaError(f"column {column!r} holds numbers, {value!r} is none") from None


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise Unsupported(
            f"timestamps in the time zone {name!r}; set spark.sql.session.timeZone to a name such as Europe/Oslo"
        ) from None


def _floor(value: Fraction | float, scale: int, limit: int) -> tuple[int, bool]:
    if isinstance(value, float):
        return (limit, False) if value > 0 else (-limit - 1, False)
    scaled = value * 10**scale
    return max(min(math.floor(scaled), limit), -limit - 1), scaled.denominator == 1


def _doubles(type_: DataType, column: str) -> OrderedDomain:
    """Ranks of floating point numbers: their bits, mirrored below zero; NaN is the greatest, as in Spark."""
    floating, whole = _FORMATS[type_]
    infinity = int(struct.unpack(whole, struct.pack(floating, math.inf))[0])

    def value_of(rank: int) -> float:
        if rank > infinity:
            return math.nan
        return math.copysign(float(struct.unpack(floating, struct.pack(whole, abs(rank)))[0]), rank)

    def floor(value: Any) -> tuple[int, bool]:
        try:
            given = value if isinstance(value, float) else float(exact_number(value, column))
        except OverflowError:
            return (infinity - 1, False) if value > 0 else (-infinity, False)
        if math.isnan(given):
            return infinity + 1, True
        try:
            bits = int(struct.unpack(whole, struct.pack(floating, abs(given)))[0])
        except OverflowError:
            bits = infinity
        rank = bits if given >= 0 else -bits
        found = value_of(rank)
        return (rank, found == given) if found <= given else (rank - 1, False)

    return OrderedDomain(type_, -infinity, infinity + 2, floor, value_of)


def _dates(column: str) -> OrderedDomain:
    def floor(value: Any) -> tuple[int, bool]:
        if isinstance(value, str):
            value = _parsed(value, dt.date.fromisoformat, column, "a date such as 2024-11-30")
        if not isinstance(value, dt.date):
            raise SchemaError(f"column {column!r} holds dates, {value!r} is {_kind(value)}")
        if not isinstance(value, dt.datetime):
            return (value - _FIRST_DAY).days, True
        moment = value if value.tzinfo is None else value.astimezone(dt.UTC)
        return (moment.date() - _FIRST_DAY).days, moment.time() == dt.time.min

    first, last = (dt.date.min - _FIRST_DAY).days, (dt.date.max - _FIRST_DAY).days
    return OrderedDomain(DATE, first, last + 1, floor, lambda rank: _FIRST_DAY + dt.timedelta(days=rank), Fraction(1))


def _timestamps(type_: DataType, zone: ZoneInfo | None, column: str) -> OrderedDomain:
    def floor(value: Any) -> tuple[int, bool]:
        if isinstance(value, str):
            value = _parsed(value, dt.datetime.fromisoformat, column, "a timestamp such as 2024-11-30 08:15:00")
        if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            value = dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001  (the zone follows below)
        if not isinstance(value, dt.datetime):
            raise SchemaError(f"column {column!r} holds timestamps, {value!r} is {_kind(value)}")
        if zone is None:
            return (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND, True
        instant = value.replace(tzinfo=zone) if value.tzinfo is None else value
        return (instant.astimezone(dt.UTC).replace(tzinfo=None) - _EPOCH) // _MICROSECOND, True

    def value_of(rank: int) -> dt.datetime:
        moment = _EPOCH + rank * _MICROSECOND
        return moment if zone is None else moment.replace(tzinfo=dt.UTC)

    first, last = ((day - _FIRST_DAY).days * _MICROSECONDS_A_DAY for day in (dt.date.min, dt.date.max))
    return OrderedDomain(type_, first, last + _MICROSECONDS_A_DAY, floor, value_of, Fraction(1))


def _parsed(text: str, parse: Callable[[str], Any], column: str, wanted: str) -> Any:
    try:
        return parse(text.strip())
    except ValueError:
        raise SchemaError(f"column {column!r}: {text!r} is not {wanted}") from None


def _of_kind(value: Any, kind: type, column: str, wanted: str) -> Any:
    if not isinstance(value, kind):
        raise SchemaError(f"column {column!r} holds {wanted}, {value!r} is {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    return f"of Python type {type(value).__name__}"
