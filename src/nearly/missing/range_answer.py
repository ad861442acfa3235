"""From an answer over the certain rows to one over all: what is known of the certain part, and the ranges put together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from nearly.answer import Answer, Proof, relative_error
from nearly.errors import Unsupported
from nearly.missing.range_query import AverageParts, Key, RangeQuery
from nearly.plan.values.ranges import Extent

RowEnds = tuple[Extent | None, ...]
"""The ranges of one row; None for a key."""


@dataclass(frozen=True, slots=True)
class KnownAggregate:
    """An aggregate over the certain rows: its bounds, and those of sum and count behind an average.

    `complete` says that all certain rows were read: a null then means that the aggregate has no value, else that it is not known.
    """

    value: Extent
    sum: Extent | None = None
    count: Extent | None = None
    complete: bool = True


ZERO = Extent(0, 0)
NO_ROWS = KnownAggregate(Extent(), ZERO, ZERO)
"""An average or extreme of nothing."""
EMPTY_TOTAL = KnownAggregate(ZERO)


def known_aggregate(
    query: RangeQuery, answer: Answer, pieces: Mapping[int, AverageParts], row: int, *, hard: bool = False
) -> Callable[[int], KnownAggregate]:
    """What is known of the certain rows for each column of a row; a group that they do not have is empty, once that is known."""
    is_new = row >= answer.table.num_rows
    is_known = answer.exact or (is_new and answer.complete)
    tables = (answer.hard_low, answer.hard_high) if hard else (answer.low, answer.high)

    def at(column: int) -> Extent:
        low, high = (None if is_new else table.column(column)[row].as_py() for table in tables)
        return Extent(low, high)

    def of(place: int) -> KnownAggregate:
        call, bounds = query.items[place].call, at(place)
        if call is None or call.function in ("min", "max"):
            return KnownAggregate(bounds, complete=is_known)
        if call.function == "avg":
            return KnownAggregate(bounds, at(pieces[place].sum), ZERO if is_new and is_known else at(pieces[place].count))
        return EMPTY_TOTAL if bounds == Extent() and is_known else KnownAggregate(bounds)

    return of


def certain_keys(query: RangeQuery, certain: Answer) -> list[Key]:
    """The groups of the certain rows."""
    if not query.keys:
        return [()] * certain.table.num_rows
    places = []
    for key in query.keys:
        found = [place for place, item in enumerate(query.items) if item.key == key]
        if not found:
            raise Unsupported("a range needs the grouping columns among the selected ones, to know the groups")
        places.append(found[0])
    return list(zip(*(certain.table.column(place).to_pylist() for place in places), strict=True))


def number(value: Any) -> Fraction:
    """A number of the engine, exactly; null, the sum of nothing, is 0."""
    return Fraction(0) if value is None else Fraction(value)


@dataclass(frozen=True, slots=True)
class GroupRanges:
    """The groups, those of the certain rows first, with probable and certain ends of each of their cells.

    `others` are the ends of any group that is not listed, None where there is none.
    """

    keys: Sequence[Key]
    soft: Sequence[RowEnds]
    hard: Sequence[RowEnds]
    others: RowEnds | None = None

    def answer(
        self, query: RangeQuery, certain: Answer, stats: Mapping[str, Any], *, tight: bool, proof: Proof | None = None
    ) -> Answer:
        """The answer: values over the certain rows, null for new groups, and ends over all rows."""
        known = certain.table.num_rows
        table = certain.table.select(range(len(query.items)))
        new = self.keys[known:]
        if new:
            nothing = [(Extent(),) * len(query.items)] * len(new)
            table = pa.concat_tables([table, _table(query, table.schema, new, nothing, "low")])
        sides = (self.soft, "low"), (self.soft, "high"), (self.hard, "low"), (self.hard, "high")
        low, high, hard_low, hard_high = (_table(query, table.schema, self.keys, rows, side) for rows, side in sides)
        error = math.inf if self.others is not None else _error(query, table, low, high)
        complete = certain.complete and self.others is None and not new
        told: dict[str, Any] = {**certain.stats, "tight": tight, **stats}
        if self.others is not None:
            sure = certain.exact or certain.complete  # else rows that are there may be in such a group, too
            ends = [None if each is None else each if sure else Extent() for each in self.others]
            told["other_groups"] = {place: (each.low, each.high) for place, each in enumerate(ends) if each is not None}
        tentative = pa.array([place >= known for place in range(len(self.keys))], pa.bool_()) if new else None
        return Answer(
            table, low, high, hard_low, hard_high, certain.progress, certain.exact and complete and error == 0.0,
            certain.confidence, error, "missing", told, proof, complete, None if self.others else certain.unseen, tentative,
        )  # fmt: skip


def _table(query: RangeQuery, schema: pa.Schema, keys: Sequence[Key], rows: Sequence[RowEnds], side: str) -> pa.Table:
    """The keys, and one end of every range."""
    columns = []
    for place, (item, field) in enumerate(zip(query.items, schema, strict=True)):
        if item.key is not None:
            values = [key[query.keys.index(item.key)] for key in keys]
        else:
            values = [getattr(row[place], side) for row in rows]
        columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _error(query: RangeQuery, table: pa.Table, low: pa.Table, high: pa.Table) -> float:
    """How far the aggregates of the certain rows may be from the whole answer's; see `Answer.error`."""
    columns = ([each.column(place).to_pylist() for each in (table, low, high)] for place in query.aggregates)
    return max((relative_error(*cell) for column in columns for cell in zip(*column, strict=True)), default=0.0)
