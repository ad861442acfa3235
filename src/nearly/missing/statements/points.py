"""Single rows of a region, for examples and witnesses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearly.algebra.boxes import Box
from nearly.algebra.half_spaces import lowest
from nearly.algebra.ordered_sets import Rank
from nearly.missing.statements.row_space import RowSpace


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
