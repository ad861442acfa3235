"""Intervals from estimated variances, and the moments of several strata put together."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from nearly.errors import SchemaError

Array = npt.NDArray[np.float64]


def check_confidence(confidence: float) -> float:
    """The confidence, when it is a probability strictly between 0 and 1."""
    if not 0 < confidence < 1:
        raise SchemaError(f"confidence={confidence} must lie between 0 and 1")
    return confidence


@lru_cache(maxsize=4096)
def quantile(confidence: float, freedom: int | None = None) -> float:
    """The half-width, in standard errors, of a two-sided interval: Student's t with `freedom` degrees, else the normal.

    >>> round(quantile(0.95), 2), round(quantile(0.95, 10), 2)
    (1.96, 2.23)
    """
    level = 0.5 + check_confidence(confidence) / 2
    return float(ndtri(level) if freedom is None else stdtrit(max(1, freedom), level))


def pooled_freedom(variances: Array, freedoms: Array) -> int:
    """Welch-Satterthwaite: degrees of freedom of a sum of independent estimates, (sum v)^2 / sum(v^2 / f).

    >>> pooled_freedom(np.array([1.0, 1.0]), np.array([10.0, 10.0]))
    20
    """
    total = float(variances.sum())
    if total <= 0:
        return 1 << 30
    return max(1, int(total * total / float((variances * variances / np.maximum(freedoms, 1.0)).sum())))


def merged(parts: Iterable[tuple[float, float, float]]) -> tuple[float, float, float]:
    """Count, mean and sum of squared deviations of a union, from those of its disjoint parts.

    Law: the result does not depend on how the rows were cut into parts (Chan, Golub and LeVeque 1983).

    >>> merged([(2, 1.0, 2.0), (1, 4.0, 0.0)])
    (3, 2.0, 8.0)
    """
    count, mean, squares = 0.0, 0.0, 0.0
    for other_count, other_mean, other_squares in parts:
        if not other_count:
            continue
        total = count + other_count
        shift = other_mean - mean
        mean += shift * other_count / total
        squares += other_squares + shift * shift * count * other_count / total
        count = total
    return count, mean, squares
