"""Two estimates of the same cells, one from a clean sample alone and one that corrects what is stale, and the better of both.

With S the stale relation, S' the fresh one, and s, s' samples of both by the same tickets, of share m:

    direct:     q(s') / m                          corrected:     q(S) + (q(s') - q(s)) / m

The corrected one is better where little changed (its variance is that of the differences), the direct one where nearly everything
did. Any mixture b * corrected + (1 - b) * direct is as free of bias as they are; the best b follows from how the replicates of both
vary together:

    b = sum a (a - c) / sum (a - c)^2,     a, c: deviations of the replicates of the direct and the corrected estimate.

So where to change from one to the other is measured, cell by cell, and not assumed. Far from there the better one is taken alone.

Reference: Krishnan et al., Stale View Cleaning, VLDB 2015, sections 5.1 and 5.2; Cochran 1977, ch. 7 (regression estimators).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearly.estimate.evidence import Evidence
from nearly.estimate.intervals import FEWEST_SEEN, Interval

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

CLEARLY = 0.25
"""Where the variance of one estimate is below this part of the other's, it is taken alone."""
FEWEST_CHANGED = 20
"""A correction that rests on fewer groups of tickets has no interval of its own: most of its error is what was not drawn."""
FEWEST_ROWS = 120
"""The same for quotients, such as averages, and fewer rows: where values are skewed, these tell little of its error."""
_ROUNDING = 1e-11


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of C cells, and G x C replicates of them; replicate r leaves the r-th group of tickets out."""

    theta: Floats
    copies: Floats

    @property
    def deviations(self) -> Floats:
        return np.nan_to_num(self.copies - self.theta)

    @property
    def support(self) -> Counts:
        """In how many groups of tickets there is something that others do not have: those that differ from most."""
        known = np.where(np.isfinite(self.copies), self.copies, np.nan)
        if not len(known):
            return np.zeros(len(self.theta), dtype=np.int64)
        ordered = np.sort(known, axis=0)
        present = np.isfinite(known).sum(axis=0)
        middle = np.take_along_axis(ordered, (np.maximum(present - 1, 0) // 2)[None], axis=0)[0]
        noise = _ROUNDING * np.maximum(np.abs(self.theta), np.abs(middle))
        return np.asarray((np.abs(known - middle) > noise).sum(axis=0), dtype=np.int64)

    def of(self, cells: Counts) -> Estimates:
        """Those of some cells."""
        return Estimates(self.theta[cells], self.copies[:, cells])

    def without_rounding(self, size: Floats) -> Estimates:
        """What is left where values of this size cancel, by less than rounding leaves of them, is nothing."""
        noise = _ROUNDING * np.nan_to_num(np.abs(size))
        return Estimates(*(np.where(np.abs(each) <= noise, 0.0, each) for each in (self.theta, self.copies)))

    def where(self, chosen: NDArray[np.bool_], other: Estimates) -> Estimates:
        """These estimates in the chosen cells, and others elsewhere."""
        return Estimates(np.where(chosen, self.theta, other.theta), np.where(chosen, self.copies, other.copies))


def share_of_correction(direct: Estimates, corrected: Estimates) -> Floats:
    """b for each cell: 1 is the corrected estimate, 0 the direct one; one that rests on next to nothing has no share."""
    a, c = direct.deviations, corrected.deviations
    of_direct, of_corrected = (a * a).sum(axis=0), (c * c).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.clip((a * (a - c)).sum(axis=0) / ((a - c) ** 2).sum(axis=0), 0.0, 1.0)
    share = np.where(of_corrected <= CLEARLY * of_direct, 1.0, np.where(of_direct <= CLEARLY * of_corrected, 0.0, best))
    share = np.where(np.isfinite(share) & (direct.support >= FEWEST_SEEN), share, 1.0)
    share = np.where(np.isfinite(direct.theta), share, 1.0)
    return np.where(np.isfinite(corrected.theta), share, 0.0)


def mixed(direct: Estimates, corrected: Estimates, share: Floats) -> Estimates:
    """b * corrected + (1 - b) * direct."""

    def mixture(of_direct: Floats, of_corrected: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            both = share * of_corrected + (1 - share) * of_direct
        return np.where(share == 1, of_corrected, np.where(share == 0, of_direct, both))

    return Estimates(mixture(direct.theta, corrected.theta), mixture(direct.copies, corrected.copies))


def shrunk(corrected: Estimates, merged: Floats, stale: Floats, share_drawn: float) -> Floats:
    """Corrections that rest on few changes, drawn towards the stale value with only what is known put in place.

    A correction of one row weighs it up by 1/m, which is free of bias and far off nearly always. It is multiplied by 1 - V / D^2
    (at least 0), D being the correction and V its variance, as James and Stein shrink averages: a single change is then counted
    once, and one of many rows keeps its weight. Of a cell that has no stale rows, all of the value is a correction.
    """
    groups = max(len(corrected.copies), 2)
    variance = (1 - share_drawn) * (groups - 1) / groups * (corrected.deviations**2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = 1 - variance / (corrected.theta - np.nan_to_num(stale)) ** 2
    kept = np.clip((shares - share_drawn) / (1 - share_drawn), 0.0, 1.0)  # what is known is a share m of the whole correction
    kept = np.where(np.isfinite(kept), kept, 0.0)
    found = merged + kept * (corrected.theta - merged)
    return np.where(np.isfinite(found), found, corrected.theta)


def agreeing(direct: Estimates, corrected: Estimates, behind: Evidence) -> NDArray[np.bool_]:
    """Cells of which both estimates say the same, as far as their replicates tell how far they may be apart.

    They differ by how far the sample's word on the stale relation is from the truth, which is known. Where that is farther than
    the sample itself lets expect, it lacks what the relation is made of, such as the few rows that make most of a spread.
    """
    apart = Estimates(direct.theta - corrected.theta, direct.copies - corrected.copies)
    found = behind.interval(apart.theta, apart.copies, apart.support)
    return np.asarray((found.low <= 0) & (found.high >= 0), dtype=bool)


def interval_of(chosen: Estimates, changed: Counts, direct: Estimates, behind: Evidence, rows: Estimates | None = None) -> Interval:
    """Intervals of estimates that may be corrections which rest on `changed` groups of tickets.

    Where these are too few, the interval is as long as that of the direct estimate, which rests on all rows drawn, and reaches what
    the few changes would say if they were weighed up; where it says nothing either, there is none. It lies around the corrected
    value: by how much the sample's word on the stale relation is off is known, and that is most of the direct estimate's error.
    With `rows`, the direct estimates of how many rows each cell has, estimates are quotients, whose intervals are made those of
    the totals above them.
    """
    enough = np.where(changed >= FEWEST_CHANGED, chosen.support, 0)
    own = behind.interval(chosen.theta, chosen.copies, enough)
    other = behind.interval(direct.theta, direct.copies, direct.support)
    if rows is not None:
        other = _of_totals(other, direct.theta, rows, behind)
    least, most = (reach(chosen.copies, axis=0, initial=np.nan) for reach in (np.fmin.reduce, np.fmax.reduce))
    with np.errstate(invalid="ignore"):
        moved = chosen.theta - direct.theta
    low = np.where(own.withheld, np.fmin(other.low + moved, least), own.low)
    high = np.where(own.withheld, np.fmax(other.high + moved, most), own.high)
    none = own.withheld & other.withheld
    return Interval(np.where(none, np.nan, low), np.where(none, np.nan, high), np.where(own.withheld, other.error, own.error))


def _of_totals(found: Interval, theta: Floats, rows: Estimates, behind: Evidence) -> Interval:
    """Intervals of quotients, made as long as those of the totals over a known number of rows that they are.

    The spread of an average's own values says nothing of changes that were not drawn, which move its total as those of any total.
    That has the squared relative length of the average and of the number of rows together.
    """
    counted = behind.interval(rows.theta, rows.copies, rows.support)
    with np.errstate(divide="ignore", invalid="ignore"):
        below, above = (np.abs(theta * (end / rows.theta - 1)) for end in (counted.low, counted.high))
    return Interval(theta - np.hypot(theta - found.low, below), theta + np.hypot(found.high - theta, above), found.error)
