"""Range answers over inner joins of tables with missing rows: one row, or one for each group that is there or may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from nearly.answer import Answer
from nearly.missing.groups import MOST_NEW_GROUPS, key_columns, new_groups
from nearly.missing.joins.join_bounds import JoinBounds
from nearly.missing.joins.join_tables import JoinTable, attributes
from nearly.missing.range_answer import EMPTY_TOTAL, NO_ROWS, GroupRanges, KnownAggregate, RowEnds, certain_keys, known_aggregate
from nearly.missing.range_query import AnswerColumn, AverageParts, Key, RangeQuery
from nearly.plan import functions
from nearly.plan.expressions import Column, Expression, Literal, conjuncts
from nearly.plan.types import DataType
from nearly.plan.values.ranges import Extent

MOST_GROUPS = 200
"""Groups beyond so many that missing rows may bring are told together."""


@dataclass(frozen=True)
class JoinRange:
    """The range of a query over an inner join."""

    query: RangeQuery
    types: tuple[DataType, ...]
    bounds: JoinBounds

    def answers(self, asked: Iterator[Answer], pieces: Mapping[int, AverageParts]) -> Iterator[Answer]:
        """A range for each answer over the certain rows.

        Certain bounds of a join that is still being read are left out: nulls would not tell what is empty from what is not known.
        """
        for certain in asked:
            keys = certain_keys(self.query, certain)
            added, others = self._new_keys(set(keys))
            every = [*keys, *added]
            soft = [self._row(key, known_aggregate(self.query, certain, pieces, row)) for row, key in enumerate(every)]
            unknown = [(Extent(),) * len(self.query.items)] * len(every)
            ranges = GroupRanges(every, soft, soft if certain.exact else unknown, others)
            found = ranges.answer(self.query, certain, self.bounds.sizes, tight=False)
            yield replace(found, stats={**found.stats, "tight": found.error == 0.0})

    def _row(self, key: Key, known: Callable[[int], KnownAggregate]) -> RowEnds:
        bounds = self.bounds.where(self._conditions(key)) if key else self.bounds
        return tuple(self._ends(bounds, item, place, known(place)) for place, item in enumerate(self.query.items))

    def _ends(self, bounds: JoinBounds, item: AnswerColumn, place: int, known: KnownAggregate) -> Extent | None:
        if item.call is None:
            return None
        narrowed = bounds if item.call.where is None else bounds.where(conjuncts(item.call.where))
        return narrowed.ends(item.call, known, self.types[place])

    def _conditions(self, key: Key) -> list[Expression]:
        """The rows of one group: the key's value in its column, and in those that the join equates it with."""
        shared = attributes(self.query)
        columns = {column.name: column for scan in self.query.scans for column in scan.columns}
        found = []
        for column, value in zip(self._keys, key, strict=True):
            same = [name for name in shared if shared[name] == shared.get(column.name)] or [column.name]
            found += [functions.call("<=>", [columns[name], Literal(columns[name].type, value)]) for name in same]
        return found

    @property
    def _keys(self) -> list[Column]:
        key_columns([key.name if isinstance(key, Column) else None for key in self.query.keys])
        return [key for key in self.query.keys if isinstance(key, Column)]

    def _new_keys(self, known: set[Key]) -> tuple[list[Key], RowEnds | None]:
        """Groups that only joins with missing rows have; where they are too many to list, the ranges that each of them lies in."""
        if not self.query.keys:
            return [], None
        parts = [self._candidates(table) for table in self.bounds.tables]
        listed = math.prod(len(keys) for keys, _ in parts) <= MOST_GROUPS + len(known)
        found = self._combined([keys for keys, _ in parts]) if listed else []
        new = [key for key in found if key not in known and self.bounds.where(self._conditions(key)).added("rows", None) > 0]
        if listed and not any(more for _, more in parts):
            return new, None
        calls = [None if item.call is None else item.call.function for item in self.query.items]
        return new, self._row((), lambda place: EMPTY_TOTAL if calls[place] in ("sum", "count") else NO_ROWS)

    def _candidates(self, table: JoinTable) -> tuple[list[Key], bool]:
        """Values of the table's grouping columns, in certain and in missing rows; and whether there may be others."""
        mine = [key for key in self._keys if key.name in table.scan.names]
        if not mine:
            return [()], False
        certain = table.keys(mine, MOST_NEW_GROUPS)
        if table.problem is None or certain is None:
            return certain or [], certain is None
        sources = {field.name: field.source for field in table.scan.fields}
        added = new_groups([sources[key.name] for key in mine], table.region, set(certain), table.problem.bound)
        return [*certain, *added.keys], bool(added.rest)

    def _combined(self, parts: Sequence[Sequence[Key]]) -> list[Key]:
        """Keys from those of each table, in the order of the query."""
        names = [key.name for table in self.bounds.tables for key in self._keys if key.name in table.scan.names]
        places = [names.index(key.name) for key in self._keys]
        joined = (sum(chosen, ()) for chosen in product(*parts))
        return [tuple(each[place] for place in places) for each in joined]
