"""One statistic over many seeds: estimate, truth, interval and anytime interval, made as a progressive query makes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.sampling.orders import Reading
from benchmarks.sampling.populations import Floats, Integers
from nearly.estimate.intervals import interval

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Trial:
    """Results over seeds (rows) and cells of one answer (columns): the interval and the one that allows stopping at this look."""

    estimate: Floats
    truth: Floats
    low: Floats
    high: Floats
    anytime_low: Floats
    anytime_high: Floats


@dataclass(frozen=True, slots=True)
class Replicated:
    """Estimates and shares read (seeds x cells) with replicates and group rows (seeds x groups x cells).

    `seen_in` is the number of groups with the cell's key (seeds x cells), None for ungrouped cells; `whole` tells that values are
    whole numbers.
    """

    estimate: Floats
    replicates: Floats
    share: Floats
    group_rows: Floats
    seen_in: Integers | None = None
    whole: bool = False

    def trial(self, truth: Floats, read: Reading, look: int) -> Trial:
        """Both intervals of all cells of all seeds at once."""
        shape = self.estimate.shape
        theta, share = self.estimate.ravel(), np.broadcast_to(self.share, shape).ravel()
        copies, rows = (
            np.moveaxis(np.broadcast_to(each, self.replicates.shape), 1, 0).reshape(read.groups, -1)
            for each in (self.replicates, self.group_rows)
        )
        empty = (theta == 0) & np.all((copies == 0) | np.isnan(copies), axis=0)
        copies = np.where(empty, np.nan, copies)
        seen = None if self.seen_in is None else self.seen_in.ravel()
        first = interval(theta, copies, share, CONFIDENCE, seen_in=seen, units=read.units, group_rows=rows)
        second = interval(theta, copies, share, CONFIDENCE, look=look, seen_in=seen, units=read.units, group_rows=rows)
        low, high, lasting_low, lasting_high = (each.reshape(shape) for each in (first.low, first.high, second.low, second.high))
        if self.whole:
            low, high, lasting_low, lasting_high = np.floor(low), np.ceil(high), np.floor(lasting_low), np.ceil(lasting_high)
        return Trial(self.estimate, np.broadcast_to(truth, shape), low, high, lasting_low, lasting_high)
