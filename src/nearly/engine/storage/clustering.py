"""Clustering: which rows can share a block, proved from footers or made by hashing.

Range clustering on a column: the blocks can be ordered so that the values of one lie at or below those of the next;
neighbours may share an end point and nothing else. Hash clustering: rows with equal keys have equal buckets,

    bucket = pmod(hash(keys), buckets)        with Spark's `hash`, integers of any width hashed as bigint,

so two layouts whose bucket counts divide each other line up: the coarser bucket is the finer one modulo the coarser
count. Apart from integers, the types of the keys must be the same for this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from nearly.engine.storage.blocks import ColumnStatistics, RowGroup
from nearly.errors import SchemaError
from nearly.plan import types
from nearly.plan.schema import SchemaColumn

RANGE = "range"
HASH = "hash"
TICKETS = "tickets"
"""By buckets of tickets (`ticket_order`); rows that come later are in none, so that equal rows need not be together."""
_KEY_TYPES = (*types.INTEGERS, types.DATE, types.STRING)


@dataclass(frozen=True, slots=True)
class Clustering:
    """How rows are spread over blocks: by ranges of the columns, or by `buckets` of their hash or of their tickets."""

    kind: str
    columns: tuple[str, ...]
    buckets: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in (RANGE, HASH, TICKETS) or (self.buckets is None) != (self.kind == RANGE) or not self.columns:
            raise SchemaError(f"a clustering is by range, or by hash with buckets, on some columns; not {self}")

    def keeps_together(self, columns: Sequence[str]) -> bool:
        """Whether rows equal in `columns` are kept together: the clustering columns lead `columns`."""
        return self.kind != TICKETS and self.columns == tuple(columns)[: len(self.columns)]


@dataclass(frozen=True, slots=True)
class _KeyRange:
    low: Any
    high: Any
    member: RowGroup


def in_order(row_groups: Sequence[RowGroup], column: str) -> list[RowGroup]:
    """The row groups by rising range of the column, all of which must be known."""
    ranges = _ranges(row_groups, column)
    if ranges is None:
        raise SchemaError(f"column {column!r} has no minimum and maximum in some row group")
    return [each.member for each in ranges]


def detect(row_groups: Sequence[RowGroup], columns: Sequence[SchemaColumn], key: Sequence[str] = ()) -> Clustering | None:
    """The range clustering that the footers prove, on one column; None when there is none or just one row group.

    Most row groups must begin at a value of their own, which leaves out constants and columns of few values. Among
    several, a column of the key wins, then integers, dates and strings, then the first.
    """
    filled = [each for each in row_groups if each.rows]
    if len(filled) < 2:
        return None
    found = [each for each in columns if _proved(filled, each.name)]
    if not found:
        return None
    best = min(found, key=lambda each: (each.name not in key, each.type not in _KEY_TYPES))
    return Clustering(RANGE, (best.name,))


def check_declared(row_groups: Sequence[RowGroup], columns: Sequence[str]) -> Clustering:
    """The clustering that a user declares, checked against the footers.

    Rows in lexicographic order of the columns are in order of the first, which is what footers can show.
    """
    first = columns[0]
    filled = [each for each in row_groups if each.rows]
    ranges = _ranges(filled, first)
    if ranges is None:
        raise SchemaError(
            f"clustered_by={list(columns)} cannot be checked: some row group has nulls, or no minimum and maximum, in "
            f"{first!r}; leave the declaration out, or write a clustered layout with prepare(by=...)"
        )
    pair = _overlap(ranges)
    if pair is not None:
        left, right = pair
        raise SchemaError(
            f"clustered_by={list(columns)} does not hold: {first!r} spans {left.low!r} to {left.high!r} in "
            f"{left.member.path} and {right.low!r} to {right.high!r} in {right.member.path}; leave the declaration "
            f"out, or write a clustered layout with prepare(by=...)"
        )
    return Clustering(RANGE, tuple(columns))


def _proved(row_groups: Sequence[RowGroup], column: str) -> bool:
    ranges = _ranges(row_groups, column)
    if ranges is None or _overlap(ranges) is not None:
        return False
    return 2 * len({each.low for each in ranges}) > len(ranges)


def _ranges(members: Sequence[RowGroup], column: str) -> list[_KeyRange] | None:
    """The ranges in rising order; None when one is unknown or has nulls, which lie in no range."""
    found = []
    for member in members:
        statistics = member.statistics_of(column)
        if statistics is None or not _certain(statistics):
            return None
        found.append(_KeyRange(statistics.low, statistics.high, member))
    return sorted(found, key=lambda each: (each.low, each.high))


def _certain(statistics: ColumnStatistics) -> bool:
    return statistics.bounded and statistics.nulls == 0


def _overlap(ranges: Sequence[_KeyRange]) -> tuple[_KeyRange, _KeyRange] | None:
    """Two neighbours that share more than an end point."""
    return next(((a, b) for a, b in pairwise(ranges) if b.low < a.high), None)
