"""Confidence intervals from replicates of an answer: Student's t, with corrections for skewness, on jackknife pseudo-values.

The rows of a table come in units (blocks), read in random order without replacement. The units read are dealt into groups;
replicate r is the answer with group r left out and the other rows weighted up. For any statistic the pseudo-values

    p_r = h_r theta - (h_r - 1) theta_r,      h_r = n / n_r   (rows read / rows of group r)

behave like observations of the statistic, one for each group; for a total N/n * sum(y) they are exactly N * y_r / n_r. With
w_r = n_r / n the standard error is that of a ratio estimator:

    se^2 = (1 - t) * sum_r w_r^2 (p_r - theta)^2 / (1 - w_r),      t = share of rows read.

A large group draws theta to itself; dividing by 1 - w_r makes up for that, exactly where variances fall as rows rise. Where all
groups are of one size it is the usual G / (G - 1).

Assumptions: units are read in random order; the statistic is smooth in the partial sums; enough groups see the cell. Nothing is
assumed about rows in a unit, which may be all alike. Units may be skewed and heavy-tailed: the interval widens with what the
pseudo-values show of it, and with few units by what they cannot show.

References: Quenouille 1956; Busing, Meijer, van der Leeden 1999 (groups of unlike sizes); Cochran 1977, ch. 6 (ratio estimator);
MacKinnon and White 1985 (1 - w_r); Hall 1992 (skewness); Babu and Singh 1985, Sugden and Smith 1997 (skewness in finite
populations); Satterthwaite 1946 (degrees of freedom).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearly.algebra import special
from nearly.algebra.moments import check_confidence
from nearly.errors import SchemaError

Floats = NDArray[np.float64]

FEWEST_UNITS = 5
"""With fewer units the spread between them says next to nothing."""
FEWEST_SEEN = 7
"""A cell seen in fewer groups is withheld: most of its spread comes from whether it is seen at all."""
LARGEST_MISSING = 0.25
"""A cell that more than this share of the replicates lacks is withheld."""
USUAL_KURTOSIS = 1.25
"""Excess kurtosis that units are taken to have at least, however tame the few that were read look."""
HIDDEN_SKEWNESS = 1.35
"""Skewness is taken to be so many times that of the groups: the values that make it are the ones least likely to be read."""
LARGEST_TAMING = 0.75
"""Groups of several units have less of it, but no less than this share: units of one table tend to be heavy-tailed together."""


_ROUNDING = 1e-12
"""Deviations that differ by less than this part of the estimate are equal: rounding makes such differences."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of each cell, NaN where none can be trusted, and its standard error (finite population correction included)."""

    low: Floats
    high: Floats
    error: Floats

    @property
    def withheld(self) -> NDArray[np.bool_]:
        """Cells for which no interval is given."""
        return np.isnan(self.low) | np.isnan(self.high)

    def only(self, chosen: NDArray[np.bool_]) -> Interval:
        """The intervals of some cells, and none of the others."""
        return Interval(*(np.where(chosen, each, np.nan) for each in (self.low, self.high, self.error)))


def joined(intervals: Sequence[Interval]) -> Interval:
    """The intervals of some cells as those of all of them."""
    nothing = np.empty(0)
    low, high, error = (
        np.concatenate([nothing, *(getattr(each, side) for each in intervals)]) for side in ("low", "high", "error")
    )
    return Interval(low, high, error)


def quotient(total: Floats, of_total: Interval, count: Floats, of_count: Interval) -> Interval:
    """The interval of total / count from those of both, whose errors are taken to be independent; counts are positive.

    Each end is as far from the quotient as both errors together take it: the root of the sum of squares of how far each takes it
    alone (Donner and Zou 2012).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = total / count
        ends = total / of_count.low, total / of_count.high
        low = middle - np.hypot(middle - of_total.low / count, middle - np.minimum(*ends))
        high = middle + np.hypot(of_total.high / count - middle, np.maximum(*ends) - middle)
        error = np.hypot(of_total.error / count, middle * of_count.error / count)
    return Interval(low, high, error)


def interval(
    theta: ArrayLike,
    replicates: ArrayLike,
    share_read: ArrayLike,
    confidence: float,
    *,
    look: int | None = None,
    seen_in: ArrayLike | None = None,
    units: int | None = None,
    group_rows: ArrayLike | None = None,
) -> Interval:
    """An interval for each of C cells that covers the final value with probability `confidence`.

    Without `look` it holds at a fixed time. With one, all intervals of a query hold together, however many are looked at: look
    k = 1, 2, ... may fail with probability (1 - confidence) / (k (k + 1)). These add up to 1 - confidence, so a user may stop at
    any look for any reason, such as a narrow interval.

    `theta` holds C estimates and `replicates` G x C of them, NaN where a replicate lacks the cell. `share_read` and `group_rows`
    (G, or G x C) may differ from cell to cell. `seen_in` is the number of groups in which the cell's key occurs, `units` the number
    of units read when it is more than G. Give `seen_in` for ungrouped cells too when rows are filtered: where nothing was selected
    yet, all replicates are equal, and without it an interval without width would come out.

    Each end is the farther one of Student's t and of Hall's transformation, so skewness lengthens the interval on the side where
    the unread values lie and shortens none. See `_degrees_of_freedom` and `_untransformed`.

    >>> found = interval([50.0], [[52.0], [49.0], [50.0], [48.0], [51.0]], 0.1, 0.95)
    >>> bool(found.low[0] < 50 < found.high[0])
    True
    >>> interval([50.0], [[52.0], [49.0], [50.0], [48.0], [51.0]], 1.0, 0.95).error
    array([0.])
    """
    cells = _Cells.of(theta, replicates, share_read, group_rows, units)
    return _at_level(failure_at(confidence, look), cells, seen_in)


def failure_at(confidence: float, look: int | None = None) -> float:
    """With which probability an interval may fail: a single one, or that of look k = 1, 2, ..."""
    failure = 1 - check_confidence(confidence)
    if look is None:
        return failure
    if look < 1:
        raise SchemaError(f"looks are counted from 1, not {look}")
    return failure / (look * (look + 1))


@dataclass(frozen=True, slots=True)
class _Cells:
    """Checked input: estimates (C), replicates (G x C), shares read (C), groups' weights n_r / n (G x C), units read."""

    theta: Floats
    replicates: Floats
    share: Floats
    weights: Floats
    units: int

    @classmethod
    def of(
        cls, theta: ArrayLike, replicates: ArrayLike, share_read: ArrayLike, group_rows: ArrayLike | None, units: int | None
    ) -> _Cells:
        estimates, copies = np.asarray(theta, dtype=float), np.asarray(replicates, dtype=float)
        if estimates.ndim != 1 or copies.ndim != 2 or copies.shape[1] != len(estimates):
            raise SchemaError(f"replicates must be groups x cells for {estimates.shape} estimates, not {copies.shape}")
        share = np.broadcast_to(np.asarray(share_read, dtype=float), estimates.shape)
        if not np.all((share >= 0) & (share <= 1)):
            raise SchemaError("the share read must lie between 0 and 1")
        return cls(estimates, copies, share, _weights(group_rows, copies.shape), max(units or 0, len(copies)))

    @property
    def groups(self) -> int:
        return len(self.replicates)

    def present(self) -> NDArray[np.bool_]:
        """Which replicates have the cell."""
        return np.isfinite(self.replicates) & np.isfinite(self.theta)

    def deviations(self) -> Floats:
        """w_r (p_r - theta) / sqrt(1 - w_r) = sqrt(1 - w_r) (theta - theta_r)."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.sqrt(1 - self.weights) * (self.theta - self.replicates), dtype=float)


def _weights(group_rows: ArrayLike | None, shape: tuple[int, ...]) -> Floats:
    """n_r / n for each group and cell."""
    if group_rows is None:
        return np.full(shape, 1 / max(shape[0], 1))
    rows = np.asarray(group_rows, dtype=float)
    rows = np.broadcast_to(rows[:, None] if rows.ndim == 1 else rows, shape)
    if not np.all(rows > 0):
        raise SchemaError("every group needs at least one row; leave empty groups out")
    return np.asarray(rows / rows.sum(axis=0), dtype=float)


@dataclass(frozen=True, slots=True)
class _Moments:
    """What the deviations show: their standard error, the skewness of the estimate and the degrees of freedom of its error."""

    error: Floats
    skewness: Floats
    freedom: Floats


def _at_level(failure: float, cells: _Cells, seen_in: ArrayLike | None) -> Interval:
    moments = _moments(cells)
    quantile = np.asarray(special.stdtrit(moments.freedom, 1 - failure / 2), dtype=float)
    left = np.maximum(_untransformed(quantile, moments.skewness, cells.share), quantile)
    right = np.minimum(_untransformed(-quantile, moments.skewness, cells.share), -quantile)
    complete, usable = cells.share >= 1, _usable(cells, seen_in)
    low, high = (
        np.where(complete, cells.theta, np.where(usable, cells.theta - moments.error * side, np.nan)) for side in (left, right)
    )
    return Interval(low, high, np.where(complete, 0.0, moments.error))


def _usable(cells: _Cells, seen_in: ArrayLike | None) -> NDArray[np.bool_]:
    """Which cells have enough behind them for an interval."""
    usable = cells.present().sum(axis=0) >= max(FEWEST_UNITS, (1 - LARGEST_MISSING) * cells.groups)
    usable &= _vary(cells)
    if seen_in is not None:
        usable &= np.broadcast_to(np.asarray(seen_in), cells.theta.shape) >= FEWEST_SEEN
    return np.asarray(usable, dtype=bool)


def _vary(cells: _Cells) -> NDArray[np.bool_]:
    """Which cells differ between enough groups to say how much they do.

    Where nearly all deviations are equal, as they are when the same value was met everywhere, the others may be rare rather than
    absent, and a narrow interval would be a guess. What is certain to be constant has certain bounds.
    """
    if not cells.groups:
        return np.zeros(cells.theta.shape, dtype=bool)
    present = cells.present()
    deviations = np.where(present, cells.deviations(), np.nan)
    place = np.maximum(present.sum(axis=0) - 1, 0) // 2
    middle = np.take_along_axis(np.sort(deviations, axis=0), place[None], axis=0)[0]
    noise = np.maximum(1e-9 * np.fmax.reduce(np.abs(deviations), axis=0), _ROUNDING * np.abs(cells.theta))
    differing = (np.abs(deviations - middle) > noise).sum(axis=0)
    return np.asarray(differing >= min(FEWEST_SEEN, cells.groups) - 1, dtype=bool)


def _moments(cells: _Cells) -> _Moments:
    """Moments of the deviations; missing replicates count as average ones.

    The skewness of an average of G observations is gamma / sqrt(G), with the third cumulant free of bias.
    """
    present = cells.present()
    deviations = np.where(present, cells.deviations(), 0.0)
    count = np.maximum(present.sum(axis=0), 3)
    squares = deviations * deviations
    sums = squares.sum(axis=0), (squares * deviations).sum(axis=0), (squares * squares).sum(axis=0)
    square, cube, fourth = (each * cells.groups / count for each in sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        shown = np.where(square > 0, cube / square**1.5, 0.0) * count**2 / ((count - 1) * (count - 2))
        kurtosis = np.where(square > 0, cells.groups * fourth / square**2 - 3, 0.0)
    informative = (np.abs(deviations) > 1e-12 * np.sqrt(square)).sum(axis=0)
    unbiased = (count / (count - 1)) / (max(cells.groups, 2) / max(cells.groups - 1, 1))
    error = np.sqrt((1 - cells.share) * square * unbiased)
    return _Moments(error, HIDDEN_SKEWNESS * shown, _degrees_of_freedom(cells, kurtosis, informative))


def _degrees_of_freedom(cells: _Cells, kurtosis: Floats, informative: NDArray[np.int64]) -> Floats:
    """2 / (2 / (G - 1) + kurtosis / G): those of a chi-square as variable as the variance estimate, at most `informative` - 1.

    A group whose deviation is exactly 0 says nothing, such as one without the key of an average. Groups of unlike sizes have at
    most (sum w^2)^2 / sum w^4 degrees of freedom, those of a weighted sum of squares of averages that vary alike (Satterthwaite).
    """
    groups = max(cells.groups, 2)
    assumed = np.maximum(kurtosis, USUAL_KURTOSIS * max(groups / max(cells.units, groups), LARGEST_TAMING))
    freedom = 2 / (2 / (groups - 1) + assumed / groups)
    squares = cells.weights**2
    alike = squares.sum(axis=0) ** 2 / np.maximum((squares**2).sum(axis=0), 1e-300)
    return np.clip(freedom, 1, np.maximum(np.minimum(informative - 1, alike), 1))


def _untransformed(value: Floats, skewness: Floats, share: Floats) -> Floats:
    """The studentised deviation T whose cubic transformation has this value.

    g(T) = b0 + T + b1 T^2 + b1^2 T^3 / 3 with b1 = a (2 - t), b0 = a (1 - 2 t), a = skewness / (6 sqrt(1 - t)) removes the skewness
    of T under sampling without replacement (its Edgeworth expansion); at t = 0 it is Hall's transformation.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(share < 1, skewness / (6 * np.sqrt(1 - share)), 0.0)
        curve, shift = scale * (2 - share), scale * (1 - 2 * share)
        bent: Any = (np.cbrt(1 + 3 * curve * (value - shift)) - 1) / curve
    return np.where(np.abs(curve) < 1e-9, value - shift, bent)
