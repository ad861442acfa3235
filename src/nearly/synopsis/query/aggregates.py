"""The aggregate functions of a synopsis: which totals each needs, and how it follows from them with its first derivative.

If t are estimated totals with covariance V, then g(t) has variance close to g'(t) V g'(t) (the delta method).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nearly.errors import unknown
from nearly.synopsis.structure.statistics import DELTA, ONE, SQUARE, VALUE

Derived = tuple[float, tuple[float, ...]]
"""A value and its gradient by the totals."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """`derive` takes the totals of the responses and the centre of deviations; NaN stands for SQL's null."""

    name: str
    responses: tuple[int, ...]
    derive: Callable[[Sequence[float], float], Derived]


def _first(totals: Sequence[float], centre: float) -> Derived:
    return totals[0], (1.0,)


def _sum(totals: Sequence[float], centre: float) -> Derived:
    count, deviation = totals
    return deviation + centre * count, (centre, 1.0)


def _average(totals: Sequence[float], centre: float) -> Derived:
    count, deviation = totals
    if count <= 0:
        return math.nan, (0.0, 0.0)
    ratio = deviation / count
    return centre + ratio, (-ratio / count, 1.0 / count)


def _variance(lost: int) -> Callable[[Sequence[float], float], Derived]:
    """Variance with divisor count - lost, never below zero."""

    def derive(totals: Sequence[float], centre: float) -> Derived:
        count, deviation, squares = totals
        divisor = count - lost
        if divisor <= 0:
            return math.nan, (0.0, 0.0, 0.0)
        scatter = squares - deviation * deviation / count
        by_count = (deviation / count) ** 2 / divisor - scatter / divisor**2
        return max(0.0, scatter / divisor), (by_count, -2.0 * deviation / count / divisor, 1.0 / divisor)

    return derive


def _root(derive: Callable[[Sequence[float], float], Derived]) -> Callable[[Sequence[float], float], Derived]:
    def rooted(totals: Sequence[float], centre: float) -> Derived:
        value, gradient = derive(totals, centre)
        root = math.sqrt(value) if value > 0 else value
        return root, tuple(each / (2.0 * root) if root > 0 else 0.0 for each in gradient)

    return rooted


_MOMENTS = (VALUE, DELTA, SQUARE)
_ESTIMATED = (
    Derivation("rows", (ONE,), _first),
    Derivation("count", (VALUE,), _first),
    Derivation("sum", (VALUE, DELTA), _sum),
    Derivation("avg", (VALUE, DELTA), _average),
    Derivation("var_samp", _MOMENTS, _variance(1)),
    Derivation("var_pop", _MOMENTS, _variance(0)),
    Derivation("stddev_samp", _MOMENTS, _root(_variance(1))),
    Derivation("stddev_pop", _MOMENTS, _root(_variance(0))),
)
ESTIMATED = {each.name: each for each in _ESTIMATED}
EXTREME = ("min", "max")
_SYNONYMS = {
    "count(*)": "rows", "mean": "avg", "average": "avg", "var": "var_samp", "variance": "var_samp",
    "std": "stddev_samp", "stddev": "stddev_samp",
}  # fmt: skip
NAMES = (*ESTIMATED, *EXTREME)


def canonical(name: str) -> str:
    """The one name of an aggregate function.

    >>> canonical("STDDEV")
    'stddev_samp'
    """
    lowered = str(name).strip().lower()
    found = _SYNONYMS.get(lowered, lowered)
    if found not in NAMES:
        raise unknown("aggregate", str(name), (*NAMES, *_SYNONYMS))
    return found
