"""Aggregates of a query over a stale view that are no sums: quantiles, distinct counts and extremes, and what bounds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearly.estimate.cells import floats
from nearly.estimate.corrected_quantiles import QuantileWeights, UnitValues, corrected_quantile
from nearly.estimate.distinct import Distinct, distinct
from nearly.estimate.evidence import Evidence, nothing
from nearly.estimate.intervals import FEWEST_SEEN, Interval, joined
from nearly.plan.expressions import Column
from nearly.plan.types import DOUBLE, LONG
from nearly.rewrite.passes import rewrite
from nearly.rewrite.sample.sampled_query import UNIT, Counted, Extreme, Quantile
from nearly.rewrite.sample.weigh_parts import CELL
from nearly.views.sampling.cells import Cells
from nearly.views.sampling.linear import AQP, MANY, STALE_ONLY, Estimated, none_of, unbounded
from nearly.views.sampling.strata import CORRECTED, DIRECT, MERGED, STALE, STORED, SURE_DRAWN, SURE_NEW, Strata

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

OWN_INTERVALS = 2_000
"""Groups up to which quantiles have intervals; each is sorted by itself."""
COUNTED_GROUPS = 50
"""The same for distinct counts, of which each takes tens of milliseconds."""


def quantile_column(cells: Cells, quantile: Quantile, behind: Evidence, method: str) -> Estimated:
    """A quantile in each group, from the corrected or the direct distribution of its value."""
    value = Column(DOUBLE, "sample_value")
    rows = cells.numbered(cells.run(rewrite(cells.parts.values(quantile, cells.rows))), (UNIT, value))
    strata = cells.strata
    weights = QuantileWeights(
        strata.weights(STALE if method == STALE_ONLY else DIRECT), strata.copies(DIRECT),
        strata.weights(CORRECTED), strata.copies(CORRECTED),
    )  # fmt: skip
    theta, ends = np.full(cells.count, np.nan), [nothing()] * cells.count
    bounded = method != STALE_ONLY and cells.count <= OWN_INTERVALS
    for cell, values in _by_cell(rows):
        if bounded:
            theta[cell], ends[cell] = corrected_quantile(values, quantile.p, weights, behind, method)
        else:
            wanted = weights.direct if method in (AQP, STALE_ONLY) else weights.corrected
            theta[cell] = values.weighted(wanted).quantile(quantile.p)
    estimates = unbounded(theta, cells)
    return Estimated(estimates, np.full(cells.count, MANY), estimates, joined(ends))


def distinct_column(cells: Cells, counted: Counted, behind: Evidence, method: str) -> Estimated:
    """A number of different values: that of the stale view, corrected by what both samples let expect, or that of the clean one.

    A value is seen or it is not, so the number is no sum of parts, and a correction has the interval of the direct estimate.
    """
    value, times = Column(counted.value.type, "sample_value"), Column(LONG, "sample_times")
    rows = cells.numbered(cells.run(rewrite(cells.parts.different(counted, cells.rows))), (UNIT, value, times))
    found = _Occurrences.of(rows, cells.strata)
    theta, ends = np.zeros(cells.count), [nothing()] * cells.count
    for cell in range(cells.count):
        mine = found.of_cell(cell)
        stale = mine.stored()
        if method == STALE_ONLY:
            theta[cell] = stale
            continue
        fresh, known = mine.distinct(DIRECT), mine.distinct(STALE)
        beside = mine.only_sure()
        theta[cell] = fresh.estimate + beside if method == AQP else max(stale + fresh.estimate - known.estimate, fresh.seen)
        if cells.count <= COUNTED_GROUPS and fresh.groups and mine.groups_drawn() >= FEWEST_SEEN:
            around = fresh.interval(behind.confidence, look=behind.look)
            low, high = around.low + beside, around.high + beside
            ends[cell] = Interval(np.fmin(low, theta[cell]), np.fmax(high, theta[cell]), around.error)
    estimates = unbounded(theta, cells)
    return Estimated(estimates, np.full(cells.count, MANY), estimates, joined(ends))


def extreme_column(cells: Cells, extreme: Extreme, method: str) -> Estimated:
    """The greatest value of what is clean and of what is stale and may still hold, and how likely a greater one is (Cantelli).

    What is clean is there for sure, so it bounds the greatest value from below; nothing bounds it from above. With the mean mu and
    the variance v of the clean values, a value beyond e has at most the probability v / (v + (e - mu)^2).
    """
    kind = {STALE_ONLY: STALE, AQP: DIRECT}.get(method, MERGED)
    found, clean = (cells.extremes(each)[extreme.name] for each in (kind, DIRECT))
    unknown: list[Any] = [None] * cells.count
    certain = (clean.to_pylist(), unknown) if extreme.function == "max" else (unknown, clean.to_pylist())
    estimates = unbounded(np.full(cells.count, np.nan), cells)
    exceeding = None
    if extreme.mean is not None and extreme.variance is not None and method != STALE_ONLY:
        mean, variance = cells.values(extreme.mean, DIRECT), cells.values(extreme.variance, DIRECT)
        exceeding = cantelli(floats(found), mean, variance)
    bounds = None if method == STALE_ONLY else certain
    return Estimated(estimates, np.full(cells.count, MANY), estimates, none_of(cells.count), found, bounds, exceeding=exceeding)


def cantelli(extreme: Floats, mean: Floats, variance: Floats) -> Floats:
    """At most how likely a value lies beyond an extreme one.

    >>> cantelli(np.array([3.0]), np.array([0.0]), np.array([1.0]))
    array([0.1])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(variance / (variance + (extreme - mean) ** 2), dtype=float)


@dataclass(frozen=True, slots=True)
class _Occurrences:
    """How often values occur: the group of the answer, the unit, a number for the value, and how often."""

    strata: Strata
    cell: Integers
    unit: Integers
    code: Integers
    times: Integers

    @classmethod
    def of(cls, rows: pa.Table, strata: Strata) -> _Occurrences:
        cell, unit, times = (rows[name].to_numpy().astype(np.int64) for name in (CELL.name, UNIT.name, "sample_times"))
        return cls(strata, cell, unit, _codes(rows["sample_value"]), times)

    def of_cell(self, cell: int) -> _Occurrences:
        mine = self.cell == cell
        return _Occurrences(self.strata, self.cell[mine], self.unit[mine], self.code[mine], self.times[mine])

    def stored(self) -> int:
        return len(np.unique(self.code[self.unit == STORED]))

    def drawn(self, kind: int) -> tuple[Integers, Integers]:
        """The values in each group of the clean sample, or of the stale one: a value is there while its occurrences add up."""
        strata = self.strata
        signs = np.zeros(strata.units)
        signs[strata.drawn] = 1
        if kind == DIRECT:
            signs[strata.old], signs[strata.new] = -1, 1
        there = signs[self.unit] != 0
        codes, inverse = np.unique(self.code[there], return_inverse=True)
        table = np.zeros((len(codes), strata.groups))
        np.add.at(table, (inverse, strata.group_of(self.unit[there])), signs[self.unit[there]] * self.times[there])
        value, group = np.nonzero(table > 0)
        return codes[value], group

    def distinct(self, kind: int) -> Distinct:
        """The number of different values that those drawn let expect in all."""
        code, group = self.drawn(kind)
        _, inverse, count = np.unique(code, return_inverse=True, return_counts=True)
        table = np.zeros((self.strata.groups, self.strata.groups))
        np.add.at(table, (group, count[inverse] - 1), 1)
        return distinct(table, self.strata.share)

    def groups_drawn(self) -> int:
        return len(np.unique(self.drawn(DIRECT)[1]))

    def only_sure(self) -> int:
        """Values of rows that are known for sure which the sample does not have."""
        sure = self.code[np.isin(self.unit, (SURE_DRAWN, SURE_NEW))]
        return len(np.setdiff1d(sure, self.drawn(DIRECT)[0]))


def _by_cell(rows: pa.Table) -> list[tuple[int, UnitValues]]:
    cell, unit = rows[CELL.name].to_numpy(), rows[UNIT.name].to_numpy().astype(np.int64)
    values = floats(rows["sample_value"])
    order = np.argsort(cell, kind="stable")
    present, first = np.unique(cell[order], return_index=True)
    pieces = np.split(order, first[1:])
    return [(int(each), UnitValues.of(values[piece], unit[piece])) for each, piece in zip(present, pieces, strict=False)]


def _codes(values: pa.ChunkedArray) -> NDArray[np.int64]:
    whole = values.combine_chunks()
    found = (whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole).dictionary_encode()
    return np.asarray(found.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
