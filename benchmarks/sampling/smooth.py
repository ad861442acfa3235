"""Statistics that are functions of sums: counts, sums, averages, ratios and spreads, of the whole table or by key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.sampling.orders import Reading
from benchmarks.sampling.populations import Floats, Integers, Population
from benchmarks.sampling.trials import Replicated, Trial
from nearly.estimate.incidence import fit

Sums = dict[str, Floats]
Function = Callable[[Sums, Floats | float], Floats]
"""From sums, and how many rows a row that was read stands for."""


def _count(sums: Sums, weight: Floats | float) -> Floats:
    return weight * sums["selected"]


def _sum(sums: Sums, weight: Floats | float) -> Floats:
    return np.where(sums["values"] > 0, weight * sums["y"], np.nan)


def _average(sums: Sums, weight: Floats | float) -> Floats:
    return sums["y"] / sums["values"]


def _ratio(sums: Sums, weight: Floats | float) -> Floats:
    return sums["y"] / sums["x"]


def _spread(sums: Sums, weight: Floats | float) -> Floats:
    centred = sums["squares"] - sums["y"] ** 2 / sums["values"]
    return np.sqrt(weight * centred / (weight * sums["values"] - 1))


FUNCTIONS: dict[str, Function] = {"count": _count, "sum": _sum, "avg": _average, "ratio": _ratio, "stddev": _spread}
TOTALS = ("count", "sum")


@dataclass(frozen=True, slots=True)
class Plain:
    """A function of sums over the whole table, with the partial sums of each block (blocks x 1)."""

    partials: Sums
    statistic: str

    def __call__(self, read: Reading, look: int) -> Trial:
        """The estimate from all groups, replicates with one group left out."""
        sums = {name: read.group_sums(each) for name, each in self.partials.items()}
        whole = {name: each.sum(axis=1) for name, each in sums.items()}
        without = {name: whole[name][:, None] - each for name, each in sums.items()}
        rows, function = self.partials["rows"].sum(), FUNCTIONS[self.statistic]
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate, copies = function(whole, rows / whole["rows"]), function(without, rows / without["rows"])
            truth = function({name: each.sum(axis=0) for name, each in self.partials.items()}, 1.0)
        found = Replicated(estimate, copies, whole["rows"] / rows, sums["rows"], whole=self.statistic == "count")
        return found.trial(truth, read, look)


@dataclass(frozen=True, slots=True)
class Grouped:
    """A function of sums by key, with the partial sums of each block and key (blocks x keys); `rows` are those of blocks.

    A key that was seen in few groups may be missing elsewhere; what it will grow to is told by `estimate.incidence`.
    """

    partials: Sums
    rows: Floats
    statistic: str

    def __call__(self, read: Reading, look: int) -> Trial:
        each = [self._replicated(sample.sums, read) for sample in read.samples]
        stacked = Replicated(
            np.stack([one.estimate for one in each]),
            np.stack([one.replicates for one in each]),
            np.stack([one.share for one in each]),
            np.stack([one.group_rows for one in each]),
            np.stack([one.seen_in for one in each if one.seen_in is not None]),
            whole=self.statistic == "count",
        )
        function = FUNCTIONS[self.statistic]
        with np.errstate(divide="ignore", invalid="ignore"):
            truth = function({name: partial.sum(axis=0) for name, partial in self.partials.items()}, 1.0)
        return stacked.trial(truth, read, look)

    def _replicated(self, group_sums: Callable[[Floats], Floats], read: Reading) -> Replicated:
        """One seed: estimates (keys) and replicates (groups x keys)."""
        sums = {name: group_sums(each) for name, each in self.partials.items()}
        group_rows, total = group_sums(self.rows[:, None]), self.rows.sum()
        share = float(group_rows.sum() / total)
        whole = {name: each.sum(axis=0) for name, each in sums.items()}
        without = {name: whole[name] - each for name, each in sums.items()}
        has = sums["selected"] > 0
        seen = has.sum(axis=0)
        function = FUNCTIONS[self.statistic]
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate = function(whole, total / group_rows.sum())
            copies = function(without, total / (group_rows.sum() - group_rows))
        if self.statistic in TOTALS:
            growth = _growth(seen, read.groups, share)
            estimate, copies = estimate * growth[seen], copies * growth[seen - has]
        copies = np.where(seen - has > 0, copies, np.nan)
        return Replicated(np.where(seen > 0, estimate, np.nan), copies, np.full(seen.shape, share), group_rows + 0 * has, seen)


def _growth(seen: Integers, groups: int, share: float) -> Floats:
    """What remains of N/n for keys seen in 0, 1, ... groups."""
    frequencies = np.bincount(seen, minlength=groups + 1)[1:].astype(float)
    if not frequencies[0]:
        return np.ones(groups + 1)
    model = fit(frequencies, share)
    return np.concatenate([[1.0], model.scale(np.arange(1, groups + 1)) * model.m / model.M])


def plain_partials(population: Population) -> Sums:
    """Partial sums of each block (blocks x 1); the predicate of the count is true for the largest fifth of x."""
    block, present = population.unit_of, ~np.isnan(population.y)
    y = np.where(present, population.y, 0)
    features = {
        "rows": np.ones(population.rows),
        "selected": population.x > population.limit,
        "x": population.x,
        "y": y,
        "squares": y * y,
        "values": present,
    }
    return {name: _sums(block, each, population.units)[:, None] for name, each in features.items()}


def grouped_partials(population: Population) -> Sums:
    """Partial sums of each block and key (blocks x keys); all rows of a key are selected."""
    keys = int(population.key.max()) + 1
    place, present = population.unit_of * keys + population.key, ~np.isnan(population.y)
    features = {"selected": np.ones(population.rows), "y": np.where(present, population.y, 0), "values": present}
    shape = population.units, keys
    return {name: _sums(place, each, shape[0] * keys).reshape(shape) for name, each in features.items()}


def _sums(places: Integers, values: NDArray[Any], size: int) -> Floats:
    """Sums of the values at each place."""
    return np.asarray(np.bincount(places, values.astype(float), size), dtype=float)
