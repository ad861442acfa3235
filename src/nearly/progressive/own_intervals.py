"""Columns whose intervals do not come from replicates of themselves: counts of keys, averages over keys, and quantiles."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearly.engine.stream.unit_state import UnitState
from nearly.errors import Unsupported
from nearly.estimate.cells import Sides
from nearly.estimate.distinct import distinct
from nearly.estimate.evidence import Evidence, nothing
from nearly.estimate.intervals import FEWEST_SEEN, Floats, Interval, joined, quotient
from nearly.estimate.quantiles import OrderedValues
from nearly.plan.expressions import Expression
from nearly.plan.nodes import GroupBy
from nearly.progressive.reading import UnitsRead
from nearly.rewrite.stream.cut import Cut
from nearly.rewrite.weigh.distinct_counts import CountedKeys, distinct_counts, keys_by_unit, totals_by_unit
from nearly.rewrite.weigh.quantile_columns import QuantileColumn, quantile_columns, values_by_unit
from nearly.rewrite.weigh.weigh import keyed_aggregates

COUNTED_ROWS = 20
"""Answers of more rows have no intervals of distinct counts: each takes tens of milliseconds, and replicates would mislead."""
QUANTILE_ROWS = 2_000
"""Answers of more rows have no intervals of quantiles either: each takes a while, and replicates would mislead."""

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class OwnIntervals:
    """Gives the columns of a query's answers that have methods of their own their bounds."""

    cut: Cut
    state: UnitState
    unlike: frozenset[GroupBy] = frozenset()
    """Aggregates whose keys nothing tells the number of."""

    def closed(self, sides: Sides, found: pa.Table, reading: UnitsRead, behind: Evidence) -> tuple[Sides, set[int]]:
        """The sides with bounds for these columns, and their places: no others are to be given."""
        places = {column.name: place for place, column in enumerate(self.cut.tail.columns)}
        apart: set[int] = set()
        if reading.share >= 1 or reading.groups < 2:
            return sides, apart
        keyed = keyed_aggregates(self.cut.tail, self.cut.stages)
        for name, counted in distinct_counts(self.cut.tail).items():
            if counted.aggregate in keyed:
                apart.add(places[name])
                if found.num_rows <= COUNTED_ROWS and counted.aggregate not in self.unlike:
                    sides = self._counted(sides, places[name], counted, found, reading, behind)
        for name, column in quantile_columns(self.cut.tail).items():
            apart.add(places[name])
            if found.num_rows <= QUANTILE_ROWS:
                with suppress(Unsupported):
                    sides = self._quantile(sides, places[name], column, found, reading, behind)
        return sides, apart

    def _counted(
        self, sides: Sides, place: int, counted: CountedKeys, found: pa.Table, reading: UnitsRead, behind: Evidence
    ) -> Sides:
        """Counts of keys, or averages over them, by group or not."""
        cells = _by_key(self.state.run(keys_by_unit(counted, self.cut.stages)))
        made = []
        for key in _keys(found, counted.shown):
            rows = cells.get(key, [])
            keys = distinct(reading.incidence(rows), reading.share, reading.group_rows)
            made.append((keys, len({row[0] for row in rows}) >= FEWEST_SEEN))
        theta = np.array([each.estimate for each, _ in made])
        ends = joined([keys.interval(behind.confidence, look=behind.look) if enough else nothing() for keys, enough in made])
        if counted.total is not None:
            totals = self._totals(counted, counted.total, found, reading)
            ends = quotient(totals.estimate, totals.interval(behind), theta, ends)
            with np.errstate(divide="ignore", invalid="ignore"):
                theta = totals.estimate / theta
        return sides.valued(place, theta).closed(place, ends)

    def _totals(self, counted: CountedKeys, total: Expression, found: pa.Table, reading: UnitsRead) -> _Totals:
        """Sums over all rows of the answer's groups."""
        cells = _by_key(self.state.run(totals_by_unit(counted, total, self.cut.stages)))
        keys, group_rows = _keys(found, counted.shown), reading.group_rows
        sums = np.zeros((len(group_rows), len(keys)))
        for place, key in enumerate(keys):
            for group, value in cells.get(key, []):
                sums[reading.places(np.array([group])), place] += value or 0.0
        rows, whole = reading.plan.total_rows, sums.sum(axis=0)
        left = (group_rows.sum() - group_rows)[:, None]
        every = (sums == group_rows[:, None]).all(axis=0)
        return _Totals(rows / group_rows.sum() * whole, rows / left * (whole - sums), np.count_nonzero(sums, axis=0), every)

    def _quantile(
        self, sides: Sides, place: int, column: QuantileColumn, found: pa.Table, reading: UnitsRead, behind: Evidence
    ) -> Sides:
        """Quantiles, by group or not; the estimates stay."""
        cells = _by_key(self.state.run(values_by_unit(column, self.cut.stages)))
        made = []
        for key in _keys(found, column.keys):
            rows = cells.get(key, [])
            groups = reading.places(np.array([row[0] for row in rows], dtype=np.int32))
            made.append(OrderedValues.of(np.array([row[1] for row in rows], dtype=float), groups))
        return sides.closed(place, joined([each.interval(column.p, behind) for each in made]))


@dataclass(frozen=True, slots=True)
class _Totals:
    """Estimated sums (cells), their replicates (groups x cells), how many groups have a part in each, and which count every row.

    The number of all rows is known, and needs no interval.
    """

    estimate: Floats
    replicates: Floats
    seen_in: NDArray[np.int64]
    every: NDArray[np.bool_]

    def interval(self, behind: Evidence) -> Interval:
        found = behind.interval(self.estimate, self.replicates, self.seen_in)
        low, high = (np.where(self.every, self.estimate, side) for side in (found.low, found.high))
        return Interval(low, high, np.where(self.every, 0.0, found.error))


def _by_key(table: pa.Table) -> dict[Key, list[Any]]:
    """From rows (key_0, ..., unit_group, ...): what comes after the keys, by key."""
    width = sum(name.startswith("key_") for name in table.column_names)
    columns = [column.to_pylist() for column in table.columns]
    found: dict[Key, list[Any]] = {}
    for row in zip(*columns, strict=True):
        found.setdefault(row[:width], []).append(row[width:])
    return found


def _keys(found: pa.Table, names: tuple[str, ...]) -> list[Key]:
    """The keys of the answer's rows."""
    columns = [found[name].to_pylist() for name in names]
    return list(zip(*columns, strict=True)) if columns else [()] * found.num_rows
