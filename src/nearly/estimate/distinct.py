"""`count(distinct x)` before everything is read: the keys seen, and those that can be expected in the rest.

The estimate is D = seen + unseen, with the model of `unseen`. Let c_k be the influence on D of a key seen in k of the m groups, and
c_0 = 0. If keys fell into groups independently, the variance of D would be

    sum_K N_K Var(c_k | K),

with k hypergeometric, which is exact for sampling without replacement. Keys are not independent where they come together, or where
a unit has room for so many rows only. So two things are measured between the groups instead of computed. The part of c_k that is
linear in k is a sum over groups, so its variance is that of any total. For the rest the variance above is multiplied by a design
effect: how much more the jackknife deviations spread than they would for independent keys. (The jackknife variance itself would not
do: for keys seen in k groups it is k times too large, by the inequality of Efron and Stein.)

References: Rao and Scott 1981 (design effects for likelihoods); Efron and Stein 1981; Zou and Donner 2008 (adding up errors whose
intervals are not symmetric).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nearly.algebra import special
from nearly.errors import SchemaError
from nearly.estimate.intervals import FEWEST_UNITS, USUAL_KURTOSIS, Interval, failure_at
from nearly.estimate.unseen import Floats, Unseen


@dataclass(frozen=True, slots=True)
class Errors:
    """The error of D: its variance without that of the model, the design effect on the latter, degrees of freedom of both."""

    variance: float
    design_effect: float
    freedom: float


@dataclass(frozen=True, slots=True)
class Distinct:
    """The estimated number of keys, those seen, the number of groups, and the model of unseen keys (None: no key was seen once).

    `share` is that of the rows read.
    """

    estimate: float
    seen: float
    groups: int
    model: Unseen | None
    errors: Errors
    share: float

    def interval(self, confidence: float, *, look: int | None = None) -> Interval:
        """Whole numbers around the estimate, never fewer keys than were seen; with `look` as `intervals.interval`."""
        failure = failure_at(confidence, look)
        hidden = unseen_at_most(self.share, failure)
        if self.model is None:
            low, high, error = self.seen, self.seen + hidden, 0.0
        elif self.groups < FEWEST_UNITS:
            low, high, error = np.nan, np.nan, np.nan
        else:
            errors, quantile = self.errors, float(special.stdtrit(self.errors.freedom, 1 - failure / 2))
            rest = quantile**2 * errors.variance
            ends = (self.model.end(quantile * errors.design_effect**0.5, sign) - self.model.estimate for sign in (-1, 1))
            below, above = (float(np.sqrt(distance**2 + rest)) for distance in ends)
            low, high = np.floor(max(self.estimate - below, self.seen)), np.ceil(max(self.estimate + above, self.seen + hidden))
            sampled, assumed = self.model.variances()
            error = float(np.sqrt(errors.design_effect * sampled + assumed + errors.variance))
        return Interval(np.array([low]), np.array([high]), np.array([error]))


def unseen_at_most(share_read: float, failure: float) -> float:
    """How many keys of one row each may be unseen at most: r of them are all missed with probability (1 - share)^r.

    That is less than `failure` for more. However common the keys are that were seen, such rare ones may be among the rest.

    >>> unseen_at_most(0.1, 0.05), unseen_at_most(0.96, 0.05), unseen_at_most(1.0, 0.05)
    (28.0, 0.0, 0.0)
    """
    return 0.0 if share_read >= 1 else float(np.floor(np.log(failure) / np.log1p(-share_read)))


def distinct(incidence: ArrayLike, share_read: float, group_rows: ArrayLike | None = None) -> Distinct:
    """Count keys from `incidence[r, k - 1]`: how many keys of group r were seen in exactly k of the m groups.

    Keys seen in k groups are counted in k rows, so the frequencies are f_k = sum_r incidence[r, k - 1] / k. `group_rows` are the
    rows of each group, all alike unless given.

    >>> round(distinct([[3, 0], [3, 0]], 0.5).estimate)
    12
    """
    table = np.asarray(incidence, dtype=float)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
        raise SchemaError(f"incidence must be groups x groups (keys of group r seen in k groups), not {table.shape}")
    if not 0 < share_read <= 1:
        raise SchemaError(f"the share read must lie in (0, 1], not {share_read}")
    groups = len(table)
    rows = np.ones(groups) if group_rows is None else np.asarray(group_rows, dtype=float)
    if rows.shape != (groups,) or not np.all(rows > 0):
        raise SchemaError(f"{groups} groups need as many positive numbers of rows")
    counts = table.sum(axis=0) / np.arange(1, groups + 1)
    seen = float(np.round(counts.sum()))
    if counts[0] == 0 or share_read == 1:
        return Distinct(seen, seen, groups, None, Errors(0.0, 1.0, 1.0), share_read)
    model = Unseen.of(counts, groups / share_read)
    errors = _errors(model, table, share_read, rows / rows.sum())
    return Distinct(seen + model.estimate, seen, groups, model, errors, share_read)


def _errors(model: Unseen, table: Floats, share_read: float, weights: Floats) -> Errors:
    """The variances of D; see above."""
    groups, near = len(table), len(model.spectrum.counts)
    influences = np.where(np.arange(groups + 1) > 0, 1.0, 0.0)
    influences[1 : near + 1] += model.influences()
    variance, slopes = _independent(model, influences)
    linear, expected_linear, kurtosis = _between(table, slopes, weights)
    deviating, expected, _ = _between(table, np.diff(influences), weights)
    effect = max(deviating / expected, 1.0) if expected > 0 else 1.0
    between = (1 - share_read) * linear
    nonlinear = effect * max(variance - (1 - share_read) * expected_linear, 0.0)
    rest = between + max(nonlinear - effect * model.variances()[0], 0.0)
    freedom = 2 / (2 / max(groups - 1, 1) + max(kurtosis, USUAL_KURTOSIS) / groups)
    # Satterthwaite: what is computed is certain. But the design effect is measured between the groups, whether it turns out or not.
    if between > 0:
        freedom *= (rest / between) ** 2
    return Errors(rest, effect, min(freedom, max(groups - 1.0, 1.0)))


def _independent(model: Unseen, influences: Floats) -> tuple[float, Floats]:
    """The variance of D if keys were independent, and how the influence of keys seen in k = 1 .. m groups rises with k."""
    k, near = np.arange(len(influences), dtype=float), len(model.spectrum.counts)
    chances, keys = model.spectrum.chances, model.keys / model.state.chances.sum() * model.state.density
    mean, mean_k = influences @ chances, k @ chances
    variance = np.maximum(influences**2 @ chances - mean**2, 0)
    variance_k = np.maximum(k**2 @ chances - mean_k**2, 0)
    covariance = (influences * k) @ chances - mean * mean_k
    slope = np.where(variance_k > 1e-9, covariance / np.maximum(variance_k, 1e-9), 0)
    slopes, seen = np.zeros(len(k) - 1), chances[1 : near + 1] * keys
    slopes[:near] = seen @ slope / np.maximum(seen.sum(axis=1), 1e-300)
    return float(keys @ variance), slopes


def _between(table: Floats, parts: Floats, weights: Floats) -> tuple[float, float, float]:
    """Of the sum of `parts[k - 1]` over a group's keys: variance between groups, that of independent keys, kurtosis."""
    groups = len(table)
    sums = table @ parts
    deviations = sums - weights * sums.sum()
    square = float((deviations**2).sum())
    kurtosis = groups * float((deviations**4).sum()) / square**2 - 3 if square > 0 else 0.0
    return groups / max(groups - 1, 1) * square, float(table.sum(axis=0) @ parts**2), kurtosis
