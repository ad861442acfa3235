"""Ranges of SUM and COUNT: the greatest total gain of an allocation of rows to cells.

A row in a cell adds a value between the cell's least and greatest one, or nothing when it can lie outside the query or be null.
For the upper end every row takes the better of the two; the lower end is the upper end of the negated values. An empty sum counts
as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from nearly.missing.effects import Effect, finite
from nearly.missing.problem import End, Stake, scaled


def sum_end(stakes: Sequence[Stake], end: str) -> End:
    """The least (`low`) or greatest (`high`) sum over the missing rows."""
    return total_end(stakes, end, lambda effect: effect.at(end))


def count_end(stakes: Sequence[Stake], end: str) -> End:
    """The least or greatest number of missing rows that count."""
    return total_end(stakes, end, lambda _: Fraction(1))


def total_end(stakes: Sequence[Stake], end: str, value_of: Any) -> End:
    sign = 1 if end == "high" else -1
    total: Fraction | None = Fraction(0)
    proven = True
    counts, takes, all_gains = [], [], []
    for stake in stakes:
        gains, taken = [], []
        for effect in stake.effects:
            gain, take = _gain(effect, value_of(effect), sign)
            gains.append(gain)
            taken.append(take)
        whole, unit = scaled(gains)
        allocation = stake.part.block.best(whole)
        total = None if total is None or allocation.bound is None else total + allocation.bound * unit
        proven = proven and allocation.proven and stake.part.is_exact
        counts.append(allocation.counts)
        takes.append(taken)
        all_gains.append(gains)
    return End(None if total is None else sign * total, proven, stakes, counts, takes, end, gains=all_gains)


def _gain(effect: Effect, value: Any, sign: int) -> tuple[Fraction | None, bool]:
    """What one row of the cell gains at best, and whether it counts for that; None is without limit."""
    if not effect.counts:
        return Fraction(0), False
    exact = finite(value)
    if exact is None:
        return (None, True) if value is None or value * sign > 0 else (Fraction(0), False)
    gain = exact * sign
    if effect.silent and gain < 0:
        return Fraction(0), False
    return gain, True
