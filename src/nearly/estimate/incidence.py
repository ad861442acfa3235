"""How keys will grow: in how many groups of rows a key occurs tells how many more rows, and how many more keys, are to come.

A table is seen as M groups of rows of which m were read. A key occurs in K of the M and was seen in k of the m. Its rows grow by
K / k, so what is needed is the distribution of K given k. Keys that occur in few groups are modelled: each occurs in a group with a
probability of its own from a beta distribution (alpha, beta), k is observed only when it is not 0, and

    P(k) ~ C(m, k) B(alpha + k, beta + m - k),   1 <= k <= m / 2,     K - k ~ BetaBinomial(M - m; alpha + k, beta + m - k).

alpha > -1 suffices since k = 0 is never observed. One family then holds keys of one row each (alpha -> -1: nothing grows), power
laws (-1 < alpha < 0) and equally frequent keys (alpha -> infinity). Keys seen in more than half of the groups need no model: they
grow by M / m, as everything does when no key was seen just once.

References: Skellam 1948 (beta-binomial); Efron and Thisted 1976 (unseen keys); Chao, Ma and Yang 1993 (rare keys apart from
frequent ones). The model replaces the shared power t^w of WAKE (Deep OLA), which must hold for all keys at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearly.algebra import special
from nearly.errors import SchemaError

Floats = NDArray[np.float64]

_LOWEST, _HIGHEST = np.array([-8.0, -3.0]), np.array([10.0, 14.0])
"""Where log(alpha + 1) and log(beta) are searched."""
_POINTS, _STEPS = 61, 3
_SPACING, _LONGEST = 0.05, 1.0
"""Distance of the points between which derivatives are taken, and the longest step that their expansion is trusted for."""
_EXACT_TERMS = 256
"""Expectations over K sum the first terms one by one; later ones are taken at geometric steps."""


@dataclass(frozen=True, slots=True)
class Incidence:
    """A fitted model: `seen` keys in `m` of `M` groups, `estimated` keys in all, incidence of rare keys ~ Beta(alpha, beta)."""

    m: int
    M: float
    alpha: float
    beta: float
    seen: float
    estimated: float
    factors: Floats = field(repr=False, compare=False)

    @property
    def unseen(self) -> float:
        """How many keys are estimated to be still unseen."""
        return float(self.estimated - self.seen)

    @property
    def is_settled(self) -> bool:
        """Whether no key was seen just once."""
        return bool(np.isinf(self.alpha))

    def scale(self, k: ArrayLike) -> Floats:
        """By how much the rows and sums of a key seen in `k` groups grow until all is read.

        scale(k) = 1 / (k E[1/K | k]), the harmonic mean of K / k: it keeps relative errors small. A key seen in k groups stands for
        (M / m) / scale(k) keys of the table; these add up to the number of keys, and their scaled sums are unbiased totals.
        """
        groups = np.asarray(k)
        if np.any((groups < 1) | (groups > self.m)):
            raise SchemaError(f"a seen key is in 1 to {self.m} groups")
        return np.asarray(self.factors[groups.astype(int) - 1], dtype=float)


def fit(frequencies: ArrayLike, share_read: float) -> Incidence:
    """The model by maximum likelihood for `frequencies[k - 1]` keys seen in exactly k of m groups, k = 1..m.

    `share_read` is the share of rows read, so that M = m / share_read.

    >>> [round(float(fit([100, 0, 0, 0], 0.25).scale(1)), 2), round(float(fit([0, 0, 0, 9], 0.25).scale(4)), 2)]
    [1.0, 4.0]
    >>> round(fit([100, 0, 0, 0], 0.25).estimated)
    400
    """
    counts = np.asarray(frequencies, dtype=float)
    if counts.ndim != 1 or not len(counts) or np.any(counts < 0) or not np.all(np.isfinite(counts)):
        raise SchemaError("frequencies must be counts: how many keys were seen in 1, 2, ... groups")
    if not 0 < share_read <= 1:
        raise SchemaError(f"the share read must lie in (0, 1], not {share_read}")
    groups = len(counts)
    population = groups / share_read
    if counts[0] == 0 or share_read == 1:
        factors = np.full(groups, population / groups)
        return Incidence(groups, population, np.inf, np.inf, counts.sum(), counts.sum(), factors)
    place = most_likely(counts, groups, rare_limit(groups))
    factors = growth_factors(place, groups, population)
    estimated = float((counts * (population / groups) / factors).sum())
    return Incidence(groups, population, np.exp(place[0]) - 1, np.exp(place[1]), counts.sum(), estimated, factors)


def rare_limit(groups: int) -> int:
    """Keys seen in at most so many of the groups are rare and follow the model."""
    return max(min(2, groups), groups // 2)


def log_likelihoods(groups: int, limit: int, places: Floats) -> Floats:
    """log P(k | 1 <= k <= limit) for each k (rows) at places (log(alpha + 1), log(beta)) of shape ... x 2."""
    k = np.arange(1, limit + 1).reshape(-1, *[1] * (places.ndim - 1))
    alpha, beta = np.exp(places[..., 0]) - 1, np.exp(places[..., 1])
    chances = (
        special.gammaln(groups + 1)
        - special.gammaln(k + 1)
        - special.gammaln(groups - k + 1)
        + special.gammaln(alpha + k)
        + special.gammaln(beta + groups - k)
    )
    return np.asarray(chances - special.logsumexp(chances, axis=0), dtype=float)


def most_likely(counts: Floats, groups: int, limit: int) -> Floats:
    """The place of greatest likelihood of keys seen in 1 to `limit` groups: the best point of a grid, then Newton's steps."""
    rare = counts[:limit]
    places, chances = _grid(groups, limit)
    place = places[np.argmax(rare @ chances)]
    for _ in range(_STEPS):
        place = np.clip(place + newton_steps(rare[None], groups, place)[0], _LOWEST, _HIGHEST)
    return np.asarray(place, dtype=float)


@lru_cache(maxsize=64)
def _grid(groups: int, limit: int) -> tuple[Floats, Floats]:
    """Places all over the search region and the log-likelihoods there, which do not depend on the counts."""
    axes = (np.linspace(low, high, _POINTS) for low, high in zip(_LOWEST, _HIGHEST, strict=True))
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    return places, log_likelihoods(groups, limit, places)


def newton_steps(rare: Floats, groups: int, place: Floats) -> Floats:
    """For each row of frequencies of keys seen in 1, 2, ... groups, the step from `place` towards its own likelihood maximum.

    The likelihood can be flat, with a curvature of any sign. A ridge then keeps the step short; the parameter hardly matters for
    the number of keys there.
    """
    offsets = np.stack(np.meshgrid([-1, 0, 1], [-1, 0, 1], indexing="ij"), axis=-1) * _SPACING
    surface = np.einsum("rk,kij->rij", rare, log_likelihoods(groups, rare.shape[1], place + offsets))
    gradient = np.stack([surface[:, 2, 1] - surface[:, 0, 1], surface[:, 1, 2] - surface[:, 1, 0]], axis=1) / (2 * _SPACING)
    across = (surface[:, 2, 2] - surface[:, 2, 0] - surface[:, 0, 2] + surface[:, 0, 0]) / (4 * _SPACING**2)
    along = surface[:, 2, 1] + surface[:, 0, 1], surface[:, 1, 2] + surface[:, 1, 0]
    first, second = ((each - 2 * surface[:, 1, 1]) / _SPACING**2 for each in along)
    curvature = np.stack([np.stack([first, across], axis=1), np.stack([across, second], axis=1)], axis=1)
    strength, directions = np.linalg.eigh(curvature)
    ridge = 1e-3 * np.abs(strength).max(axis=1, keepdims=True) + 1e-9
    turned = np.einsum("rij,ri->rj", directions, gradient) / (np.abs(strength) + ridge)
    return np.asarray(np.clip(np.einsum("rij,rj->ri", directions, turned), -_LONGEST, _LONGEST), dtype=float)


def growth_factors(place: Floats, groups: int, population: float) -> Floats:
    """scale(k) for k = 1..m; a key seen in more groups never has the smaller total."""
    alpha, beta = np.exp(place[0]) - 1, np.exp(place[1])
    k = np.arange(1, groups + 1)
    rare = k[: rare_limit(groups)]
    totals = k * (population / groups)
    totals[: len(rare)] = 1 / _expected_reciprocal(alpha, beta, rare, groups, round(population - groups))
    return np.maximum.accumulate(totals) / k


def _expected_reciprocal(alpha: float, beta: float, k: NDArray[np.int64], groups: int, further: int) -> Floats:
    """E[1 / (k + X)] for X ~ BetaBinomial(further; alpha + k, beta + m - k), for each k."""
    x, width = _terms(further)
    first, second = (alpha + k)[:, None], (beta + groups - k)[:, None]
    chances = special.gammaln(further + 1) - special.gammaln(x + 1) - special.gammaln(further - x + 1)
    chances = np.exp(chances + special.betaln(first + x, second + further - x) - special.betaln(first, second)) * width
    return np.asarray((chances / (k[:, None] + x)).sum(axis=1) / chances.sum(axis=1), dtype=float)


def _terms(last: int) -> tuple[Floats, Floats]:
    """Values of X from 0 to `last` and how many values each of them stands for."""
    if last <= _EXACT_TERMS:
        x = np.arange(last + 1.0)
    else:
        x = np.unique(np.concatenate([np.arange(_EXACT_TERMS), np.geomspace(_EXACT_TERMS, last, 256).round()]))
    edges = np.concatenate([[-0.5], (x[1:] + x[:-1]) / 2, [last + 0.5]])
    return x, np.diff(edges)
