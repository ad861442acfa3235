"""What stands behind a range: instances that reach its ends, and which constraints hold them, and how much they would move.

Of the row bounds this is the solver's dual price: one row less in an upper bound (one more in a lower bound) shrinks the range by
the price, to first order. Of a value range it is the number of rows that sit at its end in the extreme instance: each unit less
shrinks a sum by that many units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pyarrow as pa

from nearly.algebra.boxes import EVERYWHERE, Box, Region, difference, hull, intersection
from nearly.algebra.half_spaces import lowest
from nearly.algebra.ordered_sets import Rank, span
from nearly.errors import ConstraintError, SchemaError, Unsupported, unknown
from nearly.missing.programmes.aggregate_range import ENDS, AggregateRange
from nearly.missing.programmes.cells import Cell, TimeLimit
from nearly.missing.programmes.effects import MissingMeasure, RangeQuestion
from nearly.missing.programmes.problem import AffectedPart, End, Problem
from nearly.missing.statements.bound_set import BoundConstraint, BoundSet
from nearly.missing.statements.conditions import decoded, point
from nearly.plan.types import DataType, is_simple, to_arrow
from nearly.plan.values.regions import RowSpace

MOST_ROWS = 1_000_000
COUNT = "rows"
SMALLEST = 1e-12


Counted = Iterator[tuple[dict[str, Rank | None], int]]
"""Rows as ranks, and how often each of them occurs."""


def witness(problem: Problem, found: AggregateRange, side: str, *, counted: bool) -> pa.Table:
    """The missing rows with which the aggregate takes the end of its range; with `counted`, each row once and how often."""
    if side not in ENDS:
        raise SchemaError(f"a range has a 'low' and a 'high' end, not {side!r}")
    end = found.end(side)
    value = found.low if side == "low" else found.high
    if not end.proven or not found.question.measure.is_tight or (value is None and end.exists):
        raise Unsupported("this end of the range has no instance: it has no limit, or it is valid but not proven to be reached")
    space = problem.bound.rows
    rows = [(decoded(row, space), count) for row, count in (*_chosen(end, found, space), *_rest(end, problem)) if count]
    if counted:
        table = _table([row for row, _ in rows], space)
        name = COUNT if COUNT not in table.column_names else f"{COUNT}_"
        return table.append_column(name, pa.array([count for _, count in rows], pa.int64()))
    if (total := sum(count for _, count in rows)) > MOST_ROWS:
        raise ConstraintError(f"the instance has {total:,} rows; ask for witness(..., counted=True), which lists equal rows once")
    return _table([row for row, count in rows for _ in range(count)], space)


def _chosen(end: End, found: AggregateRange, space: RowSpace) -> Counted:
    for one, counts, takes in zip(end.affected, end.counts, end.takes, strict=False):
        for cell, effect, count, take in zip(one.part.cells, one.effects, counts, takes, strict=True):
            if count and take:
                target = effect.at(end.side) * one.unit if found.function in ("sum", "avg") else effect.at(end.side)
                yield _counting(cell.region, found, target, space), count
            elif count:
                yield _silent(cell.region, found.question, space), count


def _rest(end: End, problem: Problem) -> Counted:
    """Rows that constraints away from the query ask for."""
    covered = {place for one in end.affected for place in one.part.constraints} if end.counts else set()
    overlapping = [problem.part(each, EVERYWHERE, TimeLimit()) for each in problem.bound.components if len(each) > 1]
    for part in (problem.alone, *overlapping):
        if part.cells and covered.isdisjoint(part.constraints):
            counts = part.block.instance([False] * len(part.cells)) or ()
            yield from ((point(cell.region[0], {}), count) for cell, count in zip(part.cells, counts, strict=False))


def _counting(cell: Region, found: AggregateRange, target: Any, space: RowSpace) -> dict[str, Rank | None]:
    """A row of the cell inside the query at which the measure is the target."""
    measure = found.question.measure
    by_rank = found.function in ("min", "max", "count") and measure.column is not None
    span_of = measure.ranks if by_rank else measure.amounts
    inside = intersection(cell, found.question.region)
    for each in inside:
        reach = span_of(each)
        if reach is None or target not in (reach.low, reach.high):
            continue
        for pins in _corners(each, measure, space):
            pinned = each & Box({column: span(rank, space.domains[column].next(rank)) for column, rank in pins.items()})
            there = None if pinned is None else span_of(pinned)
            if pinned is not None and there is not None and there.low == target:
                return point(pinned, pins)
    return point(inside[0], {})


def _corners(each: Box, measure: MissingMeasure, space: RowSpace) -> Iterator[dict[str, Rank]]:
    """Values at the ends of the measure's columns, in all combinations."""
    columns = sorted(measure.columns)
    ends = []
    for column in columns:
        side = each.sides.get(column, space.everything[column])
        last = space.domains[column].last(side)
        choices = [side.first, *([] if last is None else [last])]
        for plane in each.planes:
            if column in plane.columns:
                found = [lowest(each.planes, each.sides, {column: sign}) for sign in (1, -1)]
                choices = [ranks[column] for ranks in found if ranks is not None]
        ends.append(choices)
    for chosen in product(*ends):
        yield dict(zip(columns, chosen, strict=True))


def _silent(cell: Region, question: RangeQuestion, space: RowSpace) -> dict[str, Rank | None]:
    """A row of the cell that does not count: outside the query, or with a null in the measure."""
    outside = difference(cell, question.region, space.everything)
    if outside:
        return point(outside[0], {})
    for each in intersection(cell, question.region):
        for column in sorted(question.measure.columns):
            if each.sides.get(column, space.everything[column]).null:
                return {**point(each, {}), column: None}
    return point(cell[0], {})


def _table(rows: list[dict[str, Any]], space: RowSpace) -> pa.Table:
    columns = space.schema.columns
    types = [to_arrow(column.type) if is_simple(column.type) else pa.null() for column in columns]
    arrays = [pa.array([row.get(column.name) for row in rows], type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])


@dataclass(frozen=True, slots=True)
class RangeProof:
    """The ranges of an answer, cell by cell; None stands for a key."""

    problem: Problem
    rows: tuple[tuple[AggregateRange | None, ...], ...]
    names: tuple[str, ...]
    types: tuple[DataType, ...]

    def witness(self, end: str, row: int, column: str | int | None, *, counted: bool) -> pa.Table:
        """The missing rows with which a cell of the answer takes the end of its range."""
        return witness(self.problem, self._cell(row, column), end, counted=counted)

    def explain(self, row: int, column: str | int | None) -> Explanation:
        """Which constraints bind a cell of the answer, and how much its range would shrink if they were tighter."""
        found = self._cell(row, column)
        type_ = self.types[self._place(row, column)]
        return Explanation(found.value("low", type_), found.value("high", type_), bindings(found, self.problem.bound))

    def _cell(self, row: int, column: str | int | None) -> AggregateRange:
        if not isinstance(row, int) or not 0 <= row < len(self.rows):
            raise SchemaError(f"the answer has {len(self.rows)} rows, there is no row {row!r}")
        place = self._place(row, column)
        found = self.rows[row][place]
        if found is None:
            raise SchemaError(f"column {self.names[place]!r} is a grouping key and has no range")
        return found

    def _place(self, row: int, column: str | int | None) -> int:
        if column is None:
            return next(place for place, found in enumerate(self.rows[row]) if found is not None)
        if isinstance(column, int) and 0 <= column < len(self.names):
            return column
        if column not in self.names:
            raise unknown("column", str(column), self.names)
        return self.names.index(str(column))


@dataclass(frozen=True, slots=True)
class Binding:
    """A part of a constraint that holds an end of the range where it is.

    `shrink` is by how much the range would shrink for each `unit` (a row, or 1 of the column) by which that part were tightened.
    """

    constraint: str
    part: str
    end: str
    shrink: float
    unit: str

    def __str__(self) -> str:
        return f"{self.end:>4}  {self.shrink:>14,.6g} per {self.unit:<8}  {self.part}  where {self.constraint}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What to find out next: the bindings of both ends, the most rewarding first."""

    low: object
    high: object
    bindings: tuple[Binding, ...]

    def __str__(self) -> str:
        head = f"range {self.low} to {self.high}; the range shrinks by"
        return "\n".join([head, *map(str, self.bindings)] if self.bindings else [f"range {self.low} to {self.high}; nothing binds"])


def bindings(found: AggregateRange, bound: BoundSet) -> tuple[Binding, ...]:
    """What holds both ends of a range."""
    both = [each for side in ENDS for each in _of_end(found, found.end(side), bound)]
    return tuple(sorted(both, key=lambda each: -each.shrink))


def _of_end(found: AggregateRange, end: End, bound: BoundSet) -> Iterator[Binding]:
    """The rows that a part allows or asks for, but for MIN and MAX; then value ranges, but for COUNT."""
    column, weights = found.question.measure.column, dict[int, float]()
    for place, one in enumerate(end.affected[: len(end.counts)]):
        if end.gains:
            gains = [0.0 if gain is None else float(gain * end.units[place]) for gain in end.gains[place]]
            yield from _of_rows(one, gains, end.side, bound)
        if column is not None and found.function != "count":
            for cell, weight in _weights(found, end, place):
                for number in (one.part.constraints[local] for local in cell.members):
                    if _at_end(bound.constraints[number], cell.region, column, end.side, bound):
                        weights[number] = weights.get(number, 0.0) + weight
    for number, weight in sorted(weights.items()):
        shrink = 1.0 if found.function in ("min", "max") else weight
        yield _value_binding(bound.constraints[number], str(column), end.side, shrink)


def _of_rows(one: AffectedPart, gains: Sequence[float], side: str, bound: BoundSet) -> Iterator[Binding]:
    for prices, limit in zip(one.part.block.prices(gains), ("most", "least"), strict=True):
        for local, price in prices.items():
            constraint = bound.constraints[one.part.constraints[local]]
            if price > SMALLEST:
                rows = constraint.high if limit == "most" else constraint.low
                yield Binding(constraint.given.label, f"rows at {limit} {rows}", side, price, "row")


def _weights(found: AggregateRange, end: End, place: int) -> Iterator[tuple[Cell, float]]:
    """By how much a unit more in a cell's values moves the end: a row adds its value to a sum, and an n-th of it to an average of n
    rows; MIN and MAX hang on the cells that have the extreme value."""
    one, each = end.affected[place], 1.0 / max(1, end.rows + end.certain) if found.function == "avg" else 1.0
    for cell, effect, count, take in zip(one.part.cells, one.effects, end.counts[place], end.takes[place], strict=True):
        extreme = effect.counts and effect.at(end.side) == end.value
        if count and (extreme if found.function in ("min", "max") else take):
            yield cell, count * each


def _at_end(constraint: BoundConstraint, cell: Region, column: str, side: str, bound: BoundSet) -> bool:
    """Whether it is this constraint's value range that ends the cell's range."""
    if not constraint.values or column not in constraint.values[0].sides:
        return False
    mine, all_ = constraint.values[0].sides[column], hull(cell, column, bound.rows.everything)
    return bool(mine.first == all_.first) if side == "low" else bool(mine.end == all_.end)


def _value_binding(constraint: BoundConstraint, column: str, side: str, shrink: float) -> Binding:
    given = next(given for name, given in constraint.given.values.items() if name.lower() == column.lower())
    limit = f"{column} at least {given.low}" if side == "low" else f"{column} at most {given.high}"
    return Binding(constraint.given.label, limit, side, shrink, column)
