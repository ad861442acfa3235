"""Bounds that hold for sure: what was read, and what the footers of the unread blocks allow.

They are known for columns of the answer that are COUNT, SUM, AVG, MIN or MAX over the rows of one table, by whatever filters and
projections. A least or greatest value of the largest table has them over inner joins, too: what was met is met for good, and no row
has more than its table. Other columns have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from nearly.engine.storage.blocks import ColumnStatistics
from nearly.engine.stream.unit_state import UnitState
from nearly.engine.stream.units import Units
from nearly.errors import Unsupported
from nearly.estimate.certain_bounds import HAIR, Read, UnreadPart, bounds, part_of
from nearly.plan.aggregate_block import FlatRows, flat_rows
from nearly.plan.expressions import AggregateCall, Call, Column, Expression, Literal, columns_of, conjunction, same, substitute
from nearly.plan.nodes import Filter, GroupBy, Input, Join, Limit, Plan, Project, Scan, Sort
from nearly.plan.values.ranges import Extent, KnownColumn, UnreadBlock, exact
from nearly.rewrite.stream.cut import Cut

MOST_CELLS = 400
"""Larger answers go without."""


@dataclass(frozen=True, slots=True)
class Traced:
    """An output column as an aggregate over the rows of one scan; `joined` when joins may drop some of them.

    `anywhere` says that the rows of a unit may lie in blocks of others.
    """

    scan: Scan
    joined: bool
    anywhere: bool
    merge: GroupBy
    function: str
    argument: Expression | None
    where: Expression | None
    total: str | None
    count: str | None
    default: Any = None
    """What the column is where the aggregate is null."""


@dataclass(slots=True)
class CertainBounds:
    """The certain bounds of one query's answers; what a block allows is computed once."""

    cut: Cut
    units: Units
    state: UnitState
    _parts: dict[tuple[Expression | None, Expression | None, int | None], UnreadPart] = field(default_factory=dict)
    _columns: dict[tuple[str, int | None], KnownColumn | None] = field(default_factory=dict)
    _traced: dict[int, Traced] = field(default_factory=dict)
    _merged: dict[Plan, pa.Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        traced = [trace(self.cut, column.name) for column in self.cut.tail.columns]
        main = self.units.main.name
        self._traced = {place: each for place, each in enumerate(traced) if each is not None and each.scan.table == main}

    def prepare(self) -> None:
        """Have what all units allow, which does not depend on what is read."""
        for traced in self._traced.values():
            with suppress(Unsupported):
                self._unread(traced, range(len(self.units.order)))

    def columns(self, found: pa.Table, positions: frozenset[int]) -> dict[int, tuple[list[Any], list[Any]]]:
        """Low and high ends for each column that has them, by place; None where nothing is certain."""
        known: dict[int, tuple[list[Any], list[Any]]] = {}
        self._merged.clear()
        unread = [place for place in range(len(self.units.order)) if place not in positions]
        if found.num_rows * found.num_columns > MOST_CELLS:
            return known
        for place, traced in self._traced.items():
            with suppress(Unsupported):
                ends = self._ends(traced, found, unread, place)
                if ends is not None:
                    known[place] = ends
        return known

    def _ends(self, traced: Traced, found: pa.Table, unread: list[int], place: int) -> tuple[list[Any], list[Any]] | None:
        keys = self._key_places(traced.merge)
        if keys is None:
            return None
        read = self._read(traced, found, keys)
        type_ = traced.argument.type if traced.argument is not None else self.cut.tail.columns[place].type
        parts = self._unread(traced, unread)
        unread_alone = bounds(traced.function, type_, parts) if traced.function in ("count", "sum") else None
        low, high = [], []
        for row in range(found.num_rows):
            done = read.get(tuple(found.column(at)[row].as_py() for at in keys), Read())
            if unread_alone is not None:
                ends = _plus(unread_alone, done, traced.function)
            else:
                found_range = bounds(traced.function, type_, parts, done)
                ends = (found_range.low, found_range.high)
            if not done.count and not any(part.fewest for part in parts) and traced.function != "count":
                ends = _or_default(ends, traced.default)
            low.append(ends[0])
            high.append(ends[1])
        return low, high

    def _unread(self, traced: Traced, unread: Sequence[int]) -> list[UnreadPart]:
        """What the unread units allow for an aggregate."""
        if traced.anywhere:
            return [self._part(traced, None)] if unread else []
        return [self._part(traced, unit) for unit in unread]

    def _part(self, traced: Traced, unit: int | None) -> UnreadPart:
        """What a unit, or the whole table, allows for an aggregate."""
        known = (traced.argument, traced.where, unit)
        if known not in self._parts:
            read = {name for each in (traced.argument, traced.where) if each is not None for name in columns_of(each)}
            ends = {each.name: self._column(each.source, unit) for each in traced.scan.fields if each.name in read}
            rows = self.units.total_rows if unit is None else self.units.order[unit].rows
            box = UnreadBlock(rows, {name: each for name, each in ends.items() if each is not None})
            self._parts[known] = part_of(traced.argument, box, traced.where, grouped=bool(traced.merge.keys) or traced.joined)
        return self._parts[known]

    def _column(self, source: str, unit: int | None) -> KnownColumn | None:
        """What the footers tell of a column of a unit, or of the table; None when one of the blocks tells nothing."""
        known = (source, unit)
        if known not in self._columns:
            blocks = self.units.main.base.blocks if unit is None else self.units.blocks(unit)
            ends = [block.statistics_of(source) for block in blocks]
            told = [end for end in ends if end is not None]
            self._columns[known] = _joined(told) if len(told) == len(ends) else None
        return self._columns[known]

    def _read(self, traced: Traced, answer: pa.Table, places: list[int]) -> dict[tuple[Any, ...], Read]:
        """What the rows read amount to, by the keys that the answer has at some places."""
        if traced.merge not in self._merged:
            self._merged[traced.merge] = self._merged_for(traced.merge, answer, places)
        table = self._merged[traced.merge]
        keys = [table[key.name].to_pylist() for key in traced.merge.keys]
        totals = table[traced.total].to_pylist() if traced.total else [None] * table.num_rows
        counts = table[traced.count].to_pylist() if traced.count else [None if each is None else 1 for each in totals]
        found = {}
        for row in range(table.num_rows):
            count, total = counts[row] or 0, totals[row]
            extreme = traced.function in ("min", "max")
            found[tuple(key[row] for key in keys)] = Read(count, 0 if extreme or total is None else total, total, total)
        return found

    def _merged_for(self, merge: GroupBy, answer: pa.Table, places: list[int]) -> pa.Table:
        """The aggregate for the answer's keys, which may be few of very many."""
        if not merge.keys:
            return self.state.run(merge)
        keys = [key.column for key in merge.keys]
        wanted = tuple(Column(key.type, f"wanted_{at}") for at, key in enumerate(keys))
        table = pa.table([answer.column(place) for place in places], [column.name for column in wanted])
        return self.state.run(Join(merge, Input("wanted_keys", wanted), "semi", same(keys, wanted)), {"wanted_keys": table})

    def _key_places(self, merge: GroupBy) -> list[int] | None:
        """The columns of the answer that hold the aggregate's keys; None when one is not there."""
        places: dict[str, int] = {}
        for place, column in enumerate(self.cut.tail.columns):
            origin = _origin(self.cut.tail, column.name, merge)
            if origin is not None:
                places.setdefault(origin, place)
        wanted = [key.name for key in merge.keys]
        return [places[name] for name in wanted] if all(name in places for name in wanted) else None


def _or_default(ends: tuple[Any, Any], default: Any) -> tuple[Any, Any]:
    """The ends of what may be null, and is a default then; without a default they hold for values that are not null."""
    if default is None:
        return ends
    low, high = ends
    return None if low is None else min(low, exact(default)), None if high is None else max(high, exact(default))


def _plus(unread: Extent, read: Read, function: str) -> tuple[Any, Any]:
    """The bounds of a count or sum: what was read and what is still to come."""
    done = exact(read.count if function == "count" else read.total)
    low, high = (None if end is None or done is None else end + done for end in (unread.low, unread.high))
    slack = Fraction(HAIR if isinstance(read.total, float) else 0)
    return None if low is None else low - slack * abs(low), None if high is None else high + slack * abs(high)


def _joined(ends: list[ColumnStatistics]) -> KnownColumn:
    """What is known of a column in several blocks together."""
    lows, highs, nulls = [each.low for each in ends], [each.high for each in ends], [each.nulls for each in ends]
    return KnownColumn(
        None if None in lows else min(lows),
        None if None in highs else max(highs),
        None if None in nulls else sum(each or 0 for each in nulls),
    )


def trace(cut: Cut, name: str) -> Traced | None:
    """The aggregate that an output column is, when it is one over the rows of one streamed scan."""
    found = _value(cut.tail, name)
    if found is None:
        return None
    merge, expression = found.aggregate, found.expression
    stage = next((each for each in cut.stages if isinstance(merge.child, Input) and each.name == merge.child.source), None)
    if stage is None or not stage.partial or not isinstance(stage.plan, GroupBy) or merge.sets is not None:
        return None
    rows = _flat_rows(stage.plan.child)
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
    values = dict(rows.values)
    argument = substitute(call.arguments[0], values) if call.arguments else None
    tests = [*rows.predicates, *([substitute(call.where, values)] if call.where is not None else [])]
    joined, anywhere = len(rows.scans) > 1, cut.ranged  # blocks at the ends of a range belong to two units
    if joined or anywhere or len(cut.scans) > 1:
        scan = _read_by(argument, rows) if function in ("min", "max") else None
        tests = [test for test in tests if scan is not None and columns_of(test) <= scan.names]
    else:
        scan = rows.scans[0]
    if scan is None:
        return None
    return Traced(scan, joined, anywhere, merge, function, argument, conjunction(tests), names[0], names[1], found.default)


def _read_by(argument: Expression | None, rows: FlatRows) -> Scan | None:
    """The streamed scan that has all columns of an argument."""
    names = frozenset[str]() if argument is None else columns_of(argument)
    return next((scan for scan in rows.scans if scan.share == "units" and names and names <= scan.names), None)


def _part_of(merge: GroupBy, parts: dict[str, Expression], whole: str) -> AggregateCall | None:
    merged = next((each.expression for each in merge.aggregates if each.name == whole), None)
    if not isinstance(merged, AggregateCall) or not isinstance(merged.arguments[0], Column):
        return None
    found = parts.get(merged.arguments[0].name)
    return found if isinstance(found, AggregateCall) else None


@dataclass(frozen=True, slots=True)
class _FoundColumn:
    """A column of a plan as an expression over the columns of an aggregate, and what it is instead of null."""

    aggregate: GroupBy
    expression: Expression
    default: Any = None


def _value(plan: Plan, name: str) -> _FoundColumn | None:
    """The aggregate behind a column of the plan."""
    match plan:
        case Sort() | Limit() | Filter():
            return _value(plan.child, name)
        case GroupBy():
            column = next((each.column for each in plan.aggregates if each.name == name), Column(plan.columns[0].type, name))
            return _FoundColumn(plan, column)
        case Project():
            return _of_expression(plan.child, next(each.expression for each in plan.outputs if each.name == name))
    return None


def _of_expression(plan: Plan, expression: Expression) -> _FoundColumn | None:
    match expression:
        case Column():
            return _value(plan, expression.name)
        case Call(function="coalesce", arguments=(inner, Literal(value=default))):
            found = _of_expression(plan, inner)
            return found if found is None or found.default is not None else replace(found, default=default)
    return _FoundColumn(plan, expression) if isinstance(plan, GroupBy) else None


def _origin(plan: Plan, name: str, merge: GroupBy) -> str | None:
    """The key of the aggregate that a column of the plan is."""
    found = _value(plan, name)
    if found is None or found.aggregate is not merge or not isinstance(found.expression, Column) or found.default is not None:
        return None
    return found.expression.name if found.expression.name in {key.name for key in merge.keys} else None


def _flat_rows(plan: Plan) -> FlatRows | None:
    try:
        return flat_rows(plan)
    except Unsupported:
        return None
