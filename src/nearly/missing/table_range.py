"""Range answers over one table: the answer of the certain rows, widened by what missing rows can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce

from nearly.algebra.boxes import EVERYWHERE, Region, intersection
from nearly.answer import Answer
from nearly.missing.groups import group_region, key_columns, new_groups
from nearly.missing.programmes.aggregate_range import AggregateRange, Ranger
from nearly.missing.programmes.cells import TimeLimit
from nearly.missing.programmes.effects import MissingMeasure, RangeQuestion
from nearly.missing.programmes.problem import Problem
from nearly.missing.proof import RangeProof
from nearly.missing.range_answer import EMPTY_TOTAL, NO_ROWS, GroupRanges, KnownAggregate, RowEnds, certain_keys, known_aggregate
from nearly.missing.range_query import AnswerColumn, AverageParts, Key, RangeQuery
from nearly.missing.statements.bound_set import sources_of
from nearly.plan.types import DataType
from nearly.plan.values.regions import Regions

FEW_GROUPS = 3
"""Up to so many groups are decomposed one by one, with their predicates pushed down; more share one decomposition."""

Ends = tuple[AggregateRange | None, ...]
"""The ranges of one row; None for a key."""
Known = Callable[[int], KnownAggregate]
"""The certain part of each column of a row."""


@dataclass(frozen=True)
class TableRange:
    """The range of a query over one table with constraints."""

    problem: Problem
    query: RangeQuery
    types: tuple[DataType, ...]
    deadline: TimeLimit

    def answer(self, certain: Answer, pieces: Mapping[int, AverageParts]) -> Answer:
        """The answer over certain and missing rows. Probable and certain bounds of the certain part are widened alike."""
        keys = certain_keys(self.query, certain)
        added = new_groups(self._columns, self._where, set(keys), self.problem.bound)
        ranger = Ranger(self.problem, self.deadline, reuse=len(keys) + len(added.keys) > FEW_GROUPS)
        every = [*keys, *(key for key in added.keys if self._can_appear(ranger, key))]
        soft = hard = self._rows(ranger, every, partial(known_aggregate, self.query, certain, pieces))
        if not certain.exact:
            hard = self._rows(ranger, every, partial(known_aggregate, self.query, certain, pieces, hard=True))
        tight = all(found.is_tight for row in soft for found in row if found is not None)
        names = tuple(certain.table.column_names[: len(self.query.items)])
        proof = RangeProof(self.problem, tuple(soft), names, self.types)
        ranges = GroupRanges(every, self._typed(soft), self._typed(hard), self._other(added.rest))
        return ranges.answer(self.query, certain, {}, tight=tight, proof=proof)

    def _typed(self, rows: Sequence[Ends]) -> list[RowEnds]:
        """The ends as values of the columns' types."""
        return [
            tuple(None if each is None else each.extent(type_) for each, type_ in zip(row, self.types, strict=True)) for row in rows
        ]

    def _rows(self, ranger: Ranger, keys: Sequence[Key], certain: Callable[[int], Known]) -> list[Ends]:
        found = []
        for row, key in enumerate(keys):
            region, known = self._group(key), certain(row)
            found.append(tuple(self._range(ranger, item, region, known(place)) for place, item in enumerate(self.query.items)))
        return found

    def _group(self, key: Key) -> Region:
        return intersection(self._where, group_region(self._columns, key, self._regions.rows))

    def _range(self, ranger: Ranger, item: AnswerColumn, region: Region, certain: KnownAggregate) -> AggregateRange | None:
        if item.call is None:
            return None
        if item.call.where is not None:
            region = intersection(region, self._regions.true(item.call.where))
        argument = item.call.arguments[0] if item.call.arguments else None
        return ranger(item.call.function, RangeQuestion(region, MissingMeasure(self._regions, argument)), certain)

    def _can_appear(self, ranger: Ranger, key: Key) -> bool:
        found = ranger("count", RangeQuestion(self._group(key), MissingMeasure(self._regions, None)), EMPTY_TOTAL)
        return found.high is None or found.high > 0

    def _other(self, rest: Region) -> RowEnds | None:
        """What is known of a group that is not listed, when missing rows may bring some."""
        if not rest:
            return None
        ranger = Ranger(self.problem, self.deadline, loose=True)
        found = []
        for item in self.query.items:
            total = item.call is not None and item.call.function in ("sum", "count")
            found.append(self._range(ranger, item, rest, EMPTY_TOTAL if total else NO_ROWS))
        return self._typed([tuple(found)])[0]

    @cached_property
    def _regions(self) -> Regions:
        (scan,) = self.query.scans
        return Regions(self.problem.bound.rows, sources_of(scan))

    @cached_property
    def _columns(self) -> list[str]:
        return key_columns([self._regions.column(key) for key in self.query.keys])

    @cached_property
    def _where(self) -> Region:
        return reduce(intersection, (self._regions.true(each) for each in self.query.predicates), EVERYWHERE)
