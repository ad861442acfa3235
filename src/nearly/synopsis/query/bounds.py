"""Bounds that hold with certainty, from exact leaf aggregates and the sampled rows that are known to exist.

In a partial leaf any subset of the rows may satisfy the query, except that the sampled rows are known to, or not to. With N rows,
n of them sampled and k of these in the query, the count lies in [k, N - (n - k)]; the sum lies between the matching sampled values
plus all negative, or plus all positive, values that were not sampled (PASS, section 2.2.3, for values of any sign).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from nearly.algebra.averages import extreme_average
from nearly.synopsis.query.features import Number, StratumSums, plain
from nearly.synopsis.query.totals import added
from nearly.synopsis.structure.statistics import DELTA, ONE, VALUE

ROUNDING = 2.0**-40
"""Relative slack for the rounding of long sums."""

Bounds = tuple[float, float]


def row_bounds(known: float, pieces: Sequence[StratumSums]) -> Bounds:
    """Bounds of COUNT(*)."""
    low = high = known
    for stratum, sums in pieces:
        matched = added(sums[plain(ONE)])
        low, high = low + matched, high + added(stratum.rows - stratum.size) + matched
    return low, high


def count_bounds(known: float, pieces: Sequence[StratumSums]) -> Bounds:
    """Bounds of the number of rows with a value."""
    low = high = known
    for stratum, sums in pieces:
        matched = added(sums[plain(VALUE)])
        low, high = low + matched, high + added(stratum.count - stratum.sampled_values) + matched
    return low, high


def sum_bounds(known: float, pieces: Sequence[StratumSums], centre: float, slack: float) -> Bounds:
    """Bounds of SUM; `slack` is by how much sums may be off through rounding."""
    low = high = known
    for stratum, sums in pieces:
        matched = added(sums[plain(DELTA)]) + centre * added(sums[plain(VALUE)])
        low, high = low + matched + added(stratum.rest_negative), high + matched + added(stratum.rest_positive)
    return low - slack, high + slack


def average_bounds(total: float, count: float, pieces: Sequence[StratumSums], slack: float) -> Bounds:
    """Bounds of AVG over known rows and an unknown choice from the leaves."""
    rows = _flat([stratum.count - stratum.sampled_values + sums[plain(VALUE)] for stratum, sums in pieces])
    low, high = (
        extreme_average(total, count, [(value, 0.0, more) for value, more in zip(_flat(ends), rows, strict=True)], sign)
        for ends, sign in (([each.stratum.bottom for each in pieces], -1), ([each.stratum.top for each in pieces], 1))
    )
    if low is None or high is None:
        return math.nan, math.nan
    slack = slack / max(count, 1.0) + ROUNDING * max(abs(low), abs(high))
    return low - slack, high + slack


def _flat(numbers: Sequence[Number]) -> list[float]:
    """The numbers of all strata, each of which has one, or one for each of its leaves."""
    flat: list[float] = []
    for each in numbers:
        flat += [each] if isinstance(each, float) else each.tolist()
    return flat


def variance_bounds(low: float, high: float, samples: bool) -> Bounds:
    """Bounds of the variance of at least two values in [low, high]: at most a quarter of the squared range, or half for samples."""
    return 0.0, (high - low) ** 2 / (2.0 if samples else 4.0)
