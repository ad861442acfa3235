"""`count(distinct x)` before everything is read: the keys seen, each counted for the keys of the table it stands for.

The estimate is the sum of the weights of `incidence`. Its replicates leave one group out; each would need a fit of its own, so
they take one Newton step from the fit of all groups, which is the usual first-order jackknife of a likelihood estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nearly.errors import SchemaError
from nearly.estimate.incidence import Floats, Incidence, fit, growth_factors, log_likelihoods, rare_limit

_STEP = 0.05
"""Distance of the points between which derivatives are taken."""
_LONGEST = 1.0
"""A Newton step is cut at this length: on a flat likelihood it would leave the region where the expansion holds."""


@dataclass(frozen=True, slots=True)
class Distinct:
    """The estimated number of keys, one replicate for each group, and the model behind it.

    `lowest` and `highest` frame what the data can tell without the model: keys seen, and keys seen plus f1 (1 - t) / t. In
    expectation the second bounds the number of keys of any table (Charikar et al. 2000).
    """

    estimate: float
    replicates: Floats
    lowest: float
    highest: float
    model: Incidence


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
    highest = model.seen + counts[0] * (1 - share_read) / share_read
    replicates = _replicates(model, without[:, : groups - 1], share_read * (groups - 1) / groups)
    return Distinct(model.estimated, replicates, float(model.seen), float(highest), model)


def _replicates(model: Incidence, frequencies: Floats, share_read: float) -> Floats:
    """Sums of weights over m - 1 groups, for each row of frequencies."""
    groups = model.m - 1
    if not np.isfinite(model.alpha) or groups < 2:
        return np.asarray(frequencies.sum(axis=1), dtype=float)
    center = np.array([np.log(model.alpha + 1), np.log(model.beta)])
    population = groups / share_read
    steps = _newton_steps(frequencies[:, : rare_limit(groups)], groups, center)
    base = population / groups / growth_factors(center, groups, population)
    slopes = np.stack([_slope(center, axis, groups, population) for axis in (0, 1)])
    return np.asarray(frequencies @ base + np.einsum("rk,ak,ra->r", frequencies, slopes, steps), dtype=float)


def _slope(center: Floats, axis: int, groups: int, population: float) -> Floats:
    """The derivative of the weights by one parameter."""
    shift = np.eye(2)[axis] * _STEP
    above, below = (population / groups / growth_factors(center + sign * shift, groups, population) for sign in (1, -1))
    return np.asarray((above - below) / (2 * _STEP), dtype=float)


def _newton_steps(rare: Floats, groups: int, center: Floats) -> Floats:
    """For each row of frequencies the step from the center to its own likelihood maximum."""
    offsets = np.stack(np.meshgrid([-1, 0, 1], [-1, 0, 1], indexing="ij"), axis=-1) * _STEP
    surface = np.einsum("rk,kij->rij", rare, log_likelihoods(groups, center + offsets))
    gradient = np.stack([surface[:, 2, 1] - surface[:, 0, 1], surface[:, 1, 2] - surface[:, 1, 0]], axis=1) / (2 * _STEP)
    across = (surface[:, 2, 2] - surface[:, 2, 0] - surface[:, 0, 2] + surface[:, 0, 0]) / (4 * _STEP**2)
    along = [surface[:, 2, 1] + surface[:, 0, 1], surface[:, 1, 2] + surface[:, 1, 0]]
    first, second = ((each - 2 * surface[:, 1, 1]) / _STEP**2 for each in along)
    curvature = np.stack([np.stack([first, across], axis=1), np.stack([across, second], axis=1)], axis=1)
    # A ridge keeps the step finite where the likelihood is flat: there the parameter hardly matters for the count either.
    ridge = 1e-3 * np.abs(np.trace(curvature, axis1=1, axis2=2)) + 1e-9
    steps = -np.linalg.solve(curvature - ridge[:, None, None] * np.eye(2), gradient[..., None])[..., 0]
    return np.clip(steps, -_LONGEST, _LONGEST)
