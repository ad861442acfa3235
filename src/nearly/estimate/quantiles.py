"""Quantiles of a column from summaries of its units, with intervals by Woodruff's method.

A unit gives the quantiles of its own values at evenly spaced ranks and how many values it has. Laid on top of each other with their
counts as weights these are a weighted sample of the whole column, whose distribution function is off by at most half a step of one
summary. The interval comes from the other direction: the share of values below the estimate is a ratio of sums, so it has
replicates and an interval like any other; the distribution function turns its ends back into values. No density is estimated.

References: Woodruff 1952; Sarndal, Swensson, Wretman 1992, sec. 5.11; Dean and Pagano 2015 (logit intervals for shares).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from nearly.errors import SchemaError
from nearly.estimate.intervals import Floats, Interval, anytime, interval

POINTS = 201
"""The usual number of quantiles in a summary: ranks are then off by at most 0.25 %."""


def summary_ranks(points: int = POINTS) -> Floats:
    """Ranks at which a unit gives its quantiles: the middles of `points` equal parts, so that each stands for one part.

    >>> summary_ranks(2).tolist()
    [0.25, 0.75]
    """
    return (np.arange(points) + 0.5) / points


def summarize(values: ArrayLike, points: int = POINTS) -> Floats:
    """The summary of one unit's values; nulls and NaN have to be left out before."""
    found = np.asarray(values, dtype=float)
    if not len(found):
        raise SchemaError("a unit without values has no quantiles; leave it out")
    return np.asarray(np.quantile(found, summary_ranks(points), method="inverted_cdf"), dtype=float)


@dataclass(frozen=True, slots=True)
class Summaries:
    """Summaries of the units read (units x points), the values each stands for, and each unit's jackknife group 0..G-1."""

    points: Floats
    counts: Floats
    groups: NDArray[np.int64]

    @classmethod
    def of(cls, points: ArrayLike, counts: ArrayLike, groups: ArrayLike) -> Summaries:
        made = cls(np.asarray(points, dtype=float), np.asarray(counts, dtype=float), np.asarray(groups, dtype=np.int64))
        if made.points.ndim != 2 or not len(made.points) == len(made.counts) == len(made.groups):
            shapes = made.points.shape, made.counts.shape, made.groups.shape
            raise SchemaError(f"summaries, counts and groups of shapes {shapes} do not fit together; give one of each for a unit")
        if not len(made.points) or np.any(~(made.counts > 0)) or np.any(made.groups < 0) or np.any(np.isnan(made.points)):
            raise SchemaError("quantiles need units with at least one value each, none of them NaN; leave the other units out")
        return made

    def inverse(self) -> Callable[[Floats], Floats]:
        """The inverse of the merged distribution function, linear between the middles of neighbouring points."""
        values = self.points.ravel()
        order = np.argsort(values, kind="stable")
        weights = np.repeat(self.counts / self.points.shape[1], self.points.shape[1])[order]
        middles = (np.cumsum(weights) - weights / 2) / weights.sum()
        ordered = values[order]
        return lambda ranks: np.asarray(np.interp(ranks, middles, ordered), dtype=float)

    def below(self, values: Floats) -> Floats:
        """How many of each group's values are at most as large (groups x values)."""
        shares = np.stack([np.searchsorted(each, values, side="right") for each in self.points]) / self.points.shape[1]
        return self._by_group(shares * self.counts[:, None])

    def sizes(self) -> Floats:
        """How many values each group has."""
        return self._by_group(self.counts[:, None])[:, 0]

    def _by_group(self, values: Floats) -> Floats:
        _, places = np.unique(self.groups, return_inverse=True)
        sums = np.zeros((places.max() + 1, values.shape[1]))
        np.add.at(sums, places, values)
        return sums


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Estimates at the ranks asked for, and their interval; its `error` is that of the share below, not of the value."""

    estimate: Floats
    bounds: Interval


def quantiles(
    summaries: Summaries, ranks: ArrayLike, share_read: float, confidence: float, *, look: int | None = None
) -> Quantiles:
    """The quantiles at `ranks` of a column, from the units read.

    With p the share of values up to the estimate and [p - a, p + b] its interval, the quantile at rank q lies between the values at
    the ranks whose logits are logit(q) - a / (q (1 - q)) and logit(q) + b / (q (1 - q)): the logit keeps them between 0 and 1.
    Ranks 0 and 1 have no interval before all is read. With `look` the interval is that of `anytime`.

    >>> read = Summaries.of([summarize(range(100 * u, 100 * u + 200)) for u in range(8)], [200] * 8, range(8))
    >>> found = quantiles(read, 0.5, 0.1, 0.95)
    >>> found.estimate.round().tolist(), bool(found.bounds.low[0] < 450 < found.bounds.high[0])
    ([450.0], True)
    """
    asked = np.atleast_1d(np.asarray(ranks, dtype=float))
    if np.any(~((asked >= 0) & (asked <= 1))):
        raise SchemaError("ranks of quantiles lie between 0 and 1")
    value_at = summaries.inverse()
    estimate = value_at(asked)
    below, sizes = summaries.below(estimate), summaries.sizes()
    share = below.sum(axis=0) / sizes.sum()
    copies = (below.sum(axis=0) - below) / (sizes.sum() - sizes)[:, None] if len(sizes) > 1 else np.full(below.shape, np.nan)
    units = len(summaries.counts)
    if look is None:
        found = interval(share, copies, share_read, confidence, units=units, group_rows=sizes)
    else:
        found = anytime(share, copies, share_read, confidence, look=look, units=units, group_rows=sizes)
    if share_read >= 1:
        return Quantiles(estimate, Interval(estimate, estimate, np.zeros(len(estimate))))
    low, high = (value_at(_moved(asked, end - share)) for end in (found.low, found.high))
    return Quantiles(estimate, Interval(low, high, found.error))


def _moved(ranks: Floats, distance: Floats) -> Floats:
    """Ranks moved by a distance on the logit scale; NaN for 0 and 1, which have no logit."""
    inside = (ranks > 0) & (ranks < 1)
    safe = np.where(inside, ranks, 0.5)
    return np.where(inside, expit(logit(safe) + distance / (safe * (1 - safe))), np.nan)
