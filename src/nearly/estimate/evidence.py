"""What stands behind estimates, and the one way from it to intervals: enough evidence in, an interval out; too little, none.

An estimate is as good as what contributed to it: the unit groups with rows of *its own* aggregate, not those that were read. Seven
of them are the fewest from which a spread can be told (`intervals.FEWEST_SEEN`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearly.estimate.half_samples import lengthened
from nearly.estimate.intervals import Interval, failure_at, interval

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was read: its share of all rows, the number of units, the rows of each replicate group; and what is asked of intervals.

    With a `look`, intervals stay valid although somebody stops as soon as they are narrow; without one they hold at a fixed time.
    """

    share: float
    units: int
    group_rows: Floats
    confidence: float
    look: int | None = None

    def interval(self, theta: ArrayLike, replicates: ArrayLike, seen_in: ArrayLike) -> Interval:
        """Intervals of cells from their replicates (groups x cells); `seen_in` counts the unit groups behind each cell."""
        share, rows = min(self.share, 1.0), self.group_rows
        return interval(
            theta, replicates, share, self.confidence, look=self.look, seen_in=seen_in, units=self.units, group_rows=rows
        )

    def lengthened(self, found: Interval, theta: Floats, half_samples: Floats) -> Interval:
        """Intervals of cells that jump where a test of estimates changes its outcome."""
        return lengthened(found, theta, half_samples, len(self.group_rows), failure_at(self.confidence, self.look))


def nothing(cells: int = 1) -> Interval:
    """No interval, for some cells."""
    return Interval(*(np.full(cells, np.nan) for _ in range(3)))


def groups_in(masks: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """In how many groups cells were seen, by masks with a bit for each group: the fewest that any of them tells.

    >>> groups_in([np.array([0b111, 0b1]), np.array([0b101, -1])])
    array([2, 1])
    """
    counts = [np.bitwise_count(mask.astype(np.uint64)).astype(np.int64) for mask in masks]
    return np.asarray(np.min(counts, axis=0), dtype=np.int64)
