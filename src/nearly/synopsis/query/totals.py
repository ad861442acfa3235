"""Aggregates from totals: what each function needs, how totals are estimated, and when those of known rows are exact.

A function g follows from totals t with its first derivative: if t are estimates with covariance V, then g(t) has variance close to
g'(t) V g'(t) (the delta method). Totals have an exact part from covered nodes and a sampled part from partial leaves.

In a partial leaf of N rows, n of them sampled, let y be a response of the rows that match and 0 for the others. The leaf's total of
y is estimated by calibration,

    N * (mean(y) + B'(Z - mean(z))),

where z are columns whose leaf means Z are known exactly (the deviation of the value, and the row's position in the leaf), and B is
the regression of y on z in the sample: a weighted sum of y whose weights do not depend on y. Its variance is N^2 (1 - n/N) s^2 / n,
with s^2 the residual variance on n - 1 - len(z) degrees of freedom (Sarndal, Swensson and Wretman, Model Assisted Survey Sampling,
ch. 6); without z it is the estimator of PASS, section 2.3.3. The bias is of order 1/n; leaves with few samples use no z.

The leaf's own variance of the response is known exactly. A sample that lacks the leaf's large values has less of it, and would give
an interval that is too narrow just when its estimate is off: what it lacks is added, in the share in which it would show if a
share p of the rows matched whatever their values: p, or p (1 - p) where weights are calibrated.

When hardly any sampled row matches, or hardly any fails to, the sample's variance is near zero by accident. What a binomial with
two more trials, one of them a success, has more of it is then added (Agresti and Coull 1998), and one more row as the leaf has them
on average counts among the residuals.

Sums of whole numbers are exact as long as nothing that was ever added or taken away exceeds 2^53. Other sums are off by some units
of rounding of their turnover: a value of 1e17 that came and went leaves its mark on the small ones that stayed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from nearly.errors import unknown
from nearly.plan.values.domains import EXACT_IN_DOUBLES
from nearly.synopsis.query.features import Features, Number, StratumSums, plain, weighted
from nearly.synopsis.structure.rows import Floats
from nearly.synopsis.structure.statistics import (
    COUNT,
    DELTA,
    ONE,
    SIZES,
    SQUARE,
    SQUARE_SIZES,
    SQUARES,
    SUM,
    UNEVEN,
    VALUE,
    product,
)

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
_NAMED = re.compile(r"\s*(?P<function>\w+)\s*\(\s*(?P<measure>.+?)\s*\)\s*")


def function_and_measure(aggregate: str) -> tuple[str, str | None]:
    """The one name of an aggregate function, and the measure if it is named.

    >>> function_and_measure("mean(fare)"), function_and_measure("count(*)")
    (('avg', 'fare'), ('rows', None))
    """
    named = _NAMED.fullmatch(str(aggregate))
    if named is None or named["measure"] == "*":
        return canonical(aggregate), None
    return canonical(named["function"]), named["measure"]


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


def added(value: Number) -> float:
    """The sum over the leaves that a number stands for."""
    return value if isinstance(value, float) else float(value.sum())


def totals(exact: list[float], pieces: Sequence[StratumSums], responses: tuple[int, ...]) -> list[float]:
    """Estimated totals of the responses over all matching rows. A leaf without any sample counts half."""
    found = list(exact)
    for stratum, sums in pieces:
        for place, response in enumerate(responses):
            found[place] += added(sums[weighted(response)]) + added(stratum.halves[response])
    return found


def piece_variance(features: Features, piece: StratumSums, responses: tuple[int, ...], gradient: Sequence[float]) -> Number:
    """The variance, in each leaf, of the estimated total of the combined response sum(gradient * y)."""
    stratum, sums = piece
    total = _combined(gradient, [sums[plain(each)] for each in responses])
    terms = _products(responses)
    square = sum(gradient[one] * gradient[two] * sums[column] for one, two, column in terms)
    size = stratum.size + (stratum.size == 0)
    scatter = square - total * total / size
    columns = [features.crosses[each] for each in responses]
    with_z = [
        _combined(gradient, [sums[line[place]] for line in columns]) - total * mean for place, mean in enumerate(stratum.means)
    ]
    explained = sum(a * b * h for a, line in zip(with_z, stratum.inverse, strict=True) for b, h in zip(with_z, line, strict=True))
    share, fuller = sums[0] / size, (sums[0] + 1.0) / (size + 2.0)
    extra = fuller * (1.0 - fuller) - share * (1.0 - share)
    floor = sum(gradient[one] * gradient[two] * stratum.moments[column] for one, two, column in terms)
    one_more_row = fuller * floor
    lack = _variance_of(stratum.moments, responses, gradient) - _variance_of(stratum.sampled_moments, responses, gradient)
    residual = ((scatter - explained) * stratum.lift + one_more_row) / stratum.freedom + floor * (extra + abs(extra)) / 2.0
    residual = residual + fuller * (1.0 - fuller * stratum.calibrated) * (lack + abs(lack)) / 2.0
    return stratum.spread * (residual + abs(residual)) / 2.0


def _variance_of(moments: tuple[Number, ...], responses: tuple[int, ...], gradient: Sequence[float]) -> Number:
    """The variance of the combined response over rows with these moments, all of them matching."""
    square = sum(gradient[one] * gradient[two] * moments[column] for one, two, column in _products(responses))
    mean = _combined(gradient, [moments[each] for each in responses])
    return square - mean * mean


def _combined(gradient: Sequence[float], numbers: Sequence[Number]) -> Number:
    return sum(weight * number for weight, number in zip(gradient, numbers, strict=True))


@cache
def _products(responses: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """All pairs of responses with the column of their product."""
    numbered = tuple(enumerate(responses))
    return tuple((place, other, product(one, two)) for place, one in numbered for other, two in numbered)


def exact_totals(covered: Floats, responses: tuple[int, ...]) -> list[float]:
    """The exact part: totals over covered nodes, from their summed statistics, which begin with those of the responses."""
    found: list[float] = covered.tolist()
    return [found[each] for each in responses]


ROUNDING = 2.0**-42
"""By how much of its turnover a sum may be off."""
NEGLIGIBLE = 1e-9
"""A value that is off by no more than this, relatively, is called exact: it is what another order of adding gives."""


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A value and between which values it lies for sure."""

    value: float
    low: float
    high: float

    @property
    def exact(self) -> bool:
        return self.low == self.high or math.isnan(self.value)


def known_value(aggregate: str, statistics: Floats, turnover: Floats, centre: float) -> KnownValue:
    """The aggregate of rows from their statistics; NaN is SQL's null."""
    found = ESTIMATED[aggregate]
    count = float(statistics[COUNT])
    if aggregate == "sum" and not count:
        return _exactly(math.nan)
    value, _ = found.derive(exact_totals(statistics, found.responses), centre)
    if aggregate in ("rows", "count") or math.isnan(value):
        return _exactly(value)
    if aggregate in ("sum", "avg"):
        slack = rounding(turnover)
        return _within(value, slack if aggregate == "sum" else slack / count)
    lost = 1.0 if aggregate.endswith("samp") else 0.0
    return _spread(statistics, turnover, count - lost, root=aggregate.startswith("std"))


def rounding(turnover: Floats) -> float:
    """By how much a sum may be off."""
    whole = not turnover[UNEVEN] and turnover[SIZES] < EXACT_IN_DOUBLES
    return 0.0 if whole else float(turnover[SIZES]) * ROUNDING


def _spread(statistics: Floats, turnover: Floats, divisor: float, *, root: bool) -> KnownValue:
    count, deviation, squares = (float(statistics[each]) for each in (COUNT, SUM, SQUARES))
    if not turnover[UNEVEN] and turnover[SQUARE_SIZES] < EXACT_IN_DOUBLES:
        variance = (int(squares) * int(count) - int(deviation) ** 2) / (int(count) * int(divisor))
        return _exactly(math.sqrt(variance) if root else variance)
    slack = ROUNDING * (float(turnover[SQUARE_SIZES]) + 2.0 * abs(deviation) / count * float(turnover[SIZES])) / divisor
    variance = max(0.0, (squares - deviation * deviation / count) / divisor)
    found = _within(variance, slack)
    ends = [max(0.0, each) for each in (found.value, found.low, found.high)]
    return KnownValue(*(math.sqrt(each) for each in ends)) if root else KnownValue(*ends)


def _within(value: float, slack: float) -> KnownValue:
    return _exactly(value) if slack <= NEGLIGIBLE * abs(value) else KnownValue(value, value - slack, value + slack)


def _exactly(value: float) -> KnownValue:
    return KnownValue(value, value, value)
