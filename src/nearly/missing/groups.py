"""Groups of a range query: those of the certain rows, and those that missing rows may add."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from nearly.algebra.boxes import Box, Region, box, difference, intersection
from nearly.algebra.ordered_sets import ONLY_NULL, OrderedSet
from nearly.errors import Unsupported
from nearly.missing.range_query import Key
from nearly.missing.statements.bound_set import BoundSet
from nearly.plan.types import STRING
from nearly.plan.values.domains import OrderedDomain
from nearly.plan.values.regions import RowSpace

MOST_NEW_GROUPS = 1000
MOST_DIFFERENCES = 20_000


@dataclass(frozen=True, slots=True)
class NewGroups:
    """Keys that missing rows may add, and where the rows are whose keys are too many to list (boxes that may overlap)."""

    keys: tuple[Key, ...]
    rest: Region


def group_region(columns: Sequence[str], key: Key, rows: RowSpace) -> Region:
    """The rows of one group; null is a group of its own."""
    return box({
        column: ONLY_NULL if value is None else rows.domains[column].equal(value)
        for column, value in zip(columns, key, strict=True)
    })  # fmt: skip


def new_groups(columns: Sequence[str], where: Region, known: set[Key], bound: BoundSet) -> NewGroups:
    """The groups besides the known ones in which rows may be missing."""
    if not columns:
        return NewGroups((), ())
    found: dict[Key, None] = {}
    rest: list[Box] = []
    for constraint in bound.constraints:
        if constraint.high == 0:
            continue
        for each in intersection(constraint.allowed, where):
            keys = _keys(each, columns, bound.rows)
            if keys is None or len(found) + len(keys) > MOST_NEW_GROUPS:
                rest.append(each)
            else:
                found |= dict.fromkeys(key for key in keys if key not in known)
    return NewGroups(tuple(found), _unlisted(rest, columns, (*known, *found), bound.rows))


def _unlisted(rest: Sequence[Box], columns: Sequence[str], listed: Sequence[Key], rows: RowSpace) -> Region:
    """What is left of boxes without the listed groups; too many of both are left as they are, which only widens ranges."""
    if len(rest) * len(listed) > MOST_DIFFERENCES:
        return tuple(rest)
    groups = tuple(each for key in listed for each in group_region(columns, key, rows))
    return tuple(piece for each in rest for piece in difference((each,), groups, rows.everything))


def _keys(each: Box, columns: Sequence[str], rows: RowSpace) -> list[Key] | None:
    """All keys in a box; None when they are too many."""
    found = [_values(each.sides.get(column, rows.everything[column]), rows.domains[column]) for column in columns]
    sides = [values for values in found if values is not None]
    few = len(sides) == len(found) and math.prod(map(len, sides)) <= MOST_NEW_GROUPS
    return list(product(*sides)) if few else None


def _values(side: OrderedSet, domain: OrderedDomain) -> list[Any] | None:
    found: list[Any] = [None] if side.null else []
    for first, end in side.pieces:
        single = end == domain.next(first)
        if not single and (domain.type == STRING or end - first > MOST_NEW_GROUPS - len(found)):
            return None
        found += [domain.value(rank) for rank in ([first] if single else range(first, end))]
    return found


def key_columns(columns: Sequence[str | None]) -> list[str]:
    """The grouping columns; an expression as a key has no region."""
    if None in columns:
        raise Unsupported("a range grouped by an expression; group by columns")
    return [column for column in columns if column is not None]
