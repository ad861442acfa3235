"""Intervals from estimated variances: how many standard errors they reach."""

from __future__ import annotations

from functools import lru_cache

from nearly.algebra import special
from nearly.errors import SchemaError

MOST_FREEDOM = 1e6
"""Beyond this Student's distribution is the normal one."""


def check_confidence(confidence: float) -> float:
    """The confidence, when it is a probability strictly between 0 and 1."""
    if not 0 < confidence < 1:
        raise SchemaError(f"confidence={confidence} must lie between 0 and 1; 0.95 is usual")
    return confidence


@lru_cache(maxsize=4096)
def quantile(confidence: float, freedom: int | None = None) -> float:
    """The half-width, in standard errors, of a two-sided interval: Student's t with `freedom` degrees, else the normal.

    >>> round(quantile(0.95), 2), round(quantile(0.95, 10), 2)
    (1.96, 2.23)
    """
    level = 0.5 + check_confidence(confidence) / 2
    return float(special.ndtri(level) if freedom is None else special.stdtrit(max(1, freedom), level))


def pooled_freedom(total: float, weighted: float) -> int | None:
    """Degrees of freedom of a sum of independent estimates with variances v on f degrees: (sum v)^2 / sum(v^2 / f).

    `total` is sum v and `weighted` is sum(v^2 / f). None, for the normal distribution, when nothing varies (Welch; Satterthwaite).

    >>> pooled_freedom(2.0, 2 * 1.0 / 10)
    20
    """
    return max(1, int(min(total * total / weighted, MOST_FREEDOM))) if weighted > 0 else None
