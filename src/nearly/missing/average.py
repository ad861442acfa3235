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

from nearly.missing.effects import Effect, finite
from nearly.missing.problem import End, Stake, scaled
from nearly.missing.sums import count_end

MOST_STEPS = 200


def average_end(stakes: Sequence[Stake], end: str, certain_sum: Fraction, certain_count: int) -> End:
    """The least or greatest average over certain and missing rows together."""
    sign = 1 if end == "high" else -1
    if _has_unlimited_row(stakes, end):
        return End(None, True, stakes, [], [], end)
    best = count_end(stakes, "high")
    ratio = _ratio(best, sign, certain_sum, certain_count)
    if ratio is None:
        return End(None, best.proven, stakes, best.counts, best.takes, end, exists=False)
    excess: Fraction = Fraction(0)
    for _ in range(MOST_STEPS):
        found, above = _step(stakes, end, sign, ratio, certain_sum, certain_count)
        if above is None:
            return _of_endless_rows(stakes, end, sign, certain_sum, certain_count)
        excess = above
        better = _ratio(found, sign, certain_sum, certain_count)
        if better is None or better <= ratio:
            break
        ratio, best = better, found
    reached = excess <= 0 or found.proven
    value = ratio if reached else ratio + excess / max(certain_count, 1)
    gains = _gains(best, sign, ratio, certain_count)
    return End(sign * value, reached and found.proven, stakes, best.counts, best.takes, end, gains=gains, certain=certain_count)


def _step(
    stakes: Sequence[Stake], end: str, sign: int, ratio: Fraction, certain_sum: Fraction, certain_count: int
) -> tuple[End, Fraction | None]:
    """F(r), or a bound on it, and the instance that reaches it; None where F(r) has no limit."""
    excess: Fraction | None = sign * certain_sum - ratio * certain_count
    counts, takes = [], []
    proven = True
    for stake in stakes:
        gains = [_gain(effect, sign, ratio) for effect in stake.effects]
        taken = [effect.counts and (gain > 0 or not effect.silent) for effect, gain in zip(stake.effects, gains, strict=True)]
        whole, unit = scaled([gain if take else Fraction(0) for gain, take in zip(gains, taken, strict=True)])
        allocation = stake.part.block.best(whole)
        excess = None if excess is None or allocation.bound is None else excess + allocation.bound * unit
        proven = proven and allocation.proven and stake.part.is_exact
        counts.append(allocation.counts)
        takes.append(taken)
    return End(None, proven, stakes, counts, takes, end), excess


def _gains(best: End, sign: int, ratio: Fraction, certain_count: int) -> list[list[Fraction]]:
    """What one more row of each cell adds to the average: (v - r) / (N + count), to first order."""
    rows = certain_count
    for counts, takes in zip(best.counts, best.takes, strict=True):
        rows += sum(count for count, take in zip(counts, takes, strict=True) if take)
    return [
        [_gain(effect, sign, ratio) / rows if take else Fraction(0) for effect, take in zip(stake.effects, takes, strict=True)]
        for stake, takes in zip(best.stakes, best.takes, strict=True)
    ]


def _of_endless_rows(stakes: Sequence[Stake], end: str, sign: int, certain_sum: Fraction, certain_count: int) -> End:
    """Rows without a limit on their number draw the average to their value: no average exceeds the most extreme value of all."""
    values = [sign * effect.at(end) for stake in stakes for effect in stake.effects if effect.counts]
    certain = [sign * certain_sum / certain_count] if certain_count else []
    return End(sign * max([*values, *certain]), False, stakes, [], [], end)


def _gain(effect: Effect, sign: int, ratio: Fraction) -> Fraction:
    value = finite(effect.at("high" if sign > 0 else "low")) if effect.counts else None
    return Fraction(0) if value is None else sign * value - ratio


def _ratio(found: End, sign: int, certain_sum: Fraction, certain_count: int) -> Fraction | None:
    """The average of an instance in the sense of `sign`; None for one without values."""
    total, count = sign * certain_sum, certain_count
    for stake, counts, takes in zip(found.stakes, found.counts, found.takes, strict=True):
        for effect, rows, take in zip(stake.effects, counts, takes, strict=True):
            if rows and take:
                value = finite(effect.at("high" if sign > 0 else "low"))
                total += rows * sign * (value if value is not None else Fraction(0))
                count += rows
    return None if count == 0 else Fraction(total) / count


def _has_unlimited_row(stakes: Sequence[Stake], end: str) -> bool:
    """A row without a limit on its value, in some instance, makes an average without limit."""
    for stake in stakes:
        for place, effect in enumerate(stake.effects):
            unlimited = effect.counts and finite(effect.at(end)) is None
            if unlimited and stake.part.block.instance([False] * len(stake.effects), place) is not None:
                return True
    return False
