"""Aggregates of archived rows that were read only in part, in random order (JanusAQP, section 3.4).

With h of the archive's N rows read, the total of a response y over any set of leaves is estimated by N/h times its sum over the
rows read, with variance N^2 (1 - h/N) / h times the variance of y over all rows read, those outside the set counting as y = 0. At
h = N it is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearly.synopsis.structure.responses import product
from nearly.synopsis.structure.rows import Floats
from nearly.synopsis.structure.statistics import COUNT, ROWS, SQUARES, SUM


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Leaf statistics of the archived rows read so far, how many rows the archive has, and the share that was to be read."""

    statistics: Floats
    archived: int
    goal: float = 0.0

    @property
    def read(self) -> float:
        return float(self.statistics[:, ROWS].sum())

    @property
    def progress(self) -> float:
        return min(1.0, self.read / self.archived) if self.archived else 1.0

    def estimated(self) -> Floats:
        """The statistics of all archived rows, as estimated."""
        return self.statistics * (self.archived / self.read) if self.read else self.statistics * 0.0

    def variance(self, covered: Floats, weights: Floats, means: Floats, responses: tuple[int, ...], gradient: Floats) -> float:
        """Variance of the estimated total of sum(gradient * y): `covered` are the summed statistics of the rows read in covered
        leaves, `weights` the rows read in each partial leaf, of which each stands for the leaf's mean responses."""
        read = self.read
        if read < 2 or self.archived <= read:
            return 0.0
        fourth = 3.0 * covered[SQUARES] ** 2 / max(covered[COUNT], 1.0)
        powers = np.array([covered[ROWS], covered[COUNT], covered[SUM], covered[SQUARES], 0.0, fourth])
        squares = powers[[[product(one, two) for two in responses] for one in responses]]
        combined = means @ gradient
        second = gradient @ squares @ gradient + weights @ combined**2
        first = powers[list(responses)] @ gradient + weights @ combined
        spread = second / read - (first / read) ** 2
        return max(0.0, float(spread * self.archived**2 * (1.0 - read / self.archived) / read))
