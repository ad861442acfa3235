"""How many keys were not seen: from the keys seen in few groups, by a smooth distribution of how often keys occur.

A table is M groups of rows, of which m were read in random order. A key that occurs in K of the M is seen in k of the m with the
hypergeometric probability P(k | K); that much needs no assumption. How many keys have which K is modelled as

    log N_K = constant + sum_d a_d L_d(log K) + b K + c [K = 1]      (Legendre polynomials L_1 ... L_6)

so that power laws, gamma and nearly equal frequencies, and keys of one row each are all contained. The data alone would leave these
numbers loose, so a penalised likelihood is maximised: the curvature of the polynomials over the octaves of K is taken to be noise
of size `ROUGHNESS`, c of size `ONE_OFF`. Only keys seen in 1 to 4 groups enter, where the model has to hold least. With n of them:

    unseen = n R,   R = sum_K N_K P(0 | K) / sum_K N_K P(1 <= k <= 4 | K).

The ends are those of the profile likelihood: the largest and smallest R that the model can have while its penalised likelihood is
lower than the greatest by at most q^2 / 2. What the data cannot tell is thereby in the interval.

References: Efron 2016, Empirical Bayes deconvolution estimates; Eilers and Marx 1996 (penalty); Nychka 1988 (why a penalised fit
needs no further allowance for its bias); Goodman 1949 (hypergeometric sampling of classes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from nearly.algebra import special

Floats = NDArray[np.float64]

NEAR = 4
"""Keys seen in at most so many groups tell about those seen in none."""
ROUGHNESS = 1.0
"""How much the slope of log N over log2 K is expected to change within an octave."""
ONE_OFF = 1.0
"""By how much log N may jump at K = 1: keys that occur once, such as identifiers, are a kind of their own."""
_DEGREE = 6
_LOOSE = 1e-6
"""A penalty of next to nothing, which makes the others invertible."""
_EXACT = 24
"""Values of K up to here are taken one by one, larger ones at geometric steps."""
_STEPS, _LOOKS = 60, 14
_CLOSE = 0.03
"""An end of the profile may be off by this share of its distance in likelihood."""


class Aim(NamedTuple):
    """A value that log R is drawn to, and how strongly."""

    value: float
    strength: float


class Fitted(NamedTuple):
    """The model at one place: share of keys with each K, chances of k = 1, 2, ... (not normalised), R, penalised log-likelihood."""

    density: Floats
    chances: Floats
    ratio: float
    likelihood: float


class Slopes(NamedTuple):
    """Derivatives with respect to the place: of log P(k), of R, and the information, penalty included."""

    scores: Floats
    ratio: Floats
    information: Floats


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The model of keys seen in 1, 2, ... groups (`counts`): P(k | K) for k = 0 .. m, columns of the polynomials, penalty."""

    counts: Floats
    chances: Floats
    log_widths: Floats
    columns: Floats
    stiffness: Floats

    @classmethod
    def of(cls, counts: Floats, population: float) -> Spectrum:
        groups, near = len(counts), min(NEAR, len(counts))
        # Keys that occur in many more groups were not missed, and cannot be told from each other by those seen in few.
        largest = min(max(1.5 * near / groups, 2 / population), 1.0) * population
        occurrences = np.arange(1.0, np.floor(min(_EXACT, largest)) + 1)
        if largest > _EXACT:
            occurrences = np.unique(np.concatenate([occurrences, np.geomspace(_EXACT, largest, 60)]))
        edges = np.concatenate([[0.5], (occurrences[1:] + occurrences[:-1]) / 2, [largest + 0.5]])
        chances = hypergeometric(groups, population, occurrences)
        octaves = np.log2(max(population, 4.0))
        curves = _polynomials(2 * np.log2(occurrences) / octaves - 1)
        columns = np.column_stack([curves, 10 * occurrences / population, occurrences == 1])
        return cls(counts[:near], chances, np.log(np.diff(edges)), columns, _stiffness(octaves))

    def at(self, place: Floats) -> Fitted:
        logs = self.columns @ place + self.log_widths
        density = np.exp(logs - logs.max())
        density /= density.sum()
        chances = self.chances[1 : len(self.counts) + 1] @ density + 1e-300
        likelihood = self.counts @ np.log(chances / chances.sum()) - place @ self.stiffness @ place / 2
        return Fitted(density, chances, max(float(self.chances[0] @ density / chances.sum()), 1e-300), float(likelihood))

    def slopes(self, state: Fitted) -> Slopes:
        weighted = self.columns * state.density[:, None]
        chances = self.chances[1 : len(self.counts) + 1] @ weighted
        total = state.chances.sum()
        scores = chances / state.chances[:, None] - chances.sum(axis=0) / total
        ratio = (self.chances[0] @ weighted - state.ratio * chances.sum(axis=0)) / total
        expected = self.counts.sum() * state.chances / total
        return Slopes(scores, ratio, (scores * expected[:, None]).T @ scores + self.stiffness)

    def climb(self, place: Floats, aim: Aim | None = None) -> Floats:
        """The place of greatest likelihood less penalty, by damped scoring steps; with an aim, of those with about such an R."""
        state, damping = self.at(place), 1e-3
        best = _goal(state, aim)
        for _ in range(_STEPS):
            slopes = self.slopes(state)
            gradient, curvature = self.counts @ slopes.scores - self.stiffness @ place, slopes.information
            if aim is not None:
                relative = slopes.ratio / state.ratio
                gradient = gradient + aim.strength * (aim.value - np.log(state.ratio)) * relative
                curvature = curvature + aim.strength * np.outer(relative, relative)
            found = best
            while damping < 1e8:
                damped = curvature.copy()
                damped.flat[:: len(damped) + 1] *= 1 + damping
                step = np.linalg.solve(damped, gradient)
                there = self.at(place + step)
                found = _goal(there, aim)
                if found >= best:
                    place, state, damping = place + step, there, max(damping / 10, 1e-9)
                    break
                damping *= 10
            if damping >= 1e8 or found - best < 1e-3:
                break
            best = found
        return place


@dataclass(frozen=True, slots=True)
class Unseen:
    """The fitted model at its greatest likelihood."""

    spectrum: Spectrum
    place: Floats
    state: Fitted
    slopes: Slopes

    @classmethod
    def of(cls, counts: Floats, population: float) -> Unseen:
        """Fit to `counts[k - 1]` keys seen in k groups; some must have been seen in one."""
        spectrum = Spectrum.of(counts, population)
        falling = np.zeros(spectrum.columns.shape[1])
        falling[0] = -1
        place = spectrum.climb(falling)
        state = spectrum.at(place)
        return cls(spectrum, place, state, spectrum.slopes(state))

    @property
    def keys(self) -> float:
        """The keys that the model was fitted to."""
        return float(self.spectrum.counts.sum())

    @property
    def estimate(self) -> float:
        """The number of unseen keys."""
        return self.keys * self.state.ratio

    def influences(self) -> Floats:
        """By how much one more key seen in k = 1 .. 4 groups raises the estimate."""
        moved = np.linalg.solve(self.slopes.information, self.slopes.ratio)
        return np.asarray(self.state.ratio + self.keys * self.slopes.scores @ moved, dtype=float)

    def variances(self) -> tuple[float, float]:
        """The variance of n R that comes from the place: what the sample makes of it, and what the penalty stands for."""
        moved = np.linalg.solve(self.slopes.information, self.slopes.ratio)
        assumed = float(moved @ self.spectrum.stiffness @ moved)
        return self.keys**2 * (float(moved @ self.slopes.ratio) - assumed), self.keys**2 * assumed

    def end(self, quantile: float, sign: int) -> float:
        """The largest (sign 1) or smallest (-1) number of unseen keys whose likelihood is lower by at most quantile^2 / 2."""
        start, place = np.log(self.state.ratio), self.place
        reach = max(quantile * np.sqrt(sum(self.variances())) / self.estimate, 1e-6)
        inside, outside = (0.0, 0.0), (np.inf, np.inf)
        for _ in range(_LOOKS):
            place = self.spectrum.climb(place, Aim(start + sign * reach, 100 * (quantile / reach) ** 2))
            state = self.spectrum.at(place)
            went = sign * (np.log(state.ratio) - start)
            fall = np.sqrt(max(2 * (self.state.likelihood - state.likelihood), 0.0))
            if abs(fall - quantile) < _CLOSE * quantile:
                return self.keys * state.ratio
            inside, outside = (inside, (went, fall)) if fall > quantile else ((went, fall), outside)
            if np.isfinite(outside[0]):
                part = (quantile - inside[1]) / (outside[1] - inside[1])
                reach = inside[0] + (outside[0] - inside[0]) * float(np.clip(part, 0.1, 0.9))
            elif went < reach / 4:
                break  # No place has an R that is farther away.
            else:
                reach *= float(np.clip(1.05 * quantile / max(fall, 0.1), 1.2, 3))
        part = (quantile - inside[1]) / (outside[1] - inside[1]) if np.isfinite(outside[0]) else 0.0
        far = outside[0] if np.isfinite(outside[0]) else inside[0]
        return float(self.estimate * np.exp(sign * (inside[0] + (far - inside[0]) * part)))


def hypergeometric(groups: int, population: float, occurrences: Floats) -> Floats:
    """P(k | K) for k = 0 .. m (rows): a key in K of M groups is seen in k of the m read; M need not be whole.

    >>> hypergeometric(2, 4.0, np.array([1.0, 2.0])).round(3).tolist()
    [[0.5, 0.167], [0.5, 0.667], [0.0, 0.167]]
    """
    k, total = np.arange(groups + 1.0)[:, None], occurrences[None]
    room = population - total - groups + k
    possible = (k <= total) & (room > -1)
    logs = _choose(total, np.minimum(k, total)) - special.gammaln(groups - k + 1)
    logs = logs + special.gammaln(np.maximum(population - total, 0) + 1) - special.gammaln(np.where(possible, room, 0) + 1)
    logs = np.where(possible, logs, -np.inf)
    chances = np.exp(logs - logs.max(axis=0))
    return np.asarray(chances / chances.sum(axis=0), dtype=float)


def _choose(total: Floats, part: Floats) -> Floats:
    return np.asarray(special.gammaln(total + 1) - special.gammaln(part + 1) - special.gammaln(total - part + 1), dtype=float)


def _polynomials(points: Floats) -> Floats:
    """Legendre polynomials 1, 2, ... at points in [-1, 1], as columns."""
    return np.column_stack([legendre.legval(points, [0.0] * degree + [1.0]) for degree in range(1, _DEGREE + 1)])


def _stiffness(octaves: float) -> Floats:
    """The penalty: the integral over the octaves of (second derivative of log N / ROUGHNESS)^2, and (c / ONE_OFF)^2; b is free."""
    points, length = np.linspace(-1, 1, 400), octaves / 399
    bends = np.diff(_polynomials(points), 2, axis=0) / length**2
    stiffness = np.zeros((_DEGREE + 2, _DEGREE + 2))
    stiffness[:_DEGREE, :_DEGREE] = bends.T @ bends * length / ROUGHNESS**2
    stiffness[-1, -1] = 1 / ONE_OFF**2
    return stiffness + _LOOSE * np.eye(_DEGREE + 2)


def _goal(state: Fitted, aim: Aim | None) -> float:
    """What is to be maximised: the likelihood, less the squared distance from the aim."""
    if aim is None:
        return state.likelihood
    return float(state.likelihood - aim.strength / 2 * (np.log(state.ratio) - aim.value) ** 2)
