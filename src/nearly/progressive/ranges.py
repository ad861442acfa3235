"""Variation ranges: how far evolving values that rows are compared with may still move (iOLAP, section 5.1).

After each batch the values are estimated anew, with replicates; a value's range is

    R_i = [low - slack * s, high + slack * s]  within  R_(i-1),     s = standard error,

where [low, high] is an interval that holds for all values of the query together. Decisions on rows are made under the newest
range; a value without an interval decides nothing. When a value leaves its range, some decisions may be wrong: the batches decided
under ranges that do not hold the value are read again.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearly.engine.stream.unit_state import UnitState
from nearly.errors import Unsupported
from nearly.estimate.intervals import interval
from nearly.plan.expressions import AggregateCall, Column
from nearly.plan.functions import call
from nearly.plan.nodes import Filter, GroupBy, Input, Output, Plan, Project
from nearly.plan.types import BOOLEAN, LONG, to_arrow
from nearly.progressive.reading import Reading
from nearly.rewrite.sites.split_aggregate import merged_parts
from nearly.rewrite.stream.cut import Cut, Gathered, Waiting
from nearly.rewrite.stream.decide import decided_again
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
        """Whether every value that has a range lies in it, ends included."""
        place = {key: row for row, key in enumerate(self.keys)}
        rows = [(mine, place[key]) for mine, key in enumerate(keys) if key in place]
        if not rows:
            return True
        mine, theirs = (np.array(each) for each in zip(*rows, strict=True))
        inside = (low[mine] >= self.low[theirs]) & (high[mine] <= self.high[theirs])
        return bool(np.all(inside | np.isnan(low[mine])))

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
    def version(self) -> int:
        return len(self.history) - 1

    def tables(self, version: int | None = None) -> dict[str, pa.Table]:
        """The ranges of a version as the inputs that decisions read."""
        known = self.history[self.version if version is None else version]
        return {waiting.decision.name: _table(waiting, known.get(waiting.decision.name)) for _, waiting in self.stages}

    def valid(self, reading: Reading) -> int:
        """The newest version that holds all values as they are estimated now; renews the ranges when it is the newest of all."""
        found = {waiting.decision.name: self._estimated(waiting, reading) for _, waiting in self.stages}
        for version in range(self.version, -1, -1):
            known = self.history[version]
            if all(known[name].holds(*each.values) for name, each in found.items() if name in known and each is not None):
                break
        del self.history[version + 1 :]
        newest = self.history[version]
        made = {name: each.ranges(self.slack).within(newest.get(name)) for name, each in found.items() if each}
        self.history.append({**newest, **made})
        return version

    def foresee(self, tables: dict[str, pa.Table], reading: Reading) -> None:
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
        for _, waiting in self.stages:
            keys, ends = _split(tables[waiting.decision.name], len(waiting.decision.keys))
            known[waiting.decision.name] = Ranges(keys, ends[:, 0::2], ends[:, 1::2])
        self.history = [{}, *([known] * version)]

    def holds_exactly(self) -> bool:
        """Whether the exact values, all units read, lie in the newest ranges."""
        for _, waiting in self.stages:
            known = self.history[self.version].get(waiting.decision.name)
            if known is None:
                continue
            keys, values = _split(self.state.run(waiting.decision.values), len(waiting.decision.keys))
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

    def _estimated(self, waiting: Waiting, reading: Reading) -> _Estimated | None:
        """The values now, with their replicates; None when there are too many or they have none."""
        plan = waiting.decision.values
        point = weigh(plan, self.cut.stages, reading.weight, {})
        seen = () if point.seen is None else (Output("seen_in", point.seen),)
        table = self.state.run(_only(point.plan, plan, *seen))
        if not table.num_rows or table.num_rows > MOST_VALUES or reading.groups < 3:
            return None
        try:
            copies = replicate(plan, self.cut.stages, {})
        except Unsupported:
            return None
        if copies.replicate is None:
            return None
        number = Output("replicate_number", copies.replicate)
        inputs = {"weights": reading.weights(), "replicates": reading.replicates()}
        rows = self.state.run(_only(copies.plan, plan, number), inputs)
        return _Estimated.of(table, rows, len(waiting.decision.keys), reading)


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
    def of(cls, table: pa.Table, rows: pa.Table, keys: int, reading: Reading) -> _Estimated:
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
        with np.errstate(invalid="ignore"):
            least = np.fmin(np.nanmin(np.where(np.isnan(flat), np.inf, flat), axis=0), theta.reshape(-1))
            greatest = np.fmax(np.nanmax(np.where(np.isnan(flat), -np.inf, flat), axis=0), theta.reshape(-1))
        return cls(names, theta, *(each.reshape(theta.shape) for each in (found.low, found.high, found.error, least, greatest)))

    def ranges(self, slack: float) -> Ranges:
        """The intervals and some standard errors more; and a hair more, since decisions compare doubles."""
        hair = 1e-9 * np.abs(self.theta) + 1e-300
        known = np.asarray(np.isfinite(self.low + self.high).all(axis=1))
        keys = tuple(self.keys[row] for row in np.flatnonzero(known))
        reach = slack * np.where(known[:, None], self.error, 0.0)
        low = np.minimum(self.low - reach, self.least) - hair
        high = np.maximum(self.high + reach, self.greatest) + hair
        return Ranges(keys, low[known], high[known])


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


def _table(waiting: Waiting, ranges: Ranges | None) -> pa.Table:
    columns = waiting.decision.ranges.given
    keys = len(waiting.decision.keys)
    rows = ranges.keys if ranges is not None else ()
    arrays = [pa.array([key[place] for key in rows], to_arrow(columns[place].type)) for place in range(keys)]
    count = len(waiting.decision.comparisons)
    sides = (ranges.low, ranges.high) if ranges is not None else (np.empty((0, count)), np.empty((0, count)))
    arrays += [pa.array(ends[:, place], pa.float64()) for place in range(count) for ends in sides]
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])
