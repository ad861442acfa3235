"""How a relation grows while its inputs are read: rows(t) = c * t^w (WAKE, "A Step Toward Deep Online Aggregation", section 5.2).

w is 1 for what grows with its input, 0 for what is complete at once, and between them for groups that become rarer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, log


@dataclass(frozen=True, slots=True)
class Observation:
    """How many rows there were when a share t of the input, 0 < t <= 1, had been read."""

    progress: float
    rows: float


@dataclass(frozen=True, slots=True)
class Monomial:
    """rows(t) = coefficient * t^exponent."""

    coefficient: float
    exponent: float

    def at(self, progress: float) -> float:
        return float(self.coefficient * progress**self.exponent)


def fit_monomial(observations: Iterable[Observation]) -> Monomial | None:
    """The least squares fit of log rows = log c + w log t; None before two different shares were seen.

    >>> fit_monomial([Observation(0.25, 50), Observation(1.0, 100)])
    Monomial(coefficient=100.0, exponent=0.5)
    """
    points = [(log(each.progress), log(each.rows)) for each in observations if each.progress > 0 and each.rows > 0]
    if len({x for x, _ in points}) < 2:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    exponent = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return Monomial(round(exp(mean_y - exponent * mean_x), 9), exponent)
