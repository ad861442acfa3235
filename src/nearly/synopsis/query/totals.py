"""Estimates of totals over a query's rows: an exact part from covered nodes and a sampled part from partial leaves.

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
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from nearly.synopsis.query.features import Features, Number, StratumSums, plain, weighted
from nearly.synopsis.structure.rows import Floats
from nearly.synopsis.structure.statistics import product


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
    lack = _variance(stratum.moments, responses, gradient) - _variance(stratum.sampled_moments, responses, gradient)
    residual = ((scatter - explained) * stratum.lift + one_more_row) / stratum.freedom + floor * (extra + abs(extra)) / 2.0
    residual = residual + fuller * (1.0 - fuller * stratum.calibrated) * (lack + abs(lack)) / 2.0
    return stratum.spread * (residual + abs(residual)) / 2.0


def _variance(moments: tuple[Number, ...], responses: tuple[int, ...], gradient: Sequence[float]) -> Number:
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
