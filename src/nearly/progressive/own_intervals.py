"""Columns whose intervals do not come from replicates of themselves: counts of keys, averages over keys, and quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nearly.engine.state import State
from nearly.errors import Unsupported
from nearly.estimate.distinct import Distinct, distinct
from nearly.estimate.intervals import FEWEST_SEEN, Floats, Interval, at_look, joined, quotient
from nearly.estimate.quantiles import Sampled, Values
from nearly.plan.expressions import Expression
from nearly.progressive.cells import Sides, floats
from nearly.progressive.reading import Reading
from nearly.rewrite.cut import Cut
from nearly.rewrite.distinct_counts import CountedKeys, distinct_counts, keys_by_unit, totals_by_unit
from nearly.rewrite.quantile_columns import QuantileColumn, quantile_columns, values_by_unit
from nearly.rewrite.weigh import keyed_aggregates

COUNTED_ROWS = 20
"""Answers of more rows have no intervals of distinct counts: each takes tens of milliseconds, and replicates would mislead."""
QUANTILE_ROWS = 2_000
"""Answers of more rows have intervals of quantiles from replicates, which are computed for all rows at once."""

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class OwnIntervals:
    """Gives the columns of a query's answers that have methods of their own their bounds."""

    cut: Cut
    state: State
    confidence: float

    def closed(self, sides: Sides, found: pa.Table, reading: Reading, look: int) -> tuple[Sides, set[int]]:
        """The sides with bounds for these columns, and their places: no others are to be given."""
        places = {column.name: place for place, column in enumerate(self.cut.tail.columns)}
        apart: set[int] = set()
        if reading.share >= 1 or reading.groups < 2:
            return sides, apart
        keyed = keyed_aggregates(self.cut.tail, self.cut.stages)
        for name, counted in distinct_counts(self.cut.tail).items():
            if counted.aggregate in keyed:
                apart.add(places[name])
                if found.num_rows <= COUNTED_ROWS:
                    sides = self._counted(sides, places[name], counted, found, reading, look)
        for name, column in quantile_columns(self.cut.tail).items():
            if found.num_rows <= QUANTILE_ROWS:
                try:
                    sides = self._quantile(sides, places[name], column, found, reading, look)
                except Unsupported:
                    continue
                apart.add(places[name])
        return sides, apart

    def _counted(self, sides: Sides, place: int, counted: CountedKeys, found: pa.Table, reading: Reading, look: int) -> Sides:
        """Counts of keys, or averages over them, by group or not."""
        cells = _by_key(self.state.run(keys_by_unit(counted, self.cut.stages)))
        made = []
        for key in _keys(found, counted.shown):
            rows = cells.get(key, [])
            enough = not counted.by or len({row[0] for row in rows}) >= FEWEST_SEEN
            made.append((distinct(reading.incidence(rows), reading.share, reading.group_rows), enough))
        theta = np.array([each.estimate for each, _ in made])
        fixed, lasting = (joined([self._of_count(*each, at) for each in made]) for at in (None, look))
        if counted.total is not None:
            totals = self._totals(counted, counted.total, found, reading)
            fixed, lasting = (
                quotient(totals.estimate, totals.interval(reading, self.confidence, at), theta, each)
                for at, each in ((None, fixed), (look, lasting))
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                theta = totals.estimate / theta
        return sides.valued(place, theta).closed(place, theta, fixed, lasting)

    def _totals(self, counted: CountedKeys, total: Expression, found: pa.Table, reading: Reading) -> _Totals:
        """Sums over all rows of the answer's groups."""
        cells = _by_key(self.state.run(totals_by_unit(counted, total, self.cut.stages)))
        keys, group_rows = _keys(found, counted.shown), reading.group_rows
        sums = np.zeros((len(group_rows), len(keys)))
        for place, key in enumerate(keys):
            for group, value in cells.get(key, []):
                sums[reading.places(np.array([group])), place] += value or 0.0
        rows, whole = reading.plan.total_rows, sums.sum(axis=0)
        left = (group_rows.sum() - group_rows)[:, None]
        return _Totals(rows / group_rows.sum() * whole, rows / left * (whole - sums))

    def _of_count(self, keys: Distinct, enough: bool, look: int | None) -> Interval:
        """Where nothing was read, or too little, nothing says how many keys there may be."""
        if keys.seen and enough:
            return keys.interval(self.confidence, look=look)
        return Interval(*(np.full(1, np.nan) for _ in range(3)))

    def _quantile(self, sides: Sides, place: int, column: QuantileColumn, found: pa.Table, reading: Reading, look: int) -> Sides:
        """Quantiles, by group or not; the estimates stay."""
        cells = _by_key(self.state.run(values_by_unit(column, self.cut.stages)))
        sampled = Sampled(reading.share, reading.units, reading.group_rows)
        made = []
        for key in _keys(found, column.keys):
            rows = cells.get(key, [])
            groups = reading.places(np.array([row[0] for row in rows], dtype=np.int32))
            made.append(Values.of(np.array([row[1] for row in rows], dtype=float), groups))
        fixed, lasting = (
            joined([each.interval(column.p, sampled, self.confidence, look=at) for each in made]) for at in (None, look)
        )
        return sides.closed(place, floats(found.column(place)), fixed, lasting)


@dataclass(frozen=True, slots=True)
class _Totals:
    """Estimated sums (cells) and their replicates (groups x cells)."""

    estimate: Floats
    replicates: Floats

    def interval(self, reading: Reading, confidence: float, look: int | None) -> Interval:
        given: dict[str, Any] = {"units": reading.units, "group_rows": reading.group_rows}
        return at_look(look, self.estimate, self.replicates, reading.share, confidence, **given)


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
