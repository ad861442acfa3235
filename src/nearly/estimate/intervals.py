"""Confidence intervals from replicates of an answer: Student's t and a correction for skewness on jackknife pseudo-values.

The rows of a table come in units (blocks), read in random order without replacement. The units read are dealt into groups;
replicate r is the answer with group r left out and the other rows weighted up. For any statistic the pseudo-values

    p_r = h_r theta - (h_r - 1) theta_r,      h_r = n / n_r   (rows read / rows of group r)

behave like observations of the statistic, one for each group; for a total N/n * sum(y) they are exactly N * y_r / n_r. With
w_r = n_r / n the standard error is that of a ratio estimator:

    se^2 = (1 - t) * G / (G - 1) * sum_r w_r^2 (p_r - theta)^2,      t = share of rows read.

Assumptions: units are read in random order; the statistic is smooth in the partial sums; enough groups see the cell. Nothing is
assumed about rows in a unit, which may be all alike.

References: Quenouille 1956; Busing, Meijer, van der Leeden 1999 (groups of unlike sizes); Cochran 1977, ch. 6 (ratio estimator);
Hall 1992 (skewness); Babu and Singh 1985, Sugden and Smith 1997 (skewness in finite populations).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from nearly.errors import SchemaError

Floats = NDArray[np.float64]

FEWEST_UNITS = 5
"""With fewer units the spread between them says next to nothing."""
FEWEST_SEEN = 5
"""A cell seen in fewer groups is withheld: most of its spread comes from whether it is seen at all."""
LARGEST_MISSING = 0.25
"""A cell that more than this share of the replicates lacks is withheld."""


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


def interval(
    theta: ArrayLike,
    replicates: ArrayLike,
    share_read: ArrayLike,
    confidence: float,
    *,
    seen_in: ArrayLike | None = None,
    units: int | None = None,
    group_rows: ArrayLike | None = None,
) -> Interval:
    """An interval for each of C cells that covers the final value with probability `confidence`.

    `theta` holds C estimates and `replicates` G x C of them, NaN where a replicate lacks the cell. `share_read` and `group_rows`
    (G, or G x C) may differ from cell to cell. `seen_in` is the number of groups in which the cell's key occurs, `units` the number
    of units read when it is more than G.

    With z = theta's distance from the truth in standard errors and its skewness estimated by that of the pseudo-values, Hall's
    cubic transformation of z is close to Student's t with G - 1 degrees of freedom; the interval inverts it.

    >>> found = interval([50.0], [[52.0], [49.0], [50.0], [48.0], [51.0]], 0.1, 0.95)
    >>> bool(found.low[0] < 50 < found.high[0])
    True
    >>> interval([50.0], [[52.0], [49.0], [50.0], [48.0], [51.0]], 1.0, 0.95).error
    array([0.])
    """
    if not 0 < confidence < 1:
        raise SchemaError(f"confidence must lie between 0 and 1, not {confidence}; 0.95 is usual")
    return _at_level(1 - confidence, _Cells.of(theta, replicates, share_read, group_rows), seen_in, units)


def anytime(
    theta: ArrayLike,
    replicates: ArrayLike,
    share_read: ArrayLike,
    confidence: float,
    *,
    look: int,
    seen_in: ArrayLike | None = None,
    units: int | None = None,
    group_rows: ArrayLike | None = None,
) -> Interval:
    """As `interval`, but all intervals of one query hold together with probability `confidence`, however many are looked at.

    Look k = 1, 2, ... may fail with probability (1 - confidence) / (k (k + 1)). These add up to 1 - confidence, so a user may
    stop at any look for any reason, such as a narrow interval.
    """
    if look < 1:
        raise SchemaError(f"looks are counted from 1, not {look}")
    if not 0 < confidence < 1:
        raise SchemaError(f"confidence must lie between 0 and 1, not {confidence}; 0.95 is usual")
    cells = _Cells.of(theta, replicates, share_read, group_rows)
    return _at_level((1 - confidence) / (look * (look + 1)), cells, seen_in, units)


@dataclass(frozen=True, slots=True)
class _Cells:
    """Checked input: estimates (C), replicates (G x C), shares read (C), and groups' weights n_r / n (G x C)."""

    theta: Floats
    replicates: Floats
    share: Floats
    weights: Floats

    @classmethod
    def of(cls, theta: ArrayLike, replicates: ArrayLike, share_read: ArrayLike, group_rows: ArrayLike | None) -> _Cells:
        estimates, copies = np.asarray(theta, dtype=float), np.asarray(replicates, dtype=float)
        if estimates.ndim != 1 or copies.ndim != 2 or copies.shape[1] != len(estimates):
            raise SchemaError(f"replicates must be groups x cells for {estimates.shape} estimates, not {copies.shape}")
        share = np.broadcast_to(np.asarray(share_read, dtype=float), estimates.shape)
        if np.any((share < 0) | (share > 1) | np.isnan(share)):
            raise SchemaError("the share read must lie between 0 and 1")
        return cls(estimates, copies, share, _weights(group_rows, copies.shape))

    @property
    def groups(self) -> int:
        return len(self.replicates)


def _weights(group_rows: ArrayLike | None, shape: tuple[int, ...]) -> Floats:
    """n_r / n for each group and cell."""
    if group_rows is None:
        return np.full(shape, 1 / max(shape[0], 1))
    rows = np.asarray(group_rows, dtype=float)
    rows = np.broadcast_to(rows[:, None] if rows.ndim == 1 else rows, shape)
    if np.any(~(rows > 0)):
        raise SchemaError("every group needs at least one row; leave empty groups out")
    return np.asarray(rows / rows.sum(axis=0), dtype=float)


def _at_level(failure: float, cells: _Cells, seen_in: ArrayLike | None, units: int | None) -> Interval:
    usable = _usable(cells, seen_in, cells.groups if units is None else units)
    error, skewness = _moments(cells)
    low, high = _bounds(cells, error, skewness, failure)
    complete = cells.share >= 1
    low = np.where(complete, cells.theta, np.where(usable, low, np.nan))
    high = np.where(complete, cells.theta, np.where(usable, high, np.nan))
    return Interval(low, high, np.where(complete, 0.0, error))


def _usable(cells: _Cells, seen_in: ArrayLike | None, units: int) -> NDArray[np.bool_]:
    """Which cells have enough behind them for an interval."""
    present = np.isfinite(cells.replicates)
    enough = present.sum(axis=0) >= max(FEWEST_UNITS, (1 - LARGEST_MISSING) * cells.groups)
    usable = enough & np.isfinite(cells.theta) & (units >= FEWEST_UNITS)
    if seen_in is not None:
        usable &= np.broadcast_to(np.asarray(seen_in), cells.theta.shape) >= FEWEST_SEEN
    return np.asarray(usable, dtype=bool)


def _moments(cells: _Cells) -> tuple[Floats, Floats]:
    """Standard error, and skewness of the estimate if it were one of infinitely many units: gamma / sqrt(G) for equal groups.

    Missing replicates count as average ones.
    """
    weights = np.where(np.isfinite(cells.replicates), cells.weights, np.nan)
    deviations = (1 - weights) * (cells.theta - cells.replicates)
    present = np.maximum(np.isfinite(deviations).sum(axis=0), 2)
    scale = cells.groups / present
    square = np.nansum(deviations**2, axis=0) * scale
    cube = np.nansum(deviations**3, axis=0) * scale
    error = np.sqrt((1 - cells.share) * square * present / (present - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = np.where(square > 0, cube / square**1.5, 0.0)
    return error, skewness


def _bounds(cells: _Cells, error: Floats, skewness: Floats, failure: float) -> tuple[Floats, Floats]:
    quantile = float(stats.t.ppf(1 - failure / 2, max(cells.groups - 1, 1)))
    left = error * _untransformed(quantile, skewness, cells.share)
    right = error * _untransformed(-quantile, skewness, cells.share)
    return cells.theta - left, cells.theta - right


def _untransformed(value: float, skewness: Floats, share: Floats) -> Floats:
    """The studentised deviation T whose cubic transformation has this value.

    g(T) = b0 + T + b1 T^2 + b1^2 T^3 / 3 with b1 = a (2 - t), b0 = a (1 - 2 t), a = skewness / (6 sqrt(1 - t)): the Edgeworth
    expansion of T under sampling without replacement; at t = 0 it is Hall's transformation.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(share < 1, skewness / (6 * np.sqrt(1 - share)), 0.0)
        curve, shift = scale * (2 - share), scale * (1 - 2 * share)
        bent: Any = (np.cbrt(1 + 3 * curve * (value - shift)) - 1) / curve
    return np.where(np.abs(curve) < 1e-9, value - shift, bent)
