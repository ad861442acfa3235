"""`count(distinct x)` before everything is read: the keys seen, and those that can be expected in the rest.

Keys that were not seen are like those that hardly were. So the model of `incidence` is fitted to the keys seen in 1 to 4 groups
alone, where it has to hold least, and extended to k = 0. With f1 keys seen in one of the m groups read, of M groups in all,

    unseen = f1 (beta + m - 1) / (m alpha) * (1 - B(alpha, beta + M) / B(alpha, beta + m)).

Replicates leave one group out. Each would need a fit of its own, so they take one Newton step from the fit of all groups, which is
the usual first-order jackknife of a likelihood estimate.

How many keys were never seen is not in the data without a model. So the interval adds to the sampling error a doubt: the distance
from estimates that rest on other assumptions. It is therefore wide, and covers more often than it promises.

References: Efron and Thisted 1976, How many words did Shakespeare know; Chao and Lin 2012, Nonparametric lower bounds for species
richness under sampling without replacement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln

from nearly.errors import SchemaError
from nearly.estimate.incidence import Floats, Incidence, fit, most_likely, newton_steps
from nearly.estimate.intervals import Interval, anytime, interval

NEAR = 4
"""Keys seen in at most so many groups tell about those seen in none."""
_FEWEST_PAIRS = 3.0
"""When no key was seen twice, so many still may have been expected: exp(-3) is 5 %."""


@dataclass(frozen=True, slots=True)
class Distinct:
    """The estimated number of keys, a replicate of it for each group, the doubt about the model, and that of all keys' growth."""

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
    without = (counts - table + np.concatenate([table[:, 1:], np.zeros((groups, 1))], axis=1))[:, : groups - 1]
    estimate, replicates = _estimates(counts, without, groups / share_read)
    # One group less shifts all replicates alike; only their spread is an error.
    centred = replicates - replicates.mean() + estimate
    doubt = max(abs(estimate - other) for other in (model.estimated, lower_estimate(counts, share_read)))
    return Distinct(estimate, centred, doubt, share_read, model)


def lower_estimate(frequencies: ArrayLike, share_read: float) -> float:
    """Chao and Lin's number of keys: D + f1^2 / (2 f2 m / (m - 1) + f1 t / (1 - t)), with f2 not taken below 3.

    It assumes that all keys are alike; when they are not it is too low in expectation.

    >>> lower_estimate([0, 0, 8], 0.5), round(lower_estimate([10, 5, 0], 0.5))
    (8.0, 19)
    """
    counts = np.asarray(frequencies, dtype=float)
    groups, once, seen = len(counts), float(counts[0]), float(counts.sum())
    if once == 0 or share_read >= 1:
        return seen
    twice = max(float(counts[1]) if groups > 1 else 0.0, _FEWEST_PAIRS)
    return seen + once**2 / (2 * twice * groups / max(groups - 1, 1) + once * share_read / (1 - share_read))


def _estimates(counts: Floats, without: Floats, population: float) -> tuple[float, Floats]:
    """The number of keys from all groups, and from all but one for each row of `without`."""
    groups, seen = len(counts), without.sum(axis=1)
    if counts[0] == 0 or population <= groups:
        return float(counts.sum()), seen
    place = most_likely(counts, groups, min(NEAR, groups))
    estimate = float(counts.sum() + _unseen(counts[:1], place[None], groups, population)[0])
    if groups < 3:
        return estimate, seen
    places = place + newton_steps(without[:, :NEAR], groups - 1, place)
    return estimate, seen + _unseen(without[:, 0], places, groups - 1, population)


def _unseen(once: Floats, places: Floats, groups: int, population: float) -> Floats:
    """Keys in none of the groups read but in some other, for each number of keys seen once and place of the parameters."""
    alpha, beta = np.exp(places[:, 0]) - 1, np.exp(places[:, 1])
    # At alpha = 0 the quotient has a limit, but its parts have not; close to it they are as good as their expansion.
    alpha = np.where(np.abs(alpha) < 1e-4, 1e-4, alpha)
    small = alpha * (digamma(beta + groups) - digamma(beta + population))
    exact = (
        gammaln(beta + population) + gammaln(alpha + beta + groups) - gammaln(alpha + beta + population) - gammaln(beta + groups)
    )
    share = -np.expm1(np.where(np.abs(alpha) <= 1e-4, small, exact))
    return np.asarray(once * (beta + groups - 1) / (groups * alpha) * share, dtype=float)
