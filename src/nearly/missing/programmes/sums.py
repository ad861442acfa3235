"""Ranges of SUM and COUNT: the greatest total gain of an allocation of rows to cells.

A row in a cell adds a value between the cell's least and greatest one, or nothing when it can lie outside the query or be null.
For the upper end every row takes the better of the two; the lower end is the upper end of the negated values. An empty sum counts
as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from nearly.missing.programmes.effects import Effect
from nearly.missing.programmes.problem import End, Stake

ONE = Fraction(1)


def sum_end(stakes: Sequence[Stake], end: str) -> End:
    """The least (`low`) or greatest (`high`) sum over the missing rows."""
    return total_end(stakes, end, (lambda effect: effect.high) if end == "high" else (lambda effect: effect.low))


def count_end(stakes: Sequence[Stake], end: str) -> End:
    """The least or greatest number of missing rows that count."""
    return total_end([Stake(stake.part, stake.effects) for stake in stakes], end, lambda _: 1)


def total_end(stakes: Sequence[Stake], end: str, value_of: Callable[[Effect], int | None]) -> End:
    """One end of the total of a value of each counting row, in the stakes' units."""
    sign = 1 if end == "high" else -1
    total: Fraction | None = Fraction(0)
    proven = True
    counts, takes, gains = [], [], []
    for stake in stakes:
        gained, taken = _gains(stake.effects, value_of, sign)
        allocation = stake.part.block.best(gained)
        total = None if total is None or allocation.bound is None else total + allocation.bound * stake.unit
        proven = proven and allocation.proven and stake.part.is_exact
        counts.append(allocation.counts)
        takes.append(taken)
        gains.append(gained)
    units = [stake.unit for stake in stakes]
    return End(None if total is None else sign * total, proven, stakes, counts, takes, end, gains=gains, units=units)


def _gains(effects: Sequence[Effect], value_of: Callable[[Effect], int | None], sign: int) -> tuple[list[int | None], list[bool]]:
    """What one row of each cell gains at best (None: without limit), and whether it counts for that."""
    gains: list[int | None] = []
    takes = []
    for effect in effects:
        if not effect.counts:
            gains.append(0)
            takes.append(False)
            continue
        value = value_of(effect)
        gain = None if value is None else value * sign
        loses = effect.silent and gain is not None and gain < 0
        gains.append(0 if loses else gain)
        takes.append(not loses)
    return gains, takes
