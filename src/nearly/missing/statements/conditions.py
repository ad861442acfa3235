"""Boxes as a user reads them, in SQL and as example rows; and closure: where nothing is stated, no row is missing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from nearly.algebra.boxes import EVERYWHERE, Box, Region, difference
from nearly.algebra.half_spaces import lowest
from nearly.algebra.ordered_sets import OrderedSet, Rank
from nearly.missing.statements.bound_set import BoundSet
from nearly.plan.quoting import spark_name
from nearly.plan.values.regions import RowSpace

MOST_BOXES = 5_000


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows that no constraint covers: a condition that describes them, and one of them (columns it leaves out are free)."""

    where: str
    example: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.where}    for example {dict(self.example)}"


def gaps(bound: BoundSet, region: Region = EVERYWHERE, most: int = 10) -> list[Gap]:
    """Regions that no constraint covers, at most so many; none when the set is closed over the given region."""
    rest = region
    for constraint in bound.constraints:
        rest = difference(rest, constraint.predicate, bound.rows.everything)[:MOST_BOXES]
    return [Gap(condition(each, bound.rows), decoded(_plain_point(each, bound.rows), bound.rows)) for each in rest[:most]]


def condition(each: Box, rows: RowSpace) -> str:
    """The box in SQL; TRUE for everything. Half-spaces are told in ranks."""
    parts = [_side(column, side, rows) for column, side in sorted(each.sides.items())]
    parts += [
        " + ".join(f"{weight}*{column}" for column, weight in plane.terms) + f" <= {plane.bound} (ranks)" for plane in each.planes
    ]
    return " and ".join(parts) or "TRUE"


def _side(column: str, side: OrderedSet, rows: RowSpace) -> str:
    name = column if column.isidentifier() and column.isascii() else spark_name(column)
    if side == rows.everything[column]:
        return "TRUE"
    options = [_piece(name, first, end, column, rows) for first, end in side.pieces] + [f"{name} is null"] * side.null
    return options[0] if len(options) == 1 else f"({' or '.join(options)})"


def _piece(name: str, first: Rank, end: Rank, column: str, rows: RowSpace) -> str:
    domain = rows.domains[column]
    if end == domain.next(first):
        return f"{name} = {literal(domain.value(first), rows.zone)}"
    low = [] if first == domain.first else [f"{name} >= {literal(domain.value(first), rows.zone)}"]
    high = [] if end == domain.end else [f"{name} < {literal(domain.value(end), rows.zone)}"]
    return " and ".join(low + high) or f"{name} is not null"


def literal(value: Any, zone: str | None = None) -> str:
    """SQL text that Spark, and the binder, read back as the same value; instants are told in the time zone.

    >>> literal("it's"), literal(dt.date(2024, 2, 29)), literal(-1.5)
    ("'it''s'", "DATE '2024-02-29'", '-1.5')
    """
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
        case dt.datetime():
            local = value if value.tzinfo is None else value.astimezone(ZoneInfo(zone or "UTC"))
            return f"TIMESTAMP '{local.replace(tzinfo=None).isoformat(sep=' ', timespec='microseconds')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case float():
            return repr(value)
    return format(value, "f") if hasattr(value, "as_tuple") else str(value)


def point(each: Box, pins: Mapping[str, Rank]) -> dict[str, Rank | None]:
    """Some row of a box: columns of half-spaces by the solver, others by their least value, null where nothing else is allowed."""
    ranks: dict[str, Rank | None] = {}
    if each.planes:
        ranks |= lowest(each.planes, each.sides, {}) or {}
    for column, side in each.sides.items():
        if column not in ranks:
            ranks[column] = side.first if side.pieces else None
    return {**ranks, **pins}


def _plain_point(each: Box, rows: RowSpace) -> dict[str, Rank | None]:
    """A row whose values are plain ones: near the finite end of a range rather than the least value of the type."""
    ranks = point(each, {})
    for column, side in each.sides.items():
        domain = rows.domains[column]
        if side.pieces and not each.planes and side.first == domain.first and side.pieces[0][1] != domain.end:
            last = domain.last(OrderedSet(side.pieces[:1]))
            ranks[column] = side.first if last is None else last
    return ranks


def decoded(ranks: Mapping[str, Rank | None], space: RowSpace) -> dict[str, Any]:
    """The row as values; columns that the constraints leave free are null."""
    return {column: None if rank is None else space.domains[column].value(rank) for column, rank in ranks.items()}
