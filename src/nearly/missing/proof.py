"""What stands behind a range: the instances at its ends, and the constraints that hold it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from nearly.errors import SchemaError, unknown
from nearly.missing.programmes.aggregate_range import AggregateRange
from nearly.missing.programmes.problem import Problem
from nearly.missing.programmes.sensitivity import Explanation, bindings
from nearly.missing.values import end_value
from nearly.missing.witness import Witnesses
from nearly.plan.types import DataType


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
