"""Values as literals of Spark SQL that the binder reads back as the same values, and single rows of a region."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from nearly.algebra.boxes import Box
from nearly.algebra.half_spaces import lowest
from nearly.algebra.ordered_sets import Rank
from nearly.missing.statements.domains import RowSpace
from nearly.plan.quoting import spark_name


def literal(value: Any, zone: str = "UTC") -> str:
    """SQL text of a value.

    >>> literal("it's"), literal(dt.date(2024, 2, 29)), literal(-1.5)
    ("'it''s'", "DATE '2024-02-29'", '-1.5')
    """
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
        case dt.datetime():
            local = value if value.tzinfo is None else value.astimezone(ZoneInfo(zone))
            return f"TIMESTAMP '{local.replace(tzinfo=None).isoformat(sep=' ', timespec='microseconds')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case float():
            return repr(value)
    return format(value, "f") if hasattr(value, "as_tuple") else str(value)


def quoted(column: str) -> str:
    return column if column.isidentifier() and column.isascii() else spark_name(column)


def bounds_text(column: str, limits: tuple[Any, Any, bool | None], space: RowSpace) -> str:
    """`low <= column < high` in SQL; a column of one value only is an equality."""
    low, high, null = limits
    name = quoted(column)
    if null:
        return f"{name} IS NULL"
    parts = [] if low is None else [f"{name} >= {literal(low, space.zone)}"]
    parts += [] if high is None else [f"{name} < {literal(high, space.zone)}"]
    return " and ".join(parts) or f"{name} IS NOT NULL"


def point(each: Box, pins: Mapping[str, Rank]) -> dict[str, Rank | None]:
    """Some row of a box: columns of half-spaces by the solver, others by their least value, null where nothing else is allowed."""
    ranks: dict[str, Rank | None] = {}
    if each.planes:
        ranks |= lowest(each.planes, each.sides, {}) or {}
    for column, side in each.sides.items():
        if column not in ranks:
            ranks[column] = side.first if side.pieces else None
    return {**ranks, **pins}


def decoded(ranks: Mapping[str, Rank | None], space: RowSpace) -> dict[str, Any]:
    """The row as values; columns that the constraints leave free are null."""
    return {column: None if rank is None else space.domains[column].value(rank) for column, rank in ranks.items()}
