"""Statistics whose estimators take one sample at a time: quantiles and distinct counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.sampling.orders import Reading
from benchmarks.sampling.populations import Floats, Integers, Population
from benchmarks.sampling.trials import CONFIDENCE, Trial
from nearly.engine.stream.units import GROUPS
from nearly.estimate.distinct import distinct
from nearly.estimate.evidence import Evidence
from nearly.estimate.quantiles import OrderedValues
from nearly.rewrite.stream.thin import GOLDEN
from nearly.rewrite.stream.unit_policy import THINNED_ROWS


@dataclass(frozen=True, slots=True)
class Median:
    """The median of y from every so many-th of the values of each unit, in their order (`rewrite.stream.thin`)."""

    population: Population
    blocks: Integers
    values: Floats
    positions: tuple[Integers, ...]
    """For each seed, at which position of the order a block is read."""

    @classmethod
    def of(cls, population: Population, positions: tuple[Integers, ...]) -> Median:
        present = np.flatnonzero(~np.isnan(population.y))
        order = present[np.argsort(population.y[present], kind="stable")]
        return cls(population, population.unit_of[order], population.y[order], positions)

    def __call__(self, read: Reading, look: int) -> Trial:
        rows = read.group_sums(self.population.unit_rows[:, None].astype(float))[..., 0]
        truth = float(np.nanmedian(self.population.y))
        results = []
        for positions, group_rows in zip(self.positions, rows, strict=True):
            values = OrderedValues(*self._thinned(positions, read.units))
            share = float(group_rows.sum() / self.population.rows)
            behind = [Evidence(share, read.units, group_rows, CONFIDENCE, each) for each in (None, look)]
            first, second = (values.interval(0.5, each) for each in behind)
            results.append([values.quantile(0.5), truth, first.low[0], first.high[0], second.low[0], second.high[0]])
        return Trial(*np.array(results).T[..., None])

    def _thinned(self, positions: Integers, units: int) -> tuple[Floats, Integers]:
        """The values taken, in their order, and their groups."""
        unit = positions[self.blocks]
        read = np.flatnonzero(unit < units)
        unit = unit[read]
        by_unit = np.argsort(unit.astype(np.int16), kind="stable")
        sizes = np.bincount(unit, minlength=units)
        place = np.empty(len(unit), dtype=np.int64)
        place[by_unit] = np.arange(len(unit)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
        step = -(-self.population.rows // THINNED_ROWS)
        group = unit % GROUPS
        taken = place % step == group * round(GOLDEN * step) % step
        return self.values[read[taken]], group[taken]


@dataclass(frozen=True, slots=True)
class DistinctTags:
    """`count(distinct tag)` from the tags of each block, numbered from 0."""

    population: Population
    tags: list[Integers]

    @classmethod
    def of(cls, population: Population) -> DistinctTags:
        codes = np.unique(population.tag, return_inverse=True)[1]
        parts = [codes[population.edges[block] : population.edges[block + 1]] for block in range(population.units)]
        return cls(population, [np.unique(part) for part in parts])

    def __call__(self, read: Reading, look: int) -> Trial:
        truth = max(int(each[-1]) for each in self.tags) + 1
        rows = read.group_sums(self.population.unit_rows[:, None].astype(float))[..., 0]
        results = []
        for sample, group_rows in zip(read.samples, rows, strict=True):
            seen = np.zeros((read.groups, truth), dtype=bool)
            for block, group in zip(sample.blocks, sample.group_of, strict=True):
                seen[group, self.tags[block]] = True
            found = distinct(_incidence(seen), float(group_rows.sum() / self.population.rows), group_rows)
            first, second = (found.interval(CONFIDENCE, look=each) for each in (None, look))
            results.append([found.estimate, truth, first.low[0], first.high[0], second.low[0], second.high[0]])
        return Trial(*np.array(results).T[..., None])


def _incidence(seen: Integers) -> Integers:
    """From which tags each group has (groups x tags): how many tags of each group were seen in k groups."""
    times = seen.sum(axis=0)
    return np.stack([np.bincount(times[each], minlength=len(seen) + 1)[1:] for each in seen])
