"""Bounds that hold for sure: what the unread blocks can still do to COUNT, SUM, AVG, MIN and MAX.

A block's footer tells its rows and the ends of its columns. From these the argument of an aggregate lies in a range, and the
predicate is sure to hold, sure to fail or open on each block, so between `fewest` and `most` of its rows count. Law: the final
value of the aggregate lies in `bounds(...)`, whatever the unread rows are; sums of doubles up to the rounding of n additions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from nearly.algebra.averages import extreme_average
from nearly.errors import Unsupported
from nearly.plan.expressions import Column, Expression
from nearly.plan.types import FRACTIONS, DataType
from nearly.plan.values.ranges import Extent, UnreadBlock, exact, range_of

FUNCTIONS = ("count", "sum", "avg", "min", "max")
HAIR = 1e-9
"""Bounds from doubles are moved outward by this part of their size, far more than rounding can be."""
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


def part_of(argument: Expression | None, box: UnreadBlock, where: Expression | None = None, *, grouped: bool = False) -> UnreadPart:
    """What a box holds for an aggregate (of None: `count(*)`) over rows for which `where` is true.

    `grouped` says that a row may also belong to another group than the one asked for. It does not depend on what is read, so
    computing it once for each block will do.
    """
    rows, columns = box
    held = Extent(True, True, False) if where is None else range_of(where, box)
    found = Extent(nullable=False) if argument is None else range_of(argument, box)
    most = rows if held.high is not False else 0
    fewest = rows if held.low is True and not held.nullable and not grouped else 0
    if isinstance(argument, Column) and argument.name in columns and (nulls := columns[argument.name][2]) is not None:
        return UnreadPart(max(fewest - nulls, 0), min(most, rows - nulls), found.low, found.high)
    return UnreadPart(0 if found.nullable else fewest, most, found.low, found.high)


def bounds(function: str, type_: DataType, unread: Iterable[UnreadPart], read: Read | None = None) -> Extent:
    """The range in which an aggregate over values of this type will end, given what was read and the unread parts.

    Numbers come as exact fractions, to be rounded outwards; an end is None where nothing is known for sure.
    """
    parts = [each for each in unread if each.most]
    done = read or Read()
    match function:
        case "count":
            return Extent(done.count + sum(each.fewest for each in parts), done.count + sum(each.most for each in parts), False)
        case "sum":
            return _sum(parts, done, type_)
        case "avg":
            return Extent(_extreme_average(parts, done, -1), _extreme_average(parts, done, 1))
        case "min" | "max":
            return _extreme(parts, done, function)
    raise Unsupported(f"no certain bounds for {function!r}; they exist for {', '.join(FUNCTIONS)}")


def _sum(parts: Sequence[UnreadPart], read: Read, type_: DataType) -> Extent:
    """The sums of doubles leave room for the rounding errors of so many additions."""
    if not read.count and not parts:
        return Extent()
    low, high = (_extreme_sum(parts, exact(read.total or 0), sign) for sign in (-1, 1))
    if type_ in FRACTIONS:
        reach = max((abs(each) for each in (low, high, exact(read.total)) if each is not None), default=Fraction(0))
        slack = reach * (read.count + sum(each.most for each in parts)) * _EPSILON
        low, high = (None if low is None else low - slack), (None if high is None else high + slack)
    return Extent(low, high, not read.count and not any(each.fewest for each in parts))


def _extreme_sum(parts: Sequence[UnreadPart], total: Fraction | None, sign: int) -> Fraction | None:
    """The least (sign -1) or greatest (1) sum."""
    for part in parts:
        end = part.low if sign < 0 else part.high
        if total is None or end is None:
            return None
        total += end * (part.most if end * sign > 0 else part.fewest)
    return total


def _extreme_average(parts: Sequence[UnreadPart], read: Read, sign: int) -> Fraction | None:
    """The least or greatest average, moved outward."""
    ends = [part.low if sign < 0 else part.high for part in parts]
    total = exact(read.total or 0)
    if total is None or any(end is None for end in ends):
        return None
    values = [float(end) for end in ends]
    others = [(value, part.fewest, part.most - part.fewest) for value, part in zip(values, parts, strict=True)]
    best = extreme_average(float(total), read.count, others, sign)
    if best is None:
        return None
    return Fraction(best) + sign * Fraction(HAIR * (abs(best) + max(map(abs, values), default=0.0)))


def _extreme(parts: Sequence[UnreadPart], read: Read, function: str) -> Extent:
    """MIN: any unread value may be the least; it is at most what was read, and at most the top of a block that must count."""
    best, known = (min, read.least) if function == "min" else (max, read.greatest)
    outer, inner = ("low", "high") if function == "min" else ("high", "low")
    seen = [] if known is None else [exact(known)]
    if None in seen:
        return Extent()
    reach = [getattr(each, outer) for each in parts] + seen
    sure = [end for each in parts if each.fewest and (end := getattr(each, inner)) is not None] + seen
    far, near = None if not reach or None in reach else best(reach), best(sure) if sure else None
    return Extent(far, near, not sure) if function == "min" else Extent(near, far, not sure)
