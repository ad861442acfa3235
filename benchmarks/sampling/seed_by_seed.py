"""Statistics whose estimators take one sample at a time: quantiles and distinct counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.sampling.orders import Reading
from benchmarks.sampling.populations import Floats, Integers, Population
from benchmarks.sampling.trials import CONFIDENCE, Trial
from nearly.estimate.distinct import distinct
from nearly.estimate.quantiles import Summaries, quantiles, summarize


@dataclass(frozen=True, slots=True)
class Median:
    """The median of y from summaries of the units (units x points) and their numbers of values."""

    population: Population
    points: Floats
    counts: Floats

    @classmethod
    def of(cls, population: Population) -> Median:
        parts = [population.y[population.edges[unit] : population.edges[unit + 1]] for unit in range(population.units)]
        filled = [part[~np.isnan(part)] for part in parts]
        return cls(population, np.stack([summarize(part) for part in filled]), np.array([float(len(part)) for part in filled]))

    def __call__(self, read: Reading, look: int) -> Trial:
        truth = float(np.nanmedian(self.population.y))
        results = []
        for units in read.units:
            made = Summaries.of(self.points[units], self.counts[units], read.group_of)
            share = self.population.share_of(units)
            first, second = (quantiles(made, 0.5, share, CONFIDENCE, look=each) for each in (None, look))
            ends = (first.bounds.low, first.bounds.high, second.bounds.low, second.bounds.high)
            results.append(np.concatenate([first.estimate, [truth], *ends]))
        return Trial(*np.stack(results).T[..., None])


@dataclass(frozen=True, slots=True)
class DistinctTags:
    """`count(distinct tag)` from the tags of each unit, numbered from 0."""

    population: Population
    tags: list[Integers]

    @classmethod
    def of(cls, population: Population) -> DistinctTags:
        codes = np.unique(population.tag, return_inverse=True)[1]
        parts = [codes[population.edges[unit] : population.edges[unit + 1]] for unit in range(population.units)]
        return cls(population, [np.unique(part) for part in parts])

    def __call__(self, read: Reading, look: int) -> Trial:
        truth = max(int(each[-1]) for each in self.tags) + 1
        rows = read.group_sums(self.population.unit_rows[:, None].astype(float))[..., 0]
        results = []
        for units, group_rows in zip(read.units, rows, strict=True):
            found = distinct(self._incidence(units, read, truth), self.population.share_of(units), group_rows)
            first, second = (found.interval(CONFIDENCE, look=each) for each in (None, look))
            results.append([found.estimate, truth, first.low[0], first.high[0], second.low[0], second.high[0]])
        return Trial(*np.array(results).T[..., None])

    def _incidence(self, units: Integers, read: Reading, tags: int) -> Integers:
        """How many tags of each group were seen in k groups."""
        seen = np.zeros((read.groups, tags), dtype=bool)
        for unit, group in zip(units, read.group_of, strict=True):
            seen[group, self.tags[unit]] = True
        times = seen.sum(axis=0)
        return np.stack([np.bincount(times[each], minlength=read.groups + 1)[1:] for each in seen])
