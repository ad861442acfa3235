"""Quantiles of values with weights, some of which may be negative: those of a stale relation that a sample corrects.

The corrected number of values up to v, sum of weights of values <= v, is a sum like any other; so the corrected distribution
function F is a ratio of corrected sums, and the quantile is where it reaches p. F may fall where much was taken away, since it is
an estimate; it is made to rise by its running maximum, from one value to the next: what came and went among equal values adds up
first, in whatever order it stands. Intervals are Woodruff's, as in `estimate.quantiles`: replicates tell how
sure the share of values below the estimate is, and F carries that back to values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearly.algebra import special
from nearly.estimate.corrections import FEWEST_CHANGED, Estimates
from nearly.estimate.evidence import Evidence, nothing
from nearly.estimate.intervals import Interval
from nearly.estimate.quantiles import neighbours

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

HALF = 0.5
_NONE = 1e-12
"""A smaller part of all weights is none: weights are sums of doubles."""


@dataclass(frozen=True, slots=True)
class UnitValues:
    """Values in their order, and the unit of each."""

    ordered: Floats
    units: Integers

    @classmethod
    def of(cls, values: Floats, units: Integers) -> UnitValues:
        order = np.lexsort((units, values))  # of equal values by their units, so that the order of rows does not matter
        return cls(values[order], units[order])

    def weighted(self, weights: Floats) -> WeightedValues:
        """With a weight for each unit; values of units that weigh nothing are left out."""
        of_value = weights[self.units]
        there = of_value != 0
        return WeightedValues(self.ordered[there], self.units[there], of_value[there])


@dataclass(frozen=True, slots=True)
class _Steps:
    """Different values, and the rank before the first row that has one, before the last such row, and after it."""

    values: Floats
    before: Floats
    last: Floats
    reached: Floats


@dataclass(frozen=True, slots=True)
class WeightedValues:
    """Values in their order, with the unit and the weight of each."""

    ordered: Floats
    units: Integers
    weights: Floats

    @property
    def is_distribution(self) -> bool:
        """Whether there are values, and more was given to them than taken away."""
        return bool(len(self.ordered) and self.weights.sum() > 0)

    def quantile(self, p: float) -> float:
        """With linear interpolation; for equal weights that of SQL's `percentile`.

        >>> UnitValues.of(np.array([4.0, 1.0, 2.0]), np.array([0, 0, 0])).weighted(np.array([2.0])).quantile(0.75)
        3.0
        """
        if not self.is_distribution:
            return float("nan")
        steps = self._steps
        ranks = np.stack([steps.before, steps.last], axis=1).reshape(-1)
        return float(np.interp(p * ranks[-1], ranks, np.repeat(steps.values, 2)))

    def at(self, share: float) -> float:
        """The least value up to which this share of the weights lies; NaN beyond the values."""
        steps = self._steps
        place = int(np.searchsorted(steps.reached / self.weights.sum(), share - 1e-12))
        return float(steps.values[place]) if place < len(steps.values) else float("nan")

    @property
    def _steps(self) -> _Steps:
        """The distribution function: it steps up at each value by what equal values weigh together, where that is anything."""
        first = np.flatnonzero(np.append(True, self.ordered[1:] != self.ordered[:-1]))
        weight, rows = (np.add.reduceat(each, first) for each in (self.weights, np.sign(self.weights)))
        reached = np.maximum.accumulate(np.cumsum(weight))
        before = np.maximum(np.append(0.0, reached[:-1]), 0.0)
        up = reached - before > _NONE * self.weights.sum()
        last = reached - (reached - before) / np.maximum(rows, 1.0)
        return _Steps(self.ordered[first[up]], before[up], last[up], reached[up])

    def shares(self, value: float, copies: Floats, equal: float = HALF) -> tuple[float, Floats, float]:
        """The logit of the share of values below one, that under the weights of each replicate, and half a value's share.

        Of the values that equal it, a part counts as below.
        """
        below = np.where(self.ordered < value, 1.0, np.where(self.ordered == value, equal, 0.0))
        units = copies.shape[1]
        sums, counts = np.bincount(self.units, below, units), np.bincount(self.units, minlength=units)
        edge = 0.5 / max(len(self.ordered), 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (copies @ sums) / (copies @ counts)
        whole = float((self.weights * below).sum() / self.weights.sum())
        return float(special.logit(np.clip(whole, edge, 1 - edge))), special.logit(np.clip(found, edge, 1 - edge)), edge

    def estimates(self, p: float, copies: Floats, equal: float = HALF) -> Estimates:
        """The logit of the share below the quantile, and its replicates."""
        theta, found, _ = self.shares(self.quantile(p), copies, equal)
        return Estimates(np.array([theta]), found[:, None])

    def _reach(self, p: float, copies: Floats, behind: Evidence, fewest: int) -> tuple[float, float]:
        """How far below and above that of the sample the logit of the share below the quantile may be; NaN where nothing tells.

        Where many values equal the quantile, the share below them is sure in another way than that up to them: what is less sure
        counts.
        """
        below, above = [], []
        for equal in (HALF, 0.0, 1.0):
            found = self.estimates(p, copies, equal)
            around = behind.interval(found.theta, found.copies, np.where(found.support >= fewest, found.support, 0))
            below.append(float(found.theta[0] - around.low[0]))
            above.append(float(around.high[0] - found.theta[0]))
        if np.isnan(below[0]) or np.isnan(above[0]):
            return np.nan, np.nan
        return float(np.fmax.reduce(below)), float(np.fmax.reduce(above))

    def interval(self, p: float, copies: Floats, behind: Evidence, fewest: int = 0) -> Interval:
        """The interval of the quantile from weights of replicates (groups x units); none where fewer than `fewest` differ."""
        if not self.is_distribution:
            return nothing()
        below, above = self._reach(p, copies, behind, fewest)
        if np.isnan(below):
            return nothing()
        count = len(self.ordered)
        middle = float(special.logit(np.clip(p, 0.5 / count, 1 - 0.5 / count)))
        first, last = special.expit(middle - above), special.expit(middle + below)
        low = self.at(first) if first * count > 0.5 else np.nan
        high = self.at(last + 1e-9) if last * count < count - 0.5 else np.nan
        if low == high:
            low, high = neighbours(self.ordered, low)
        return Interval(np.array([low]), np.array([high]), np.array([np.nan]))


@dataclass(frozen=True, slots=True)
class QuantileWeights:
    """Weights of the units for the point and for replicates (groups x units), of the direct and of the corrected estimate."""

    direct: Floats
    direct_copies: Floats
    corrected: Floats
    corrected_copies: Floats


def corrected_quantile(
    values: UnitValues, p: float, weights: QuantileWeights, behind: Evidence, method: str
) -> tuple[float, Interval]:
    """A quantile and its interval: the direct one, the corrected one, or, as `auto`, the one whose share below varies less.

    Where corrections take away all there is, only the direct one is left. A correction that rests on few groups has the direct
    one's interval, made long enough for its value.
    """
    direct, corrected = values.weighted(weights.direct), values.weighted(weights.corrected)
    own = direct.interval(p, weights.direct_copies, behind)
    if method == "aqp" or not corrected.is_distribution:
        return direct.quantile(p), own
    if method == "auto" and direct.is_distribution:
        spreads = [
            float((each.estimates(p, copies).deviations ** 2).sum())
            for each, copies in ((direct, weights.direct_copies), (corrected, weights.corrected_copies))
        ]
        if spreads[0] < spreads[1]:
            return direct.quantile(p), own
    theta = corrected.quantile(p)
    found = corrected.interval(p, weights.corrected_copies, behind, FEWEST_CHANGED)
    if found.withheld[0] and not own.withheld[0]:
        found = Interval(np.fmin(own.low, theta), np.fmax(own.high, theta), own.error)
    return theta, found
