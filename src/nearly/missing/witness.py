"""What stands behind a range: instances that reach its ends, and the constraints that hold it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import pyarrow as pa

from nearly.algebra.boxes import EVERYWHERE, Box, Region, difference, intersection
from nearly.algebra.half_spaces import lowest
from nearly.algebra.ordered_sets import Rank, span
from nearly.errors import ConstraintError, SchemaError, Unsupported, unknown
from nearly.missing.programmes.aggregate_range import ENDS, AggregateRange
from nearly.missing.programmes.cells import TimeLimit
from nearly.missing.programmes.effects import Question
from nearly.missing.programmes.measures import MissingMeasure
from nearly.missing.programmes.problem import End, Problem
from nearly.missing.programmes.sensitivity import Explanation, bindings
from nearly.missing.statements.domains import RowSpace
from nearly.missing.statements.literals import decoded, point
from nearly.missing.values import end_value
from nearly.plan.types import DataType, is_simple, to_arrow

MOST_ROWS = 1_000_000
COUNT = "rows"


@dataclass(frozen=True, slots=True)
class Witnesses:
    """Finds the rows of instances over one problem."""

    problem: Problem

    def table(self, found: AggregateRange, side: str, *, counted: bool) -> pa.Table:
        """The missing rows with which the aggregate takes the end of its range; with `counted`, each row once and how often."""
        if side not in ENDS:
            raise SchemaError(f"a range has a 'low' and a 'high' end, not {side!r}")
        rows = list(self._rows(found, side))
        total = sum(count for _, count in rows)
        if counted:
            return _table([row for row, _ in rows], self._rows_space, {COUNT: [count for _, count in rows]})
        if total > MOST_ROWS:
            raise ConstraintError(
                f"the instance has {total:,} rows; ask for witness(..., counted=True), which lists equal rows once"
            )
        return _table([row for row, count in rows for _ in range(count)], self._rows_space, {})

    @property
    def _rows_space(self) -> RowSpace:
        return self.problem.bound.rows

    def _rows(self, found: AggregateRange, side: str) -> Iterator[tuple[dict[str, Any], int]]:
        end = found.end(side)
        value = found.low if side == "low" else found.high
        if not end.proven or not found.question.measure.is_tight or (value is None and end.exists):
            raise Unsupported("this end of the range has no instance: it has no limit, or it is valid but not proven to be reached")
        yield from self._chosen(end, found)
        yield from self._rest(end)

    def _chosen(self, end: End, found: AggregateRange) -> Iterator[tuple[dict[str, Any], int]]:
        for stake, counts, takes in zip(end.stakes, end.counts, end.takes, strict=False):
            for cell, effect, count, take in zip(stake.part.cells, stake.effects, counts, takes, strict=True):
                if count:
                    target = effect.at(end.side) * stake.unit if found.function in ("sum", "avg") else effect.at(end.side)
                    yield self._row(cell.region, found, target, take=take), count

    def _rest(self, end: End) -> Iterator[tuple[dict[str, Any], int]]:
        """Rows that constraints away from the query ask for."""
        covered = {place for stake in end.stakes for place in stake.part.constraints} if end.counts else set()
        parts = [self.problem.alone] if self.problem.alone.cells else []
        parts += [self.problem.part(each, EVERYWHERE, TimeLimit()) for each in self.problem.bound.components if len(each) > 1]
        for part in parts:
            if covered.isdisjoint(part.constraints):
                counts = part.block.instance([False] * len(part.cells)) or ()
                for cell, count in zip(part.cells, counts, strict=False):
                    if count:
                        yield decoded(point(cell.region[0], {}), self._rows_space), count

    def _row(self, cell: Region, found: AggregateRange, target: Any, *, take: bool) -> dict[str, Any]:
        question, space = found.question, self._rows_space
        if not take:
            return decoded(_silent(cell, question, space), space)
        by_rank = found.function in ("min", "max", "count") and question.measure.column is not None
        return decoded(_counting(cell, question, target, by_rank, space), space)


def _counting(cell: Region, question: Question, target: Any, by_rank: bool, space: RowSpace) -> dict[str, Rank | None]:
    """A row of the cell inside the query at which the measure is the target."""
    measure = question.measure
    span_of = measure.ranks if by_rank else measure.amounts
    for each in intersection(cell, question.region):
        reach = span_of(each)
        if not reach.some or target not in (reach.low, reach.high):
            continue
        for pins in _corners(each, measure, space):
            pinned = _pinned(each, pins, space)
            if pinned is not None and span_of(pinned).low == target:
                return point(pinned, pins)
    return point(intersection(cell, question.region)[0], {})


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


def _pinned(each: Box, pins: Mapping[str, Rank], space: RowSpace) -> Box | None:
    return each & Box({column: span(rank, space.domains[column].next(rank)) for column, rank in pins.items()})


def _silent(cell: Region, question: Question, space: RowSpace) -> dict[str, Rank | None]:
    """A row of the cell that does not count: outside the query, or with a null in the measure."""
    outside = difference(cell, question.region, space.everything)
    if outside:
        return point(outside[0], {})
    for each in intersection(cell, question.region):
        for column in sorted(question.measure.columns):
            if each.sides.get(column, space.everything[column]).null:
                return {**point(each, {}), column: None}
    return point(cell[0], {})


def _table(rows: list[dict[str, Any]], space: RowSpace, extra: dict[str, list[int]]) -> pa.Table:
    columns = {}
    for column in space.schema.columns:
        type_ = to_arrow(column.type) if is_simple(column.type) else pa.null()
        columns[column.name] = pa.array([row.get(column.name) for row in rows], type_)
    names, arrays = list(columns), list(columns.values())
    for name, values in extra.items():
        names.append(name if name not in columns else f"{name}_")
        arrays.append(pa.array(values, pa.int64()))
    return pa.Table.from_arrays(arrays, names=names)


@dataclass(frozen=True, slots=True)
class RangeProof:
    """The ranges of an answer, cell by cell; None stands for a key."""

    problem: Problem
    rows: tuple[tuple[AggregateRange | None, ...], ...]
    names: tuple[str, ...]
    types: tuple[DataType, ...]

    def witness(self, end: str, row: int, column: str | int | None, *, counted: bool) -> pa.Table:
        """The missing rows with which a cell of the answer takes the end of its range."""
        found = self._cell(row, column)
        return Witnesses(self.problem).table(found, end, counted=counted)

    def explain(self, row: int, column: str | int | None) -> Explanation:
        """Which constraints bind a cell of the answer, and how much its range would shrink if they were tighter."""
        found = self._cell(row, column)
        type_ = self.types[self._place(row, column)]
        return Explanation(end_value(found, "low", type_), end_value(found, "high", type_), bindings(found, self.problem.bound))

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
