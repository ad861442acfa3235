"""Bounds that hold for sure: what was read, and what the footers of the unread blocks allow.

They are known for columns of the answer that are COUNT, SUM, AVG, MIN or MAX over the rows of one table, by whatever filters and
projections; other columns have none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from nearly.engine.blocks import Block
from nearly.engine.state import State
from nearly.engine.units import Units
from nearly.errors import Unsupported
from nearly.estimate.expression_range import Box, Known
from nearly.estimate.ranges import Part, Read, bounds, part_of
from nearly.plan.expressions import AggregateCall, Call, Column, Expression, conjunction, substitute
from nearly.plan.nodes import Aggregate, Filter, Input, Limit, Plan, Project, Scan, Sort
from nearly.rewrite.cut import Cut

MOST_CELLS = 400
"""Larger answers go without: each cell adds up all unread blocks."""


@dataclass(frozen=True, slots=True)
class Traced:
    """An output column as an aggregate over the rows of one scan."""

    merge: Aggregate
    function: str
    argument: Expression | None
    where: Expression | None
    total: str | None
    count: str | None


@dataclass(slots=True)
class CertainBounds:
    """The certain bounds of one query's answers; what a block allows is computed once."""

    cut: Cut
    units: Units
    state: State
    _parts: dict[tuple[str, int], Part] = field(default_factory=dict)

    def columns(self, found: pa.Table, positions: frozenset[int]) -> dict[int, tuple[list[Any], list[Any]]]:
        """Low and high ends for each column that has them, by place; None where nothing is certain."""
        known: dict[int, tuple[list[Any], list[Any]]] = {}
        unread = [place for place in range(len(self.units.order)) if place not in positions]
        for place, column in enumerate(self.cut.tail.columns):
            traced = trace(self.cut, column.name)
            if traced is None or found.num_rows * found.num_columns > MOST_CELLS:
                continue
            try:
                ends = self._ends(traced, found, unread, place)
            except Unsupported:
                continue
            if ends is not None:
                known[place] = ends
        return known

    def _ends(self, traced: Traced, found: pa.Table, unread: list[int], place: int) -> tuple[list[Any], list[Any]] | None:
        keys = self._key_places(traced.merge)
        if keys is None:
            return None
        read = self._read(traced)
        type_ = traced.argument.type if traced.argument is not None else self.cut.tail.columns[place].type
        parts = [part for unit in unread for block in self.units.blocks(unit) for part in [self._part(traced, place, block)]]
        low, high = [], []
        for row in range(found.num_rows):
            key = tuple(found.column(at)[row].as_py() for at in keys)
            ends = bounds(traced.function, type_, parts, read.get(key))
            low.append(ends.low)
            high.append(ends.high)
        return low, high

    def _part(self, traced: Traced, place: int, block: Block) -> Part:
        known = (str(place), block.id)
        if known not in self._parts:
            scan = self.cut.scans[0]
            columns = {}
            for each in scan.fields:
                statistics = block.statistics_of(each.source)
                if statistics is not None:
                    columns[each.name] = Known(statistics.low, statistics.high, statistics.nulls)
            box = Box(block.rows, columns)
            self._parts[known] = part_of(traced.argument, box, traced.where, grouped=bool(traced.merge.keys))
        return self._parts[known]

    def _read(self, traced: Traced) -> dict[tuple[Any, ...], Read]:
        """What the rows read amount to, by key."""
        table = self.state.run(traced.merge)
        keys = [table[key.name].to_pylist() for key in traced.merge.keys]
        totals = table[traced.total].to_pylist() if traced.total else [None] * table.num_rows
        counts = table[traced.count].to_pylist() if traced.count else [None if each is None else 1 for each in totals]
        found = {}
        for row in range(table.num_rows):
            count, total = counts[row] or 0, totals[row]
            extreme = traced.function in ("min", "max")
            found[tuple(key[row] for key in keys)] = Read(count, 0 if extreme or total is None else total, total, total)
        return found

    def _key_places(self, merge: Aggregate) -> list[int] | None:
        """The columns of the answer that hold the aggregate's keys; None when one is not there."""
        places: dict[str, int] = {}
        for place, column in enumerate(self.cut.tail.columns):
            origin = _origin(self.cut.tail, column.name, merge)
            if origin is not None:
                places.setdefault(origin, place)
        wanted = [key.name for key in merge.keys]
        return [places[name] for name in wanted] if all(name in places for name in wanted) else None


def trace(cut: Cut, name: str) -> Traced | None:
    """The aggregate that an output column is, when it is one over the rows of one streamed scan alone."""
    found = _value(cut.tail, name)
    if found is None or len(cut.scans) != 1 or cut.ranged:  # blocks at the ends of a range belong to two units
        return None
    merge, expression = found
    stage = next((each for each in cut.stages if isinstance(merge.child, Input) and each.name == merge.child.source), None)
    if stage is None or not stage.partial or not isinstance(stage.plan, Aggregate) or merge.sets is not None:
        return None
    rows = _rows(stage.plan.child)
    if rows is None:
        return None
    parts = {each.name: each.expression for each in stage.plan.aggregates}
    names: tuple[str, str | None]
    match expression:
        case Call(function="average_of", arguments=(Column() as total, Column() as count)):
            call, function, names = _part_of(merge, parts, total.name), "avg", (total.name, count.name)
        case Column():
            call = _part_of(merge, parts, expression.name)
            function = "" if call is None else call.function
            names = (expression.name, expression.name if function == "count" else None)
        case _:
            return None
    if call is None or call.distinct or len(call.arguments) > 1 or function not in ("count", "sum", "avg", "min", "max"):
        return None
    values, tests = rows
    argument = substitute(call.arguments[0], values) if call.arguments else None
    where = conjunction([*tests, *([substitute(call.where, values)] if call.where is not None else [])])
    return Traced(merge, function, argument, where, names[0], names[1])


def _part_of(merge: Aggregate, parts: dict[str, Expression], whole: str) -> AggregateCall | None:
    merged = next((each.expression for each in merge.aggregates if each.name == whole), None)
    if not isinstance(merged, AggregateCall) or not isinstance(merged.arguments[0], Column):
        return None
    found = parts.get(merged.arguments[0].name)
    return found if isinstance(found, AggregateCall) else None


def _value(plan: Plan, name: str) -> tuple[Aggregate, Expression] | None:
    """The aggregate node and the expression over its columns that a column of the plan is."""
    match plan:
        case Sort() | Limit() | Filter():
            return _value(plan.child, name)
        case Aggregate():
            return plan, next((each.column for each in plan.aggregates if each.name == name), Column(plan.columns[0].type, name))
        case Project():
            expression = next(each.expression for each in plan.outputs if each.name == name)
            if isinstance(expression, Call) and expression.function == "coalesce":
                expression = expression.arguments[0]
            if isinstance(expression, Column):
                return _value(plan.child, expression.name)
            if isinstance(plan.child, Aggregate):
                return plan.child, expression
    return None


def _origin(plan: Plan, name: str, merge: Aggregate) -> str | None:
    """The key of the aggregate that a column of the plan is."""
    found = _value(plan, name)
    if found is None or found[0] is not merge or not isinstance(found[1], Column):
        return None
    return found[1].name if found[1].name in {key.name for key in merge.keys} else None


def _rows(plan: Plan) -> tuple[dict[str, Expression], list[Expression]] | None:
    """Columns in terms of the scan's, and the tests its rows pass, when only projections and filters are between."""
    match plan:
        case Scan():
            return {column.name: column for column in plan.columns}, []
        case Filter():
            below = _rows(plan.child)
            return None if below is None else (below[0], [*below[1], substitute(plan.predicate, below[0])])
        case Project():
            below = _rows(plan.child)
            return None if below is None else ({o.name: substitute(o.expression, below[0]) for o in plan.outputs}, below[1])
    return None
