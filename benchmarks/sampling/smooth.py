"""Statistics that are functions of sums: counts, sums, averages and ratios, of the whole table or by key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.sampling.orders import Reading
from benchmarks.sampling.populations import Floats, Integers, Population
from benchmarks.sampling.trials import Replicated, Trial

Sums = dict[str, Floats]
Function = Callable[[Sums], Floats]


def functions(rows: int) -> dict[str, Function]:
    """The statistics, given the number of rows in all."""
    return {
        "count": lambda sums: rows * sums["selected"] / sums["rows"],
        "sum": lambda sums: rows * sums["y"] / sums["rows"],
        "avg": lambda sums: sums["y"] / sums["values"],
        "ratio": lambda sums: sums["y"] / sums["x"],
    }


@dataclass(frozen=True, slots=True)
class Smooth:
    """A function of sums with the partial sums of each unit (units x cells)."""

    partials: Sums
    function: Function
    grouped: bool

    def __call__(self, read: Reading, look: int) -> Trial:
        """The estimate from all groups, replicates with one group left out."""
        sums = {name: read.group_sums(each) for name, each in self.partials.items()}
        whole = {name: each.sum(axis=1) for name, each in sums.items()}
        without = {name: whole[name][:, None] - each for name, each in sums.items()}
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate, copies = self.function(whole), self.function(without)
            truth = self.function({name: each.sum(axis=0) for name, each in self.partials.items()})
        seen = (sums["selected"] > 0).sum(axis=1) if self.grouped else None
        share = whole["rows"] / self.partials["rows"].sum(axis=0)
        return Replicated(estimate, copies, share, sums["rows"], seen).trial(truth, read, look)


def plain_partials(population: Population) -> Sums:
    """Partial sums of each unit (units x 1); the predicate of the count is true for the largest fifth of x."""
    unit, present = population.unit_of, ~np.isnan(population.y)
    features = {
        "rows": np.ones(population.rows),
        "selected": population.x > np.quantile(population.x, 0.8),
        "x": population.x,
        "y": np.where(present, population.y, 0),
        "values": present,
    }
    return {name: _sums(unit, each, population.units)[:, None] for name, each in features.items()}


def grouped_partials(population: Population) -> Sums:
    """Partial sums of each unit and key (units x keys); all rows of a key are selected, `rows` are all of the unit's."""
    keys = int(population.key.max()) + 1
    place, present = population.unit_of * keys + population.key, ~np.isnan(population.y)
    features = {"selected": np.ones(population.rows), "y": np.where(present, population.y, 0), "values": present}
    shape = population.units, keys
    sums = {name: _sums(place, each, shape[0] * keys).reshape(shape) for name, each in features.items()}
    return sums | {"rows": np.repeat(population.unit_rows[:, None].astype(float), keys, axis=1)}


def _sums(places: Integers, values: NDArray[Any], size: int) -> Floats:
    """Sums of the values at each place."""
    return np.asarray(np.bincount(places, values.astype(float), size), dtype=float)
