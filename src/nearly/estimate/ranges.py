"""Bounds that hold for sure: what the unread blocks can still do to COUNT, SUM, AVG, MIN and MAX.

A block's footer tells its rows and the ends of its columns. From these the argument of an aggregate lies in a range, and the
predicate is sure to hold, sure to fail or open on each block, so between `fewest` and `most` of its rows count. Law: the final
value of the aggregate lies in `bounds(...)`, whatever the unread rows are; sums of doubles up to the rounding of n additions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from decimal import Decimal as Number
from fractions import Fraction
from typing import Any

from nearly.errors import Unsupported
from nearly.estimate.expression_range import Extent, UnreadBlock, exact, range_of
from nearly.estimate.verdict import verdict
from nearly.plan.expressions import Column, Expression
from nearly.plan.functions.aggregates import average_type
from nearly.plan.types import DOUBLE, FRACTIONS, INTEGERS, DataType, Decimal

FUNCTIONS = ("count", "sum", "avg", "min", "max")
_EPSILON = Fraction(1, 2**52)


@dataclass(frozen=True, slots=True)
class Read:
    """The aggregate over what was read: rows counted, their sum, their least and greatest value (None: nothing counted)."""

    count: int = 0
    total: Any = 0
    least: Any = None
    greatest: Any = None


@dataclass(frozen=True, slots=True)
class UnreadPart:
    """An unread block as an aggregate sees it: between `fewest` and `most` values that lie in [low, high]."""

    fewest: int
    most: int
    low: Any
    high: Any


def unread_bounds(
    function: str,
    argument: Expression | None,
    boxes: Iterable[UnreadBlock],
    where: Expression | None = None,
    *,
    grouped: bool = False,
) -> Extent:
    """The range of an aggregate over the unread boxes alone; `argument` is None for `count(*)`.

    Only rows for which `where` is true count. `grouped` says that a row may also belong to another group than the one asked for.
    """
    parts = [part_of(argument, box, where, grouped=grouped) for box in boxes]
    return bounds(function, DOUBLE if argument is None else argument.type, parts)


def part_of(argument: Expression | None, box: UnreadBlock, where: Expression | None = None, *, grouped: bool = False) -> UnreadPart:
    """What a box holds for an aggregate; it does not depend on what is read, so computing it once for each block will do."""
    rows, columns = box
    held = verdict(where, UnreadBlock(rows, columns))
    found = Extent(nullable=False) if argument is None else range_of(argument, UnreadBlock(rows, columns))
    most = rows if held.true else 0
    fewest = rows if held.certain and not grouped else 0
    if isinstance(argument, Column) and argument.name in columns and (nulls := columns[argument.name][2]) is not None:
        return UnreadPart(max(fewest - nulls, 0), min(most, rows - nulls), found.low, found.high)
    return UnreadPart(0 if found.nullable else fewest, most, found.low, found.high)


def bounds(function: str, type_: DataType, unread: Iterable[UnreadPart], read: Read | None = None) -> Extent:
    """The range in which an aggregate over values of this type will end, given what was read and the unread parts.

    An end is None where nothing is known for sure.
    """
    if function not in FUNCTIONS:
        raise Unsupported(f"no certain bounds for {function!r}; they exist for {', '.join(FUNCTIONS)}")
    parts = [each for each in unread if each.most]
    done = read or Read()
    match function:
        case "count":
            return Extent(done.count + sum(each.fewest for each in parts), done.count + sum(each.most for each in parts), False)
        case "sum":
            return _sum(parts, done, type_)
        case "avg":
            return _average(parts, done, type_)
        case "min":
            return _least(parts, done, type_)
    return _greatest(parts, done, type_)


def _sum(parts: Sequence[UnreadPart], read: Read, type_: DataType) -> Extent:
    if not read.count and not parts:
        return Extent()
    low, high = (_total([_extreme_sum(each, sign) for each in parts], read) for sign in (-1, 1))
    return _rounded_outward(low, high, parts, read, type_)


def _total(sums: Sequence[Fraction | None], read: Read) -> Fraction | None:
    total: Fraction | None = exact(0 if read.total is None else read.total)
    for each in sums:
        if total is None or each is None:
            return None
        total += each
    return total


def _rounded_outward(
    low: Fraction | None, high: Fraction | None, parts: Sequence[UnreadPart], read: Read, type_: DataType
) -> Extent:
    """Both ends in the result's type; those of fractions leave room for the rounding errors of so many additions."""
    slack = Fraction(0)
    if type_ in FRACTIONS:
        reach = max((abs(each) for each in (low, high, exact(read.total)) if each is not None), default=Fraction(0))
        slack = reach * (read.count + sum(each.most for each in parts)) * _EPSILON
    elif isinstance(type_, Decimal):
        slack = Fraction(1, 10**type_.scale)
    low, high = (None if low is None else low - slack), (None if high is None else high + slack)
    nullable = not read.count and not any(each.fewest for each in parts)
    return Extent(_held(low, type_, up=False), _held(high, type_, up=True), nullable)


def _extreme_sum(part: UnreadPart, sign: int) -> Fraction | None:
    """The least (sign -1) or greatest (sign 1) sum of the part's values."""
    end = part.low if sign < 0 else part.high
    if end is None:
        return None
    return Fraction(end * (part.most if end * sign > 0 else part.fewest))


def _average(parts: Sequence[UnreadPart], read: Read, type_: DataType) -> Extent:
    low, high = (_extreme_average(parts, read, sign) for sign in (-1, 1))
    return _rounded_outward(low, high, parts, read, average_type(type_))


def _extreme_average(parts: Sequence[UnreadPart], read: Read, sign: int) -> Fraction | None:
    """The most extreme average: all rows that must count at their extreme value, then parts in order while they help."""
    ends = [(each.low if sign < 0 else each.high) for each in parts]
    start = exact(read.total if read.total is not None else 0)
    if start is None or any(end is None for end in ends):
        return None
    count = read.count + sum(each.fewest for each in parts)
    total = start + sum((end * each.fewest for end, each in zip(ends, parts, strict=True)), start=Fraction(0))
    # Sorting by doubles is faster, and ends that differ by less than a double can tell give the same average up to rounding.
    for end, part in sorted(zip(ends, parts, strict=True), key=lambda pair: -sign * float(pair[0])):
        if not count or (end - total / count) * sign > 0:
            count, total = count + part.most - part.fewest, total + end * (part.most - part.fewest)
    return total / count if count else None


def _least(parts: Sequence[UnreadPart], read: Read, type_: DataType) -> Extent:
    """MIN: any unread value may be the least; it is at most what was read, and at most the top of a block that must count."""
    lows = [each.low for each in parts] + ([exact(read.least)] if read.least is not None else [])
    tops = [each.high for each in parts if each.fewest and each.high is not None]
    tops += [exact(read.least)] if read.least is not None else []
    low = None if not lows or None in lows else min(lows)
    return Extent(_held(low, type_, up=False), _held(min(tops, default=None), type_, up=True), not tops)


def _greatest(parts: Sequence[UnreadPart], read: Read, type_: DataType) -> Extent:
    highs = [each.high for each in parts] + ([exact(read.greatest)] if read.greatest is not None else [])
    bottoms = [each.low for each in parts if each.fewest and each.low is not None]
    bottoms += [exact(read.greatest)] if read.greatest is not None else []
    high = None if not highs or None in highs else max(highs)
    return Extent(_held(max(bottoms, default=None), type_, up=False), _held(high, type_, up=True), not bottoms)


def _held(value: Any, type_: DataType, *, up: bool) -> Any:
    """The end as a value of the result's type, moved outward where it does not fit; dates and strings as they are."""
    if not isinstance(value, Fraction):
        return value
    if type_ in INTEGERS:
        return int(value)
    if isinstance(type_, Decimal):
        rounding = ROUND_CEILING if up else ROUND_FLOOR
        return Context(prec=80, rounding=rounding).divide(Number(value.numerator), Number(value.denominator))
    return _outward(value, up)


def _outward(value: Fraction, up: bool) -> float | None:
    try:
        nearest = float(value)
    except OverflowError:
        return None
    if Fraction(nearest) == value:
        return nearest
    return math.nextafter(nearest, math.inf if up else -math.inf)
