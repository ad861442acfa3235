"""`count(distinct x)` before everything is read: the keys seen, each counted for the keys of the table it stands for.

The estimate is the sum of the weights of `incidence`. Its replicates leave one group out; each would need a fit of its own, so
they take one Newton step from the fit of all groups, which is the usual first-order jackknife of a likelihood estimate.

How many keys were never seen is not in the data without a model. So the interval adds to the sampling error a doubt: the distance
from estimates that rest on other assumptions. It is therefore wide, and covers more often than it promises.

References: Chao and Lin 2012, Nonparametric lower bounds for species richness under sampling without replacement; Good and Toulmin
1956, The number of new species; Orlitsky, Suresh, Wu 2016, Optimal prediction of the number of unseen species.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from nearly.errors import SchemaError
from nearly.estimate.incidence import Floats, Incidence, fit, growth_factors, newton_steps, rare_limit
from nearly.estimate.intervals import Interval, anytime, interval

_SPACING = 0.05
"""Distance of the points between which derivatives are taken."""
_FEWEST_PAIRS = 3.0
"""When no key was seen twice, so many still may have been expected: exp(-3) is 5 %."""
_SERIES_FROM = 0.25
"""With a smaller share read, the series estimate is too unstable to cast doubt on anything."""


@dataclass(frozen=True, slots=True)
class Distinct:
    """The estimated number of keys, a replicate of it for each group, the doubt about the model, and the model."""

    estimate: float
    replicates: Floats
    doubt: float
    share_read: float
    model: Incidence

    def interval(self, confidence: float, *, look: int | None = None, units: int | None = None) -> Interval:
        """Estimate -+ (sampling error + doubt), and never fewer keys than were seen; with `look` as `anytime`."""
        theta, copies = np.array([self.estimate]), self.replicates[:, None]
        if look is None:
            found = interval(theta, copies, self.share_read, confidence, units=units)
        else:
            found = anytime(theta, copies, self.share_read, confidence, look=look, units=units)
        return Interval(np.maximum(found.low - self.doubt, self.model.seen), found.high + self.doubt, found.error)


def distinct(incidence: ArrayLike, share_read: float) -> Distinct:
    """Count keys from `incidence[r, k - 1]`: how many keys of group r were seen in exactly k of the m groups.

    Keys seen in k groups are counted in k rows, so the frequencies are f_k = sum_r incidence[r, k - 1] / k; without group r they
    are f_k - incidence[r, k - 1] + incidence[r, k].

    >>> round(distinct([[3, 0], [3, 0]], 0.5).estimate)
    12
    """
    table = np.asarray(incidence, dtype=float)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
        raise SchemaError(f"incidence must be groups x groups (keys of group r seen in k groups), not {table.shape}")
    groups = len(table)
    counts = table.sum(axis=0) / np.arange(1, groups + 1)
    model = fit(counts, share_read)
    without = counts - table + np.concatenate([table[:, 1:], np.zeros((groups, 1))], axis=1)
    replicates = _replicates(model, without[:, : groups - 1], share_read * (groups - 1) / groups)
    # One group less shifts all replicates alike; only their spread is an error.
    centred = replicates - replicates.mean() + model.estimated
    others = [lower_estimate(counts, share_read)] + ([series_estimate(counts, share_read)] if share_read >= _SERIES_FROM else [])
    doubt = max(abs(model.estimated - other) for other in others)
    return Distinct(model.estimated, centred, doubt, share_read, model)


def lower_estimate(frequencies: ArrayLike, share_read: float) -> float:
    """Chao and Lin's number of keys: D + f1^2 / (2 f2 m / (m - 1) + f1 t / (1 - t)), with f2 not taken below 3.

    >>> lower_estimate([0, 0, 8], 0.5), round(lower_estimate([10, 5, 0], 0.5))
    (8.0, 19)
    """
    counts = np.asarray(frequencies, dtype=float)
    groups, once, seen = len(counts), float(counts[0]), float(counts.sum())
    if once == 0 or share_read >= 1:
        return seen
    twice = max(float(counts[1]) if groups > 1 else 0.0, _FEWEST_PAIRS)
    return seen + once**2 / (2 * twice * groups / max(groups - 1, 1) + once * share_read / (1 - share_read))


def series_estimate(frequencies: ArrayLike, share_read: float) -> float:
    """Good and Toulmin's number of keys, D + sum_k (-1)^(k+1) f_k s^k P(L >= k) with s = (1 - t) / t.

    It needs no model. From t = 1/2 on L is infinite; below, the series would explode and is cut at a random length
    L ~ Binomial(log2(n s^2 / (s - 1)) / 2, 2 / (2 + s)) with n the number of incidences.

    >>> round(series_estimate([100, 0], 0.5)), series_estimate([100, 0], 1.0)
    (200, 100.0)
    """
    counts = np.asarray(frequencies, dtype=float)
    k = np.arange(1, len(counts) + 1)
    ahead = (1 - share_read) / share_read
    kept = np.ones(len(counts))
    if ahead > 1:
        length = np.log2(max(float((k * counts).sum()) * ahead**2 / (ahead - 1), 4)) / 2
        kept = stats.binom.sf(k - 1, int(length), 2 / (2 + ahead))
    return float(counts.sum() - (counts * (-ahead) ** k * kept).sum())


def _replicates(model: Incidence, frequencies: Floats, share_read: float) -> Floats:
    """Sums of weights over m - 1 groups, for each row of frequencies."""
    groups = model.m - 1
    if not np.isfinite(model.alpha) or groups < 2:
        return np.asarray(frequencies.sum(axis=1), dtype=float)
    center = np.array([np.log(model.alpha + 1), np.log(model.beta)])
    population = groups / share_read
    steps = newton_steps(frequencies[:, : rare_limit(groups)], groups, center)
    base = population / groups / growth_factors(center, groups, population)
    slopes = np.stack([_slope(center, axis, groups, population) for axis in (0, 1)])
    return np.asarray(frequencies @ base + np.einsum("rk,ak,ra->r", frequencies, slopes, steps), dtype=float)


def _slope(center: Floats, axis: int, groups: int, population: float) -> Floats:
    """The derivative of the weights by one parameter."""
    shift = np.eye(2)[axis] * _SPACING
    above, below = (population / groups / growth_factors(center + sign * shift, groups, population) for sign in (1, -1))
    return np.asarray((above - below) / (2 * _SPACING), dtype=float)
