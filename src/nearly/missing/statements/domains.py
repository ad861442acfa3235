"""The ordered domain behind each column type: values to ranks and back (see `algebra.ordered_sets`)."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal as Number
from decimal import InvalidOperation
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nearly.algebra.boxes import Space
from nearly.algebra.ordered_sets import EMPTY, END_OF_TEXTS, OrderedSet, Rank, span
from nearly.errors import SchemaError, Unsupported, unknown
from nearly.plan.functions.casting import LIMITS, number
from nearly.plan.schema import TableSchema
from nearly.plan.types import BOOLEAN, DATE, DOUBLE, FLOAT, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType, Decimal

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (ranks of timestamps count from here in their own zone)
_FIRST_DAY = dt.date(1970, 1, 1)
_MICROSECONDS_A_DAY = 86_400_000_000
_MICROSECOND = dt.timedelta(microseconds=1)
_FORMATS = {DOUBLE: (">d", ">q"), FLOAT: (">f", ">i")}


@dataclass(frozen=True, slots=True)
class OrderedDomain:
    """The values of a type in order.

    `floor(value)` is the rank of the greatest value of the type that is at most the given one (which may lie between two values of
    the type), `exact` tells whether it is that one. `unit` is the amount of one rank where ranks are proportional to amounts.
    """

    type: DataType
    first: Rank
    end: Rank
    floor: Callable[[Any], tuple[Rank, bool]]
    value: Callable[[Rank], Any]
    unit: Fraction | None = None

    @property
    def values(self) -> OrderedSet:
        """All values, without null."""
        return span(self.first, self.end)

    @property
    def everything(self) -> OrderedSet:
        return OrderedSet(((self.first, self.end),), null=True)

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
        return span(self.first, self.next(rank)) if rank >= self.first else EMPTY

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

    def amount(self, rank: Rank) -> Fraction | float:
        """The number behind a rank, exactly; infinite for the infinities and NaN."""
        if self.unit is not None:
            return Fraction(rank) * self.unit
        value = self.value(rank)
        return Fraction(value) if math.isfinite(value) else (-math.inf if value < 0 else math.inf)


def domain_of(type_: DataType, zone: str, column: str) -> OrderedDomain:
    """The domain of a column; `zone` is the session's time zone, in which timestamps without an offset are read."""
    if type_ in LIMITS:
        limit = LIMITS[type_]
        return OrderedDomain(type_, -limit, limit, lambda value: _floor(exact_number(value, column), 0, limit), int, Fraction(1))
    if isinstance(type_, Decimal):
        return _decimals(type_, column)
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


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise Unsupported(
            f"timestamps in the time zone {name!r}; set spark.sql.session.timeZone to a name such as Europe/Oslo"
        ) from None


def exact_number(value: Any, column: str) -> Fraction | float:
    """A number of the user's as what it is written as: the float 149.99 means 149.99; an infinity stays a float."""
    if isinstance(value, bool) or not isinstance(value, int | float | Number | Fraction | str):
        raise SchemaError(f"column {column!r} holds numbers, {value!r} is {_kind(value)}")
    if isinstance(value, float) and math.isinf(value):
        return value
    try:
        return value if isinstance(value, Fraction) else Fraction(Number(repr(value) if isinstance(value, float) else value))
    except (InvalidOperation, ValueError, OverflowError):
        raise SchemaError(f"column {column!r} holds numbers, {value!r} is none") from None


def _floor(value: Fraction | float, scale: int, limit: int) -> tuple[int, bool]:
    if isinstance(value, float):
        return (limit, False) if value > 0 else (-limit - 1, False)
    scaled = value * 10**scale
    return max(min(math.floor(scaled), limit), -limit - 1), scaled.denominator == 1


def _decimals(type_: Decimal, column: str) -> OrderedDomain:
    limit = 10**type_.precision
    unit = Fraction(1, 10**type_.scale)
    return OrderedDomain(
        type_, 1 - limit, limit, lambda value: _floor(exact_number(value, column), type_.scale, limit),
        lambda rank: number(rank, type_.scale), unit,
    )  # fmt: skip


def _doubles(type_: DataType, column: str) -> OrderedDomain:
    """Ranks of floating point numbers: their bits, mirrored below zero; NaN is the greatest, as in Spark."""
    floating, whole = _FORMATS[type_]
    infinity = int(struct.unpack(whole, struct.pack(floating, math.inf))[0])

    def rank_of(value: float) -> int:
        bits = int(struct.unpack(whole, struct.pack(floating, abs(value)))[0])
        return bits if value >= 0 else -bits

    def value_of(rank: int) -> float:
        if rank > infinity:
            return math.nan
        return math.copysign(float(struct.unpack(floating, struct.pack(whole, abs(rank)))[0]), rank)

    def floor(value: Any) -> tuple[int, bool]:
        given = float(exact_number(value, column)) if not isinstance(value, float) else value
        if math.isnan(given):
            return infinity + 1, True
        try:
            rank = rank_of(given)
        except OverflowError:
            rank = infinity if given > 0 else -infinity
        found = value_of(rank)
        return (rank, found == given) if found <= given else (rank - 1, False)

    return OrderedDomain(type_, -infinity, infinity + 2, floor, value_of)


def _dates(column: str) -> OrderedDomain:
    def floor(value: Any) -> tuple[int, bool]:
        if isinstance(value, str):
            value = _parsed(value, dt.date.fromisoformat, column, "a date such as 2024-11-30")
        if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
            raise SchemaError(f"column {column!r} holds dates, {value!r} is {_kind(value)}")
        return (value - _FIRST_DAY).days, True

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


@dataclass(frozen=True, slots=True)
class RowSpace:
    """The domains of a table's columns; a column of another type has none. `zone` is the session's time zone."""

    table: str
    schema: TableSchema
    domains: Mapping[str, OrderedDomain]
    everything: Space
    zone: str

    @classmethod
    def of(cls, schema: TableSchema, zone: str) -> RowSpace:
        domains = {}
        for column in schema.columns:
            try:
                domains[column.name] = domain_of(column.type, zone, column.name)
            except Unsupported:
                continue
        return cls(schema.name, schema, domains, {name: domain.everything for name, domain in domains.items()}, zone)

    def column(self, name: str) -> str:
        """The column of that name, compared without case."""
        found = [each.name for each in self.schema.columns if each.name.lower() == name.lower()]
        if not found:
            raise unknown("column", name, (each.name for each in self.schema.columns))
        if len(found) > 1 and name not in found:
            raise SchemaError(f"column {name!r} of table {self.table!r} is ambiguous: {', '.join(found)}")
        chosen = name if name in found else found[0]
        if chosen not in self.domains:
            domain_of(next(each.type for each in self.schema.columns if each.name == chosen), self.zone, chosen)
        return chosen
