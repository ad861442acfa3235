"""Range answers over one table: the answer of the certain rows, widened by what missing rows can do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa

from nearly.algebra.boxes import EVERYWHERE, Region, intersection
from nearly.answer import Answer
from nearly.errors import Unsupported
from nearly.missing.certain import AverageParts, Bounds, bounds_at, without_pieces
from nearly.missing.groups import Key, group_region, key_columns, new_groups
from nearly.missing.programmes.aggregate_range import AggregateRange, Certain, Ranger
from nearly.missing.programmes.cells import TimeLimit
from nearly.missing.programmes.effects import Question
from nearly.missing.programmes.measures import MissingMeasure
from nearly.missing.programmes.problem import Problem
from nearly.missing.range_query import AnswerColumn, RangeQuery
from nearly.missing.statements.bound_set import sources_of
from nearly.missing.statements.predicates import Regions
from nearly.missing.values import end_value, error_of
from nearly.missing.witness import RangeProof
from nearly.plan.types import DataType

FEW_GROUPS = 3
"""Up to so many groups are decomposed one by one, with their predicates pushed down; more share one decomposition."""

Ends = tuple[AggregateRange | None, ...]
"""The ranges of one row; None for a key."""


@dataclass(frozen=True)
class TableRange:
    """The range of a query over one table with constraints."""

    problem: Problem
    query: RangeQuery
    types: tuple[DataType, ...]
    deadline: TimeLimit

    def answer(self, certain: Answer, pieces: Mapping[int, AverageParts]) -> Answer:
        """The answer over certain and missing rows. Probable and certain bounds of the certain part are widened alike."""
        keys = self._certain_keys(certain)
        added = new_groups(self._columns, self._where, set(keys), self.problem.bound)
        every = [*keys, *added.keys]
        ranger = Ranger(self.problem, self.deadline, reuse=len(every) > FEW_GROUPS)
        soft = [self._row(ranger, key, self._certain(certain, pieces, row, hard=False)) for row, key in enumerate(every)]
        hard = soft
        if not certain.exact:
            hard = [self._row(ranger, key, self._certain(certain, pieces, row, hard=True)) for row, key in enumerate(every)]
        kept = [number for number, key in enumerate(every) if number < len(keys) or self._can_appear(ranger, key)]
        every, soft, hard = ([each[number] for number in kept] for each in (every, soft, hard))
        other = self._other(added.rest)
        return self._assembled(certain, len(keys), every, soft, hard, other)

    def _assembled(
        self, certain: Answer, known: int, keys: Sequence[Key], soft: list[Ends], hard: list[Ends], other: dict[str, Any]
    ) -> Answer:
        table = without_pieces(certain.table, len(self.query.items))
        if len(keys) > known:
            table = pa.concat_tables([table, self._bound_table(table.schema, keys[known:], [], "low")])
        low, high = (self._bound_table(table.schema, keys, soft, side) for side in ("low", "high"))
        hard_low, hard_high = (self._bound_table(table.schema, keys, hard, side) for side in ("low", "high"))
        error = math.inf if other else error_of(table, low, high, self.query.aggregates)
        stats = {**certain.stats, "tight": all(found.is_tight for found, _ in self._cells(soft)), **other}
        proof = RangeProof(self.problem, tuple(soft), tuple(table.column_names), self.types)
        complete = certain.complete and not other and len(keys) == known
        tentative = None if len(keys) == known else pa.array([number >= known for number in range(len(keys))], pa.bool_())
        return Answer(
            table, low, high, hard_low, hard_high, certain.progress, certain.exact and complete and error == 0.0,
            certain.confidence, error, "missing", stats, proof, complete, None if other else certain.unseen, tentative,
        )  # fmt: skip

    def _cells(self, rows: Sequence[Ends]) -> list[tuple[AggregateRange, DataType]]:
        return [(found, type_) for row in rows for found, type_ in zip(row, self.types, strict=True) if found is not None]

    def _bound_table(self, schema: pa.Schema, keys: Sequence[Key], rows: Sequence[Ends], side: str) -> pa.Table:
        """The keys, and one end of every range (null without `rows`)."""
        columns = []
        for place, (item, type_, field) in enumerate(zip(self.query.items, self.types, schema, strict=True)):
            if item.key is not None:
                position = self.query.keys.index(item.key)
                values = [key[position] for key in keys]
            else:
                found = [row[place] for row in rows] or [None] * len(keys)
                values = [None if each is None else end_value(each, side, type_) for each in found]
            columns.append(pa.array(values, field.type))
        return pa.Table.from_arrays(columns, schema=schema)

    def _row(self, ranger: Ranger, key: Key, certain: Callable[[int], Certain]) -> Ends:
        region = intersection(self._where, group_region(self._columns, key, self._regions.rows))
        return tuple(self._range(ranger, item, region, certain(place)) for place, item in enumerate(self.query.items))

    def _range(self, ranger: Ranger, item: AnswerColumn, region: Region, certain: Certain) -> AggregateRange | None:
        if item.call is None:
            return None
        if item.call.where is not None:
            region = intersection(region, self._regions.true(item.call.where))
        argument = item.call.arguments[0] if item.call.arguments else None
        return ranger(item.call.function, Question(region, MissingMeasure(self._regions, argument)), certain)

    def _certain(self, answer: Answer, pieces: Mapping[int, AverageParts], row: int, *, hard: bool) -> Callable[[int], Certain]:
        """What is known of the certain rows for each column of a row; a group that they do not have is empty."""

        def at(column: int) -> Bounds:
            if row >= answer.table.num_rows:
                return Bounds(None, None)
            return bounds_at(answer, column, row, hard=hard)

        def of(place: int) -> Certain:
            call = self.query.items[place].call
            if call is None or call.function in ("min", "max"):
                return Certain(at(place), complete=self._is_known(answer, row))
            if call.function == "avg":
                sums, counts = at(pieces[place].sum), at(pieces[place].count)
                empty = row >= answer.table.num_rows
                return Certain(at(place), sums, Bounds(0, 0) if empty else counts)
            bounds = at(place)
            return Certain(Bounds(0, 0) if bounds == Bounds(None, None) and self._is_known(answer, row) else bounds)

        return of

    @staticmethod
    def _is_known(answer: Answer, row: int) -> bool:
        """Whether a null means the sum of nothing, rather than a bound that is not known."""
        return answer.exact or row >= answer.table.num_rows

    def _can_appear(self, ranger: Ranger, key: Key) -> bool:
        region = intersection(self._where, group_region(self._columns, key, self._regions.rows))
        found = ranger("count", Question(region, MissingMeasure(self._regions, None)), Certain(Bounds(0, 0)))
        return found.high is None or found.high > 0

    def _other(self, rest: Region) -> dict[str, Any]:
        """What is known of a group that is not listed, when missing rows may bring some."""
        if not rest:
            return {}
        ranger = Ranger(self.problem, self.deadline, loose=True)
        empty = Certain(Bounds(None, None), Bounds(0, 0), Bounds(0, 0))
        totals = Certain(Bounds(0, 0))
        ranges = {}
        for place, item in enumerate(self.query.items):
            if item.call is not None:
                known = totals if item.call.function in ("sum", "count") else empty
                found = self._range(ranger, item, rest, known)
                if found is not None:
                    ranges[place] = tuple(end_value(found, side, self.types[place]) for side in ("low", "high"))
        return {"other_groups": ranges}

    def _certain_keys(self, certain: Answer) -> list[Key]:
        if not self.query.keys:
            return [()] * certain.table.num_rows
        places = []
        for key in self.query.keys:
            found = [place for place, item in enumerate(self.query.items) if item.key == key]
            if not found:
                raise Unsupported("a range needs the grouping columns among the selected ones, to know the groups")
            places.append(found[0])
        columns = [certain.table.column(place).to_pylist() for place in places]
        return list(zip(*columns, strict=True))

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
