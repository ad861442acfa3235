"""Intervals of quantiles: how sure the share of values below the estimate is, carried back to values (Woodruff 1952).

Let F be the distribution function of the values read and q the estimate, F(q) = p. The share of all values below q is a ratio, so
replicates tell an interval for it, here on the scale of logits, where it cannot leave (0, 1):

    l - d <= logit(share) <= l + u    with the confidence asked for,    l = logit(F(q)).

If the logit of the share is larger than that of F(q) by u, the quantile lies where that of F is smaller by u. So the interval is

    [ least v with F(v) >= a,  least v with F(v) > b ],    logit(a) = logit(p) - u,  logit(b) = logit(p) + d.

Replicates of the quantile itself would not do: it is no smooth function of sums. Where values are whole numbers, nearly all
replicates are equal, and the interval would have no width. Values equal to q count half in F(q).

References: Woodruff 1952; Francisco and Fuller 1991; Sitter and Wu 2001 (coverage with few clusters).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearly.algebra import special
from nearly.estimate.evidence import Evidence, nothing
from nearly.estimate.intervals import Interval

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FEWEST = 0.5
"""An end beyond all but half a value is not bounded by what was read."""
_HAIR = 1e-9


@dataclass(frozen=True, slots=True)
class OrderedValues:
    """The values of one cell in their order, and the replicate group of each."""

    ordered: Floats
    groups: Integers

    @classmethod
    def of(cls, values: Floats, groups: Integers) -> OrderedValues:
        order = np.argsort(values, kind="stable")
        return cls(values[order], groups[order])

    def quantile(self, p: float) -> float:
        """With linear interpolation, as SQL's `percentile`.

        >>> OrderedValues.of(np.array([4.0, 1.0, 2.0]), np.array([0, 1, 2])).quantile(0.75)
        3.0
        """
        return float(np.interp(p * (len(self.ordered) - 1), np.arange(len(self.ordered)), self.ordered))

    def interval(self, p: float, read: Evidence) -> Interval:
        """The interval of the quantile. An end that no value read can bound is NaN."""
        count = len(self.ordered)
        if not count:
            return nothing()
        below, above = self._share_below(self.quantile(p), read)
        middle = special.logit(np.clip(p, 0.5 / count, 1 - 0.5 / count))
        first, last = (count * float(special.expit(each)) for each in (middle - above, middle + below))
        low = self.ordered[int(np.ceil(first - _HAIR)) - 1] if first > FEWEST else np.nan
        high = self.ordered[int(np.floor(last + _HAIR))] if last < count - FEWEST else np.nan
        if low == high:
            low, high = neighbours(self.ordered, low)
        return Interval(np.array([low]), np.array([high]), np.array([np.nan]))

    def _share_below(self, value: float, read: Evidence) -> tuple[float, float]:
        """How far below and above that of the values read the logit of the share of all values below this one may be."""
        below = np.where(self.ordered < value, 1.0, np.where(self.ordered == value, 0.5, 0.0))
        groups = len(read.group_rows)
        sums, counts = np.bincount(self.groups, below, groups), np.bincount(self.groups, minlength=groups)
        edge = 0.5 / len(below)
        theta = special.logit(np.clip([below.mean()], edge, 1 - edge))
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(counts < len(below), (below.sum() - sums) / (len(below) - counts), np.nan)
        copies = special.logit(np.clip(shares, edge, 1 - edge))[:, None]
        found = read.interval(theta, copies, np.count_nonzero(counts))
        return (float(theta[0] - found.low[0]), float(found.high[0] - theta[0]))


def neighbours(ordered: Floats, value: float) -> tuple[float, float]:
    """The nearest other values, or the value itself at an end: however common it is, a share of the rest may be enough."""
    first, end = np.searchsorted(ordered, value), np.searchsorted(ordered, value, side="right")
    below = ordered[first - 1] if first else value
    return float(below), float(ordered[end] if end < len(ordered) else value)
