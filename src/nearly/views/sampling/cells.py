"""The aggregates of a query over a stale view, estimated: for each group, by every set of weights at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearly.engine.engine import Engine
from nearly.estimate.cells import floats
from nearly.estimate.corrections import Estimates
from nearly.plan.expressions import AggregateCall, Column, same
from nearly.plan.nodes import GroupBy, Input, Join, Output, Plan, Project, passed
from nearly.plan.types import LONG
from nearly.rewrite.passes import rewrite
from nearly.rewrite.sample.sampled_query import ROWS, UNIT, CoreParts, SampledQuery
from nearly.rewrite.sample.weigh_parts import CELL, PARTS, weigh_parts
from nearly.views.sampling.sample import DRAWN, CleanSample, SampledRows
from nearly.views.sampling.strata import DIRECT, POINTS, STALE, SURE_DRAWN, SURE_NEW, SURE_OLD, Strata

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

REPLICATED = 8_000_000
"""Partial results, counted once for each replicate, up to which there are replicates."""
_KEYS = "sample_keys"
_TOTALS = frozenset({"sum", "count", "count_if"})


@dataclass
class Cells:
    """The groups of a query, numbered, and the partial results of their units."""

    engine: Engine
    query: SampledQuery
    parts: CoreParts
    sample: CleanSample
    draw: Callable[[tuple[str, ...]], SampledRows]
    """Gives some columns of the stored rows that were drawn."""

    @property
    def strata(self) -> Strata:
        return self.sample.strata

    @cached_property
    def rows(self) -> Plan:
        """What the core groups, with units."""
        return self.query.rows(self.sample.weighted(self.query.scan))

    @cached_property
    def _drawn(self) -> SampledRows:
        return self.draw(tuple(each.source for each in self.query.scan.fields))

    @cached_property
    def _inputs(self) -> dict[str, pa.Table]:
        return {**self.sample.inputs, DRAWN: self._drawn.units(self.strata, self.strata.drawn, SURE_DRAWN)}

    @cached_property
    def together(self) -> float:
        """How many of the view's rows share a ticket, clusters weighed by their size; infinite where none was drawn to tell."""
        if set(self.sample.key) <= set(self.sample.drawn_by):
            return 1.0
        _, times = np.unique(self._drawn.tickets[~self._drawn.sure], return_counts=True)
        return float((times * times).sum() / times.sum()) if len(times) else math.inf

    def run(self, plan: Plan, inputs: dict[str, pa.Table] | None = None) -> pa.Table:
        """A plan over stored tables, the sample, and what else is given, by the driver's engine."""
        return self.engine.native.run_here(plan, {**self._inputs, **(inputs or {})})

    @cached_property
    def _by_unit(self) -> pa.Table:
        return self.run(rewrite(self.parts.partial(self.rows)))

    @cached_property
    def keys(self) -> pa.Table:
        """The keys of the groups and their numbers; without keys there is one group."""
        columns = tuple(key.column for key in self.parts.keys)
        if not columns:
            return pa.table({CELL.name: pa.array([0], pa.int32())})
        given = Input(PARTS, columns)
        found = self.run(GroupBy(given, passed(columns), ()), {PARTS: self._by_unit.select([each.name for each in columns])})
        return found.append_column(CELL.name, pa.array(range(found.num_rows), pa.int32()))

    @property
    def count(self) -> int:
        return int(self.keys.num_rows)

    def numbered(self, rows: pa.Table, extra: tuple[Column, ...]) -> pa.Table:
        """Rows with the keys replaced by the numbers of their groups: those columns come first, then `extra`."""
        columns = [key.column for key in self.parts.keys]
        if not columns:
            found = rows.select([each.name for each in extra])
            return found.add_column(0, CELL.name, pa.array(np.zeros(found.num_rows), pa.int32()))
        renamed = [Output(f"{_KEYS}_{place}", column) for place, column in enumerate(columns)]
        numbers = Project(Input(_KEYS, (*columns, CELL)), (*renamed, Output(CELL.name, CELL)))
        condition = same(columns, [each.column for each in renamed])
        assert condition is not None  # noqa: S101  there is a key
        joined = Join(Input(PARTS, (*columns, *extra)), numbers, "inner", condition)
        return self.run(Project(joined, passed((CELL, *extra))), {PARTS: rows, _KEYS: self.keys})

    @cached_property
    def _numbered(self) -> pa.Table:
        return self.numbered(self._by_unit, self._given[1:])

    @property
    def _given(self) -> tuple[Column, ...]:
        return (CELL, UNIT, *(output.column for output in self.parts.steps.partial.aggregates))

    @cached_property
    def replicated(self) -> bool:
        """Whether there are replicates: of few enough partial results."""
        return self.strata.share < 1 and self._numbered.num_rows * 2 * self.strata.groups <= REPLICATED

    @cached_property
    def _weighted(self) -> dict[str, Floats]:
        """For each linear aggregate, sets of weights x groups; NaN where a set has no row of a group."""
        plan = weigh_parts(self.parts, self._given)
        table = self.run(plan, {PARTS: self._numbered, "weights": self.strata.table(self.replicated)})
        sets = POINTS + (2 * self.strata.groups if self.replicated else 0)
        number, cell = (table[name].to_numpy() for name in ("replicate", CELL.name))
        found = {}
        for column in self.parts.linear:
            values = np.full((sets, self.count), np.nan)
            values[number, cell] = floats(table[column.name])
            found[column.name] = values
        return found

    def values(self, name: str, kind: int) -> Floats:
        """A linear aggregate by one set of weights."""
        found = self._weighted[name][kind]
        return np.asarray(np.nan_to_num(found) if self.is_count(name) else found, dtype=float)

    def estimates(self, name: str, kind: int) -> Estimates:
        """A linear aggregate from the sample alone, or corrected by it, and its replicates."""
        found = self._weighted[name]
        first, count = self.strata.first_copy(kind), self.strata.groups if self.replicated else 0
        copies = found[first : first + count]
        if self.is_total(name):
            copies = np.nan_to_num(copies)  # of a group that is not drawn nothing is added up
        return Estimates(self.values(name, kind), copies)

    def rows_of(self, kind: int) -> Floats:
        """How many rows each group has by a set of weights."""
        return self.values(ROWS, kind)

    def drawn_rows(self) -> tuple[Floats, Floats]:
        """For each group, how many of its stored rows are known to have changed, and how many clean ones came for them."""
        units = self._numbered[UNIT.name].to_numpy()
        counted = next(o.name for o in self.parts.steps.partial.aggregates if _counts_rows(o))
        rows, cell = floats(self._numbered[counted]), self._numbered[CELL.name].to_numpy()
        old = (units == SURE_OLD) | ((units >= self.strata.old.start) & (units < self.strata.old.stop))
        new = (units == SURE_NEW) | (units >= self.strata.new.start)
        found = (np.bincount(cell, rows * which, self.count).astype(float) for which in (old, new))
        return next(found), next(found)

    def changed_groups(self) -> Integers:
        """For each group of the answer, in how many groups of tickets there are changes of it."""
        unit, cell = (self._numbered[name].to_numpy().astype(np.int64) for name in (UNIT.name, CELL.name))
        drawn = unit >= self.strata.old.start
        pairs = np.unique(np.stack([cell[drawn], self.strata.group_of(unit[drawn])]), axis=1)
        return np.bincount(pairs[0], minlength=self.count)

    def extremes(self, kind: int) -> pa.Table:
        """The least and greatest values of each group: as stored, with what was cleaned in place, or of the sample."""
        scan = self.query.scan
        rows = scan if kind == STALE else self.sample.clean(scan, drawn=kind == DIRECT)
        grouped = GroupBy(self.query.plain_rows(rows), self.parts.keys, self.parts.extreme_outputs)
        wanted = tuple(output.column for output in self.parts.extreme_outputs)
        found = self.numbered(self.run(rewrite(grouped)), wanted)
        places = np.full(self.count, found.num_rows)
        places[found[CELL.name].to_numpy()] = np.arange(found.num_rows)
        return found.take(pa.array(places, mask=places == found.num_rows))

    def is_spread(self, name: str) -> bool:
        """Whether an aggregate is made of squares."""
        return self._function(name) not in (*_TOTALS, "avg")

    def is_count(self, name: str) -> bool:
        """Whether an aggregate is a number of rows."""
        return self._function(name) in ("count", "count_if")

    def is_total(self, name: str) -> bool:
        """Whether an aggregate adds up."""
        return self._function(name) in _TOTALS

    def _function(self, name: str) -> str:
        if name == ROWS:
            return "count"
        call = next((o.expression for o in self.query.core.aggregates if o.name == name), None)
        return call.function if isinstance(call, AggregateCall) else ""


def _counts_rows(output: Output) -> bool:
    return output.expression == AggregateCall(LONG, "count", ())
