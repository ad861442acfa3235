"""Variation ranges: how far evolving values that rows are compared with may still move (iOLAP, section 5.1).

After each batch the values are estimated anew, with replicates; a value's range is

    R_i = [low - slack * s, high + slack * s]  within  R_(i-1),     s = standard error,

where [low, high] is an interval that holds for all values of the query together. The least of some rows only falls, the greatest
only rises, as more are read, so these have a range that is open on one side. A value without an interval decides nothing. Rows are
decided under the newest ranges. When a value leaves its range, or is gone, some decisions may be wrong: the batches decided under
ranges that do not hold the value are read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearly.algebra import arrow as pc
from nearly.engine.stream.unit_state import UnitState
from nearly.errors import Unsupported
from nearly.estimate.intervals import FEWEST_SEEN, interval
from nearly.plan.expressions import AggregateCall, Column
from nearly.plan.functions import call
from nearly.plan.nodes import Filter, GroupBy, Input, Output, Plan, Project
from nearly.plan.types import BOOLEAN, LONG, to_arrow
from nearly.progressive.growths import growths_of
from nearly.progressive.reading import UnitsRead
from nearly.rewrite.sites.split_aggregate import merged_parts
from nearly.rewrite.stream.cut import Cut, Gathered, Waiting
from nearly.rewrite.stream.decide import decided_again
from nearly.rewrite.stream.lookups import Lookup
from nearly.rewrite.weigh.weigh import replicate, weigh

SLACK = 2.0
FAILURE = 0.05
"""The probability that one of the intervals behind a version of the ranges fails, slack left out."""

MOST_VALUES = 50_000
"""More values than this get no ranges: their replicates would cost more than the rows they decide."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ranges of one decision: keys, and low and high ends, value x comparison."""

    keys: tuple[tuple[object, ...], ...]
    low: Floats
    high: Floats

    def holds(self, keys: tuple[tuple[object, ...], ...], low: Floats, high: Floats) -> bool:
        """Whether every value that has a range is still there and lies in it, ends included."""
        place = {key: row for row, key in enumerate(keys)}
        if not all(key in place for key in self.keys):
            return False
        rows = np.array([place[key] for key in self.keys], dtype=int)
        inside = (low[rows] >= self.low) & (high[rows] <= self.high)
        return bool(np.all(inside | (np.isinf(self.low) & np.isinf(self.high))))

    def within(self, older: Ranges | None) -> Ranges:
        """These ranges cut to older ones; keys that have no range now keep the one they had."""
        if older is None:
            return self
        place = {key: row for row, key in enumerate(older.keys)}
        low, high = self.low.copy(), self.high.copy()
        for row, key in enumerate(self.keys):
            if key in place:
                low[row] = np.maximum(low[row], older.low[place[key]])
                high[row] = np.minimum(high[row], older.high[place[key]])
        mine = set(self.keys)
        gone = [row for row, key in enumerate(older.keys) if key not in mine]
        keys = (*self.keys, *(older.keys[row] for row in gone))
        return Ranges(keys, np.concatenate([low, older.low[gone]]), np.concatenate([high, older.high[gone]]))


@dataclass(slots=True)
class VariationRanges:
    """All ranges of a query, version by version; version 0 knows none."""

    cut: Cut
    state: UnitState
    slack: float = SLACK
    history: list[dict[str, Ranges]] = field(default_factory=lambda: [{}])
    hopeless: bool = False

    @property
    def stages(self) -> tuple[tuple[Gathered, Waiting], ...]:
        """The stages with rows that wait for a decision."""
        return tuple((stage, stage.waiting) for stage in self.cut.stages if stage.waiting is not None)

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """What their rows find."""
        return tuple(lookup for _, waiting in self.stages for lookup in waiting.decision.lookups)

    @property
    def version(self) -> int:
        return len(self.history) - 1

    def tables(self, version: int | None = None) -> dict[str, pa.Table]:
        """The ranges of a version as the inputs that decisions read."""
        known = self.history[self.version if version is None else version]
        return {lookup.name: _table(lookup, known.get(lookup.name)) for lookup in self.lookups}

    def valid(self, reading: UnitsRead) -> int:
        """The newest version that holds all values as they are estimated now; renews the ranges when it is the newest of all."""
        found = {lookup.name: self._estimated(lookup, reading) for lookup in self.lookups}
        for version in range(self.version, -1, -1):
            known = self.history[version]
            if all(known[name].holds(*each.values) for name, each in found.items() if name in known and each is not None):
                break
        del self.history[version + 1 :]
        newest = self.history[version]
        made = {name: each.ranges(self.slack).within(newest.get(name)) for name, each in found.items() if each}
        self.history.append({**newest, **made})
        return version

    def foresee(self, tables: dict[str, pa.Table], reading: UnitsRead) -> None:
        """Ranges from the first batch's values, before the rows of that batch that wait for them are decided."""
        if self.version == 0:
            with closing(UnitState(self.cut.stages, self.state.settings, self.state.spare)) as state:
                early = VariationRanges(self.cut, state, self.slack)
                state.add(tables)
                early.valid(reading)
            self.history = early.history

    def restore(self, version: int, tables: dict[str, pa.Table]) -> None:
        """Go on with ranges that another run left: the newest, which lie in all older ones, stand for those as well."""
        known = {}
        for lookup in self.lookups:
            keys, ends = _split(tables[lookup.name], len(lookup.keys))
            known[lookup.name] = Ranges(keys, ends[:, 0::2], ends[:, 1::2])
        self.history = [{}, *([known] * version)]

    def holds_exactly(self) -> bool:
        """Whether the exact values, all units read, lie in the newest ranges."""
        for lookup in self.lookups:
            known = self.history[self.version].get(lookup.name)
            if known is None:
                continue
            keys, values = _split(self.state.run(lookup.values), len(lookup.keys))
            if not known.holds(keys, values, values):
                return False
        return True

    def give_up(self) -> None:
        """Decide nothing from now on: every row waits."""
        self.history = [{}]
        self.hopeless = True

    def fold(self) -> None:
        """Decide about the rows kept, by the newest ranges."""
        for stage, waiting in self.stages:
            if isinstance(stage.plan, GroupBy):
                self.state.replace(stage, _folded(stage, stage.plan, waiting), self.tables())

    def undecided(self) -> int:
        """Rows that still wait."""
        total = 0
        for stage, waiting in self.stages:
            rows = Filter(Input(stage.name, stage.plan.columns), call("not", (Column(BOOLEAN, waiting.mark),)))
            counted = self.state.run(GroupBy(rows, (), (Output("rows", AggregateCall(LONG, "count", ())),)))
            total += counted["rows"][0].as_py()
        return total

    def _estimated(self, lookup: Lookup, reading: UnitsRead) -> _Estimated | None:
        """The values now, with their replicates; None when there are too many or they have none."""
        plan = lookup.values
        growths, _ = growths_of(plan, self.cut.stages, self.state, reading)
        point = weigh(plan, self.cut.stages, reading.weight, growths)
        seen = () if point.seen is None else (Output("seen_in", point.seen),)
        table = self.state.run(_only(point.plan, plan, *seen))
        settled = [place for place in range(len(lookup.compared)) if f"value_{place}" not in point.evolving]
        if not table.num_rows or table.num_rows > MOST_VALUES or reading.groups < 3:
            return None
        if seen and not settled and not lookup.extremes and pc.max(table["seen_in"]).as_py() < FEWEST_SEEN:
            return None  # none of them has an interval
        try:
            copies = replicate(plan, self.cut.stages, growths)
        except Unsupported:
            return None
        if copies.replicate is None:
            return None
        number = Output("replicate_number", copies.replicate)
        rows = self.state.run(_only(copies.plan, plan, number), reading.replicates().inputs)
        return _Estimated.of(table, rows, lookup, reading).settled(settled).one_sided(lookup.extremes)


@dataclass(frozen=True, slots=True)
class _Estimated:
    """Values, value x comparison, with their intervals, standard errors and outermost replicates."""

    keys: tuple[tuple[object, ...], ...]
    theta: Floats
    low: Floats
    high: Floats
    error: Floats
    least: Floats
    greatest: Floats

    @property
    def values(self) -> tuple[tuple[tuple[object, ...], ...], Floats, Floats]:
        return self.keys, self.least, self.greatest

    @classmethod
    def of(cls, table: pa.Table, rows: pa.Table, lookup: Lookup, reading: UnitsRead) -> _Estimated:
        keys = len(lookup.keys)
        seen = table["seen_in"].to_numpy() if "seen_in" in table.column_names else None
        names, theta = _split(table.drop_columns(["seen_in"]) if seen is not None else table, keys)
        place = {key: row for row, key in enumerate(names)}
        others, values = _split(rows.drop_columns(["replicate_number"]), keys)
        numbers = rows["replicate_number"].to_numpy()
        copies = np.full((reading.groups, *theta.shape), np.nan)
        for row, key in enumerate(others):
            if key in place:
                copies[numbers[row], place[key]] = values[row]
        flat = copies.reshape(reading.groups, -1)
        seen_in = None if seen is None else np.repeat(seen, theta.shape[1])
        confidence = 1 - FAILURE / max(theta.size, 1)
        arguments: dict[str, Any] = {"seen_in": seen_in, "group_rows": reading.group_rows, "units": reading.units}
        found = interval(theta.reshape(-1), flat, min(reading.share, 1.0), confidence, **arguments)
        with np.errstate(invalid="ignore"):  # a value that is null now is neither inside nor outside of anything
            least = np.minimum(np.min(np.where(np.isnan(flat), np.inf, flat), axis=0), theta.reshape(-1))
            greatest = np.maximum(np.max(np.where(np.isnan(flat), -np.inf, flat), axis=0), theta.reshape(-1))
        return cls(names, theta, *(each.reshape(theta.shape) for each in (found.low, found.high, found.error, least, greatest)))

    def ranges(self, slack: float) -> Ranges:
        """The intervals and some standard errors more; and a hair more, since decisions compare doubles."""
        hair = 1e-9 * np.abs(self.theta) + 1e-300
        told = ~(np.isnan(self.low) | np.isnan(self.high) | np.isnan(self.theta))
        reach = slack * np.where(told & np.isfinite(self.error), self.error, 0.0)
        low = np.where(told, np.minimum(self.low - reach, self.least) - hair, -np.inf)
        high = np.where(told, np.maximum(self.high + reach, self.greatest) + hair, np.inf)
        known = told.any(axis=1) & np.array([all(part == part for part in key) for key in self.keys], dtype=bool)  # noqa: PLR0124  NaN
        return Ranges(tuple(self.keys[row] for row in np.flatnonzero(known)), low[known], high[known])

    def settled(self, places: Iterable[int]) -> _Estimated:
        """The same when some values are final."""
        return self._with(places, self.theta, self.theta)

    def one_sided(self, extremes: Mapping[int, str]) -> _Estimated:
        """The same when some values are the least or the greatest of the rows read."""
        lowest, highest = np.full_like(self.theta, -np.inf), np.full_like(self.theta, np.inf)
        made = self._with((place for place, kind in extremes.items() if kind == "min"), lowest, self.greatest)
        return made._with((place for place, kind in extremes.items() if kind == "max"), self.least, highest)

    def _with(self, places: Iterable[int], low: Floats, high: Floats) -> _Estimated:
        """The same with other ends of some values, which replicates do not move."""
        wanted = np.isin(np.arange(self.theta.shape[1]), list(places))
        error = np.where(wanted, 0.0, self.error)
        least, greatest = (np.where(wanted, self.theta, side) for side in (self.least, self.greatest))
        low, high = np.where(wanted, low, self.low), np.where(wanted, high, self.high)
        return replace(self, low=low, high=high, error=error, least=least, greatest=greatest)


def _folded(stage: Gathered, partial: GroupBy, waiting: Waiting) -> Plan:
    keys = tuple(key.name for key in partial.keys if key.name not in (*waiting.columns, waiting.mark))
    rows = Input(stage.name, stage.plan.columns)
    return decided_again(rows, keys, waiting.columns, waiting.mark, waiting.decision, merged_parts(partial, rows).aggregates)


def _only(plan: Plan, wanted: Plan, *extra: Output) -> Plan:
    types = {column.name: column.type for column in plan.columns}
    columns = [Output(column.name, Column(types[column.name], column.name)) for column in wanted.columns]
    return Project(plan, (*columns, *extra))


def _split(table: pa.Table, keys: int) -> tuple[tuple[tuple[object, ...], ...], Floats]:
    """Keys as tuples, values as an array of rows."""
    names = list(zip(*(table.column(place).to_pylist() for place in range(keys)), strict=True)) if keys else [()] * table.num_rows
    columns = [table.column(place).cast(pa.float64()).to_numpy() for place in range(keys, table.num_columns)]
    return tuple(names), np.column_stack(columns) if columns else np.empty((table.num_rows, 0))


def _table(lookup: Lookup, ranges: Ranges | None) -> pa.Table:
    columns = lookup.ranges.given
    keys = len(lookup.keys)
    rows = ranges.keys if ranges is not None else ()
    arrays = [pa.array([key[place] for key in rows], to_arrow(columns[place].type)) for place in range(keys)]
    count = len(lookup.compared)
    sides = (ranges.low, ranges.high) if ranges is not None else (np.empty((0, count)), np.empty((0, count)))
    arrays += [pa.array(ends[:, place], pa.float64()) for place in range(count) for ends in sides]
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])
