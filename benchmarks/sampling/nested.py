"""`avg(y) where x > (select avg(x))`: a predicate on an uncertain value, with a threshold of its own in each replicate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.sampling.orders import Reading
from benchmarks.sampling.populations import Floats, Population
from benchmarks.sampling.trials import Replicated, Trial


@dataclass(frozen=True, slots=True)
class Nested:
    """The nested average over a population."""

    population: Population

    def __call__(self, read: Reading, look: int) -> Trial:
        x, y = self.population.x, self.population.y
        rows = read.group_sums(self.population.unit_rows[:, None].astype(float))
        averages = self._averages(read, self._thresholds(read, rows))
        share = rows.sum(axis=1) / self.population.rows
        truth = np.nanmean(y[x > x.mean()])
        return Replicated(averages[:, :1], averages[:, 1:, None], share, rows).trial(truth, read, look)

    def _thresholds(self, read: Reading, rows: Floats) -> Floats:
        """The inner average of all that was read, then without each group (seeds x 1 + groups)."""
        sums = read.group_sums(np.add.reduceat(self.population.x, self.population.edges[:-1])[:, None])
        whole, count = sums.sum(axis=1, keepdims=True), rows.sum(axis=1, keepdims=True)
        return np.concatenate([whole / count, (whole - sums) / (count - rows)], axis=1)[..., 0]

    def _averages(self, read: Reading, thresholds: Floats) -> Floats:
        """The outer averages: each block adds its sum and count above every threshold of the seeds that read it."""
        groups = np.full((len(read.samples), self.population.units), -1)
        for row, sample in zip(groups, read.samples, strict=True):
            row[sample.blocks] = sample.group_of
        above = np.zeros((2, *thresholds.shape))
        for block in range(self.population.units):
            seeds = np.flatnonzero(groups[:, block] >= 0)
            ordered, tails = self._tails(block)
            added = tails[:, np.searchsorted(ordered, thresholds[seeds], side="right")]
            added[:, np.arange(len(seeds)), groups[seeds, block] + 1] = 0
            above[:, seeds] += added
        return np.asarray(above[0] / above[1], dtype=float)

    def _tails(self, block: int) -> tuple[Floats, Floats]:
        """The block's x in order, and sum and count of the y from each of them upwards."""
        part = slice(self.population.edges[block], self.population.edges[block + 1])
        order = np.argsort(self.population.x[part])
        y = self.population.y[part][order]
        present = ~np.isnan(y)
        tails = [np.append(np.cumsum(each[::-1])[::-1], 0) for each in (np.where(present, y, 0), present)]
        return self.population.x[part][order], np.stack(tails)
