"""Constraints derived from rows of the past.

`partition` cuts the rows into parts of about equal size by the given columns, one constraint for each: its box, how many rows the
part has, and the ranges of all columns in it (Corr-PC of X. Liang et al., SIGMOD 2020, section 6.1). `overlapping` does so
for each column by itself: every row is then bounded by one constraint per column, and an error in one of them may be caught by
another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearly.algebra.boxes import Box, Space
from nearly.algebra.median_cuts import cut_in_turn
from nearly.algebra.ordered_sets import ONLY_NULL
from nearly.engine.history import columns_with_nulls, frame_of, sample, schema_of, summarise_parts, time_zone
from nearly.engine.split_tree import PART, ROWS, Leaf, Node, Partition, Split, merged
from nearly.errors import SchemaError, unknown
from nearly.missing.constraint_set import ConstraintSet
from nearly.missing.statements.conditions import condition
from nearly.missing.statements.constraint import Constraint, ValueRange
from nearly.plan.types import BOOLEAN, STRING, is_numeric
from nearly.plan.values.regions import RowSpace

SAMPLE_ROWS = 200_000
SCHEMES = ("partition", "overlapping")
ROW_BOUNDS = ("at most", "exactly")
MOST_CONSTRAINTS = 100_000
NULL = -1
"""The place of a null among the values of a column."""


def constraints_from(
    history: Any,
    by: Sequence[str] | str,
    n: int = 2000,
    *,
    values: Sequence[str] | None = None,
    scheme: str = "partition",
    rows: str = "at most",
    margin: float = 0.0,
    seed: int = 0,
) -> ConstraintSet:
    """About `n` constraints that the rows of `history` satisfy, computed by Spark.

    `by` names the columns whose values tell the parts apart, best those that correlate with what will be asked; `values` the
    columns to bound (all numbers and dates unless given). `rows` says whether a part may have `at most` or has `exactly` the rows
    seen; `margin` widens row numbers and value ranges by that fraction.
    """
    frame = frame_of(history)
    space = RowSpace.of(schema_of(frame, "history"), time_zone(frame))
    columns = [space.column(each) for each in ([by] if isinstance(by, str) else by)]
    _check(columns, n, scheme, rows, margin)
    measures = _measures(space, values)
    drawn = sample(frame, columns, SAMPLE_ROWS, seed)
    groups = [columns] if scheme == "partition" else [[column] for column in columns]
    found: list[Constraint] = []
    for group in groups:
        tree = partition(drawn, group, max(1, n // len(groups)))
        found += _constraints(frame, tree, measures, space, _Slack(rows, margin))
    return ConstraintSet(tuple(found))


@dataclass(frozen=True, slots=True)
class _Slack:
    """How far constraints reach beyond what was seen."""

    rows: str
    margin: float

    def counts(self, seen: int) -> tuple[int, int]:
        high = math.ceil(seen * (1 + self.margin))
        return (math.floor(seen * (1 - min(1.0, self.margin))) if self.rows == "exactly" else 0), high

    def range(self, low: Any, high: Any, nulls: int, strange: int) -> ValueRange:
        """The range of what was seen. NaN, the greatest of all, leaves no upper limit; nulls alone are 0 or null."""
        if low is None:
            return ValueRange(None, None, nullable=nulls > 0) if strange else ValueRange(0, 0, nullable=True)
        if self.margin and not isinstance(low, str | bool):
            extra = _part(high - low, self.margin)
            low, high = low - extra, high + extra
        return ValueRange(low, None if strange else high, nullable=nulls > 0)


def _part(width: Any, margin: float) -> Any:
    """A fraction of the width of a range, in the type of a width: whole numbers are rounded up."""
    if isinstance(width, int):
        return math.ceil(width * margin)
    return width * Decimal(str(margin)) if isinstance(width, Decimal) else width * margin


def partition(drawn: pa.Table, columns: Sequence[str], parts: int) -> Partition:
    """A tree with about so many parts of about equal size: rows are halved at the median of each column in turn."""
    numbers = iter(range(1 << 62))
    ranked = [_ranked(drawn.column(name)) for name in columns]
    ranks, order = np.array([each for each, _ in ranked]), list(range(len(columns)))

    def grow(rows: NDArray[np.int64], wanted: int, turn: int) -> Node:
        found = cut_in_turn(ranks, rows, order, turn, (wanted // 2) / wanted) if wanted > 1 else None
        if found is None:
            return Leaf(next(numbers))
        mine = ranks[found.column, rows]
        cut = NULL if (mine == NULL).any() else int(found.value)
        below = rows[mine <= cut]
        share = max(1, min(wanted - 1, round(wanted * len(below) / len(rows))))
        left = grow(below, share, found.column + 1)
        right = grow(rows[mine > cut], wanted - share, found.column + (cut != NULL))
        value = None if cut == NULL else ranked[found.column][1][cut + 1].as_py()
        return Split(columns[found.column], value, left, right)

    return Partition(grow(np.arange(drawn.num_rows), parts, 0))


def _ranked(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], pa.Array]:
    """The places of values in their order, and the values; NaN goes with the greatest, since nothing is below it alone."""
    found = pc.unique(column).drop_null()
    if pa.types.is_floating(column.type):
        found = found.filter(pc.invert(pc.is_nan(found)))
    values = found.take(pc.sort_indices(found))
    places = pc.fill_null(pc.index_in(column, value_set=values), max(len(values) - 1, 0))
    return np.where(pc.is_null(column).to_numpy(), NULL, places.to_numpy()), values


def _constraints(frame: Any, tree: Partition, measures: Sequence[str], space: RowSpace, slack: _Slack) -> list[Constraint]:
    summary = merged(summarise_parts(frame, tree, measures), measures).sort_by(PART)
    some_null = columns_with_nulls(frame, tree.columns)
    whole = {name: space.everything[name] if name in some_null else space.domains[name].values for name in tree.columns}
    boxes = dict(_boxes(tree.root, Box({}), whole, space))
    found = []
    for row in summary.to_pylist():
        values = {
            name: slack.range(*(row[f"{what}_{number}"] for what in ("min", "max", "null", "nan")))
            for number, name in enumerate(measures)
            if row[f"null_{number}"] < row[ROWS] or is_numeric(space.domains[name].type)
        }
        found.append(Constraint(condition(boxes[row[PART]], space), rows=slack.counts(row[ROWS]), values=values))
    return found


def _boxes(node: Node, box: Box, whole: Space, space: RowSpace) -> list[tuple[int, Box]]:
    """The number of every part and the box that its path makes, of `whole`; nulls that were not split off are in the rest."""
    if isinstance(node, Leaf):
        return [(node.number, box)]
    side = box.sides.get(node.column, whole[node.column])
    below = ONLY_NULL if node.value is None else space.domains[node.column].below(node.value)
    parts = (node.below, side & below), (node.rest, side - below)
    return [each for child, inside in parts for each in _boxes(child, Box({**box.sides, node.column: inside}), whole, space)]


def _measures(space: RowSpace, values: Sequence[str] | None) -> list[str]:
    if values is not None:
        return [space.column(each) for each in values]
    return [name for name, domain in space.domains.items() if domain.type not in (STRING, BOOLEAN)]


def _check(by: Sequence[str], n: Any, scheme: str, rows: str, margin: Any) -> None:
    if not by:
        raise SchemaError("by names no column; give the columns whose values tell the parts apart")
    if len(set(by)) < len(by):
        raise SchemaError(f"by names a column twice: {', '.join(by)}")
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST_CONSTRAINTS:
        raise SchemaError(f"n={n!r} is no number of constraints from 1 to {MOST_CONSTRAINTS:,}")
    if scheme not in SCHEMES:
        raise unknown("scheme", str(scheme), SCHEMES)
    if rows not in ROW_BOUNDS:
        raise unknown("way to bound rows", str(rows), ROW_BOUNDS)
    if not isinstance(margin, int | float) or not 0 <= margin < math.inf:
        raise SchemaError(f"margin={margin!r} is no fraction such as 0.1")
