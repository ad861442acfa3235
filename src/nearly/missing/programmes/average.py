"""Ranges of AVG, exactly: a fractional programme solved by Dinkelbach's method in exact arithmetic.

The greatest average is the largest r = (S + sum v) / (N + count) over all instances, where S and N are sum and count of the
certain rows. Let F(r) = max over instances of (S + sum v) - r (N + count). F is convex and decreasing, F(r) > 0 exactly when an
instance has an average above r, and F(r) = 0 at the greatest average. From the average of any instance, the instance that reaches
F(r) has a greater average or proves that there is none; every step takes another of finitely many instances, so the method ends,
and it ends at the optimum (W. Dinkelbach, Management Science 13, 1967). F(r) itself is the programme of a sum, with gains v - r.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from nearly.missing.programmes.effects import Effect
from nearly.missing.programmes.problem import End, Stake
from nearly.missing.programmes.sums import count_end

MOST_STEPS = 200


def average_end(stakes: Sequence[Stake], end: str, certain_sum: Fraction, certain_count: int) -> End:
    """The least or greatest average over certain and missing rows together."""
    sign = 1 if end == "high" else -1
    if _has_unlimited_row(stakes, end):
        return End(None, True, stakes, [], [], end)
    best = count_end(stakes, "high")
    ratio = _ratio(best, stakes, sign, certain_sum, certain_count)
    if ratio is None:
        return End(None, best.proven, stakes, best.counts, best.takes, end, exists=False)
    excess, converged = Fraction(0), False
    for _ in range(MOST_STEPS):
        found, above = _step(stakes, end, sign, ratio, certain_sum, certain_count)
        if above is None:
            return _of_endless_rows(stakes, end, sign, certain_sum, certain_count)
        excess = above
        better = _ratio(found, stakes, sign, certain_sum, certain_count)
        if better is None or better <= ratio:
            converged = True
            break
        ratio, best = better, found
    reached = converged and (excess <= 0 or found.proven)
    value = ratio if reached else ratio + excess / max(certain_count, 1)
    gains, units = _prices(best, sign, ratio, certain_count)
    return End(
        sign * value,
        reached and found.proven,
        stakes,
        best.counts,
        best.takes,
        end,
        gains=gains,
        units=units,
        certain=certain_count,
    )


def _step(
    stakes: Sequence[Stake], end: str, sign: int, ratio: Fraction, certain_sum: Fraction, certain_count: int
) -> tuple[End, Fraction | None]:
    """F(r), or a bound on it, and the instance that reaches it; None where F(r) has no limit."""
    excess: Fraction | None = sign * certain_sum - ratio * certain_count
    counts, takes = [], []
    proven = True
    for stake in stakes:
        gains, unit = _gains(stake, sign, ratio)
        taken = [effect.counts and (gain > 0 or not effect.silent) for effect, gain in zip(stake.effects, gains, strict=True)]
        allocation = stake.part.block.best([gain if take else 0 for gain, take in zip(gains, taken, strict=True)])
        excess = None if excess is None or allocation.bound is None else excess + allocation.bound * unit
        proven = proven and allocation.proven and stake.part.is_exact
        counts.append(allocation.counts)
        takes.append(taken)
    return End(None, proven, stakes, counts, takes, end), excess


def _gains(stake: Stake, sign: int, ratio: Fraction) -> tuple[list[int], Fraction]:
    """What each cell's rows exceed the ratio by, `v - r`, as whole multiples of a unit.

    With v = n u / d and r = p / q this is (n u q - p d) / (d q).
    """
    scale, offset = stake.unit.numerator * ratio.denominator, ratio.numerator * stake.unit.denominator
    gains = [sign * _value(effect, sign) * scale - offset if effect.counts else 0 for effect in stake.effects]
    return gains, Fraction(1, stake.unit.denominator * ratio.denominator)


def _value(effect: Effect, sign: int) -> int:
    """The value at the end; a cell without limit holds no row, or the average had no limit either."""
    value = effect.high if sign > 0 else effect.low
    return 0 if value is None else value


def _prices(best: End, sign: int, ratio: Fraction, certain_count: int) -> tuple[list[list[int | None]], list[Fraction]]:
    """What one more row of each cell adds to the average: (v - r) / (N + count), to first order."""
    rows = certain_count
    for counts, takes in zip(best.counts, best.takes, strict=True):
        rows += sum(count for count, take in zip(counts, takes, strict=True) if take)
    gains: list[list[int | None]] = []
    units = []
    for stake, takes in zip(best.stakes, best.takes, strict=True):
        whole, unit = _gains(stake, sign, ratio)
        gains.append([gain if take else 0 for gain, take in zip(whole, takes, strict=True)])
        units.append(unit / rows)
    return gains, units


def _of_endless_rows(stakes: Sequence[Stake], end: str, sign: int, certain_sum: Fraction, certain_count: int) -> End:
    """Rows without a limit on their number draw the average to their value: no average exceeds the most extreme value of all."""
    values = [sign * _value(effect, sign) * stake.unit for stake in stakes for effect in stake.effects if effect.counts]
    certain = [sign * certain_sum / certain_count] if certain_count else []
    return End(sign * max([*values, *certain]), False, stakes, [], [], end)


def _ratio(found: End, stakes: Sequence[Stake], sign: int, certain_sum: Fraction, certain_count: int) -> Fraction | None:
    """The average of an instance in the sense of `sign`; None for one without values."""
    total, rows = sign * certain_sum, certain_count
    for stake, counts, takes in zip(stakes, found.counts, found.takes, strict=True):
        part = 0
        for effect, count, take in zip(stake.effects, counts, takes, strict=True):
            if count and take:
                part += count * sign * _value(effect, sign)
                rows += count
        total += part * stake.unit
    return None if rows == 0 else total / rows


def _has_unlimited_row(stakes: Sequence[Stake], end: str) -> bool:
    """A row without a limit on its value, in some instance, makes an average without limit."""
    for stake in stakes:
        for place, effect in enumerate(stake.effects):
            unlimited = effect.counts and effect.at(end) is None
            if unlimited and stake.part.block.instance([False] * len(stake.effects), place) is not None:
                return True
    return False
