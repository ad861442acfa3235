"""Which columns of a view to draw tickets for: those whose test saves most reading, for what it costs in precision.

Any columns give every row the same chance. Fewer columns than the key pass more joins, but rows that are equal in them come and go
together. With K values in the columns that occur mu times on average, with variance sigma^2, the size of the sample has the
variance K m (1 - m) (mu^2 + sigma^2), for fixed rows and shares m. Where a few values have most of the rows, a sample has none of
these mostly, or one that weighs far too much: what it says is far off then, however much it saves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from nearly.plan.expressions import Column
from nearly.plan.nodes import Plan, Scan
from nearly.plan.schema import FindTable
from nearly.rewrite.sample.push_hash import push_hash, sampled_scans

MOST_COLUMNS = 4
"""Of longer keys, only subsets of so few columns are tried, and the whole."""
WORTH_LESS_PRECISION = 1.2
"""A shorter choice must be better than the key by this factor."""
MOST_UNEVEN = 4.0
"""The design effect up to which tickets are drawn for other columns than the key."""

DesignEffect = Callable[[tuple[Column, ...]], float]
"""(mu^2 + sigma^2) / mu^2 of the rows per value of some columns; 1 where all values are equally frequent."""


def sampling_columns(plan: Plan, key: Sequence[Column], find_table: FindTable, effect: DesignEffect) -> tuple[Column, ...]:
    """The columns among the key for which most is saved per loss of precision."""
    whole = tuple(key)
    best, most = whole, saved(plan, whole, find_table)
    for columns in _subsets(whole):
        found = saved(plan, columns, find_table)
        if found > WORTH_LESS_PRECISION * most:
            uneven = effect(columns)
            worth = found / max(uneven, 1.0)
            if uneven <= MOST_UNEVEN and worth > WORTH_LESS_PRECISION * most:
                best, most = columns, worth
    return best


def saved(plan: Plan, columns: tuple[Column, ...], find_table: FindTable) -> float:
    """How many values lie in the scans that the test reaches."""
    return sum(_values(scan, find_table) for scan in sampled_scans(push_hash(plan, columns, 0.5)))


def sample_variance(values: int, mean: float, variance: float, share: float) -> float:
    """The variance of the number of rows in a sample of `values` values that occur `mean` times, with this variance.

    >>> sample_variance(100, 1.0, 0.0, 0.5)
    25.0
    """
    return values * share * (1 - share) * (mean**2 + variance)


def _subsets(key: tuple[Column, ...]) -> list[tuple[Column, ...]]:
    return [each for size in range(1, min(len(key), MOST_COLUMNS + 1)) for each in combinations(key, size)]


def _values(scan: Scan, find_table: FindTable) -> float:
    return float(find_table(scan.table).rows * max(len(scan.fields), 1))
