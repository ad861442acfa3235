"""Aggregates of rows that are all known: exact, unless the rounding of their sums could show.

Sums of whole numbers are exact as long as nothing that was ever added or taken away exceeds 2^53. Other sums are off by some units
of rounding of their turnover: a value of 1e17 that came and went leaves its mark on the small ones that stayed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nearly.synopsis.query.aggregates import ESTIMATED
from nearly.synopsis.query.totals import exact_totals
from nearly.synopsis.structure.rows import Floats
from nearly.synopsis.structure.statistics import COUNT, SIZES, SQUARE_SIZES, SQUARES, SUM, UNEVEN

LARGEST_WHOLE = 2.0**53
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
    whole = not turnover[UNEVEN] and turnover[SIZES] < LARGEST_WHOLE
    return 0.0 if whole else float(turnover[SIZES]) * ROUNDING


def _spread(statistics: Floats, turnover: Floats, divisor: float, *, root: bool) -> KnownValue:
    count, deviation, squares = (float(statistics[each]) for each in (COUNT, SUM, SQUARES))
    if not turnover[UNEVEN] and turnover[SQUARE_SIZES] < LARGEST_WHOLE:
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
