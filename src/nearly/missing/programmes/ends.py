"""Both ends of every aggregate over the missing rows, as programmes over the cells.

SUM and COUNT: a row in a cell adds a value between the cell's least and greatest one, or nothing when it can lie outside the query
or be null. For the upper end every row takes the better of the two; the lower end is the upper end of the negated values. An empty
sum counts as 0.

AVG: a fractional programme. The greatest average is the largest r = (S + sum v) / (N + count) over all instances, where S and N are
sum and count of the certain rows. Let F(r) = max over instances of (S + sum v) - r (N + count). F is convex and decreasing,
F(r) > 0 exactly when an instance has an average above r, and F(r) = 0 at the greatest average. From the average of any instance,
the instance that reaches F(r) has a greater average or proves that there is none; every step takes another of finitely many
instances, so the method ends, and it ends at the optimum (W. Dinkelbach, Management Science 13, 1967). F(r) is the programme of a
sum, with gains v - r.

MIN and MAX: the greatest MAX is the greatest value of a cell in which some instance has a row. The least MAX is the least t for
which some instance keeps all rows that count at or below t: a cell is usable when its least value is at most t, or its rows can
be silent. Usable cells only grow with t, so t is found by bisection over the cells' least values. MIN is MAX in the reversed order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from nearly.missing.programmes.effects import Effect
from nearly.missing.programmes.problem import AffectedPart, End

MOST_STEPS = 200


def sum_end(affected: Sequence[AffectedPart], end: str) -> End:
    """The least (`low`) or greatest (`high`) sum over the missing rows."""
    return total_end(affected, end, lambda effect: effect.at(end))


def count_end(affected: Sequence[AffectedPart], end: str) -> End:
    """The least or greatest number of missing rows that count."""
    return total_end([AffectedPart(one.part, one.effects) for one in affected], end, lambda _: 1)


def total_end(affected: Sequence[AffectedPart], end: str, value_of: Callable[[Effect], int | None]) -> End:
    """One end of the total of a value of each counting row, in the parts' units."""
    sign = 1 if end == "high" else -1

    def gains(one: AffectedPart) -> tuple[list[int | None], Fraction]:
        values = [value_of(effect) if effect.counts else 0 for effect in one.effects]
        return [None if value is None else value * sign for value in values], one.unit

    found = _greatest(affected, end, gains)
    return found if found.value is None else replace(found, value=sign * found.value)


def _greatest(
    affected: Sequence[AffectedPart], end: str, gains_of: Callable[[AffectedPart], tuple[list[int | None], Fraction]]
) -> End:
    """The instance with the greatest total gain, and that total; None without limit.

    `gains_of` gives what a row of each cell gains when it counts (None: without limit), and in which unit. Rows that would lose are
    silent where they can be.
    """
    total: Fraction | None = Fraction(0)
    proven = True
    counts, takes, gains, units = [], [], [], []
    for one in affected:
        gained, unit = gains_of(one)
        taken = [
            effect.counts and not (effect.silent and gain is not None and gain < 0)
            for effect, gain in zip(one.effects, gained, strict=True)
        ]
        best = [gain if take else 0 for gain, take in zip(gained, taken, strict=True)]
        allocation = one.part.block.best(best)
        total = None if total is None or allocation.bound is None else total + allocation.bound * unit
        proven = proven and allocation.proven and one.part.is_exact
        counts.append(allocation.counts)
        takes.append(taken)
        gains.append(best)
        units.append(unit)
    return End(total, proven, affected, counts, takes, end, gains=gains, units=units)


def average_end(affected: Sequence[AffectedPart], end: str, certain_sum: Fraction, certain_count: int) -> End:
    """The least or greatest average over certain and missing rows together."""
    sign = 1 if end == "high" else -1
    if _has_unlimited_row(affected, end):
        return End(None, True, affected, [], [], end)
    best = count_end(affected, "high")
    ratio = _ratio(best, affected, sign, certain_sum, certain_count)
    if ratio is None:
        return End(None, best.proven, affected, best.counts, best.takes, end, exists=False)
    excess, converged = Fraction(0), False
    for _ in range(MOST_STEPS):
        found = _greatest(affected, end, partial(_above_ratio, sign=sign, ratio=ratio))
        if found.value is None:
            return _of_endless_rows(affected, end, sign, certain_sum, certain_count)
        excess = found.value + sign * certain_sum - ratio * certain_count
        better = _ratio(found, affected, sign, certain_sum, certain_count)
        if better is None or better <= ratio:
            converged = True
            break
        ratio, best = better, found
    reached = converged and (excess <= 0 or found.proven)
    value = sign * (ratio if reached else ratio + excess / max(certain_count, 1))
    gains, units = _prices(best, sign, ratio, certain_count)
    return End(
        value, reached and found.proven, affected, best.counts, best.takes, end, gains=gains, units=units, certain=certain_count
    )


def _above_ratio(one: AffectedPart, sign: int, ratio: Fraction) -> tuple[list[int | None], Fraction]:
    """What each cell's rows exceed the ratio by, `v - r`, as whole multiples of a unit.

    With v = n u / d and r = p / q this is (n u q - p d) / (d q).
    """
    scale, offset = one.unit.numerator * ratio.denominator, ratio.numerator * one.unit.denominator
    gains: list[int | None] = [sign * _value(effect, sign) * scale - offset if effect.counts else 0 for effect in one.effects]
    return gains, Fraction(1, one.unit.denominator * ratio.denominator)


def _value(effect: Effect, sign: int) -> int:
    """The value at the end; a cell without limit holds no row, or the average had no limit either."""
    return int(effect.at("high" if sign > 0 else "low") or 0)


def _prices(best: End, sign: int, ratio: Fraction, certain_count: int) -> tuple[list[list[int | None]], list[Fraction]]:
    """What one more row of each cell adds to the average: (v - r) / (N + count), to first order."""
    rows = certain_count + best.rows
    gains: list[list[int | None]] = []
    units = []
    for one, takes in zip(best.affected, best.takes, strict=True):
        whole, unit = _above_ratio(one, sign, ratio)
        gains.append([gain if take else 0 for gain, take in zip(whole, takes, strict=True)])
        units.append(unit / rows)
    return gains, units


def _of_endless_rows(affected: Sequence[AffectedPart], end: str, sign: int, certain_sum: Fraction, certain_count: int) -> End:
    """Rows without a limit on their number draw the average to their value: no average exceeds the most extreme value of all."""
    values = [sign * _value(effect, sign) * one.unit for one in affected for effect in one.effects if effect.counts]
    certain = [sign * certain_sum / certain_count] if certain_count else []
    return End(sign * max([*values, *certain]), False, affected, [], [], end)


def _ratio(found: End, affected: Sequence[AffectedPart], sign: int, certain_sum: Fraction, certain_count: int) -> Fraction | None:
    """The average of an instance in the sense of `sign`; None for one without values."""
    total, rows = sign * certain_sum, certain_count + found.rows
    for one, counts, takes in zip(affected, found.counts, found.takes, strict=True):
        values = zip(one.effects, counts, takes, strict=True)
        total += sum(count * sign * _value(effect, sign) for effect, count, take in values if take) * one.unit
    return None if rows == 0 else total / rows


def _has_unlimited_row(affected: Sequence[AffectedPart], end: str) -> bool:
    """A row without a limit on its value, in some instance, makes an average without limit."""
    for one in affected:
        for place, effect in enumerate(one.effects):
            unlimited = effect.counts and effect.at(end) is None
            if unlimited and one.part.block.instance([False] * len(one.effects), place) is not None:
                return True
    return False


def extreme_end(affected: Sequence[AffectedPart], function: str, end: str, *, certain: bool) -> End:
    """One end of MIN or MAX over the missing rows; values are ranks, or numbers for an expression.

    `certain` says that there are certain rows. Then the inner end may be left to them, and `exists` is False where some instance
    has no counting row; without certain rows only instances with a value are considered, and `exists` is False where there are
    none.
    """
    if (function == "max") == (end == "high"):
        return _outer(affected, end)
    return _inner(affected, end) if certain else _inner_of_some(affected, end)


def _outer(affected: Sequence[AffectedPart], end: str) -> End:
    """The most extreme value of any row that some instance has."""
    ranked = _ranked(affected, end)
    unlimited = [each for each in ranked if each[0] is None]
    limited = sorted((each for each in ranked if each[0] is not None), key=lambda each: each[0], reverse=end == "high")
    for value, number, place in unlimited + limited:
        counts = _instance(affected, [[False] * len(one.effects) for one in affected], (number, place))
        if counts is not None:
            takes = [[not effect.silent for effect in one.effects] for one in affected]
            takes[number][place] = True
            return End(value, _is_proven(affected, counts), affected, counts, takes, end)
    return End(None, True, affected, [], [], end, exists=False)


def _inner(affected: Sequence[AffectedPart], end: str) -> End:
    """The least extreme value that the extreme row can have."""
    silent = _within(affected, end, None)
    if silent is not None:
        return End(None, _is_proven(affected, silent), affected, silent, _takes(affected, end, None), end, exists=False)
    candidates = sorted({value for value, _, _ in _ranked(affected, end) if value is not None}, reverse=end == "high")
    place = bisect_left(candidates, True, key=lambda limit: _within(affected, end, limit) is not None)
    counts = _within(affected, end, candidates[place]) if place < len(candidates) else None
    if counts is None:
        return End(None, False, affected, [], [], end)
    return End(candidates[place], _is_proven(affected, counts), affected, counts, _takes(affected, end, candidates[place]), end)


def _inner_of_some(affected: Sequence[AffectedPart], end: str) -> End:
    """The inner end over instances that have at least one counting row."""
    forced = _inner(affected, end)
    if forced.exists:
        return forced
    ranked = [each for each in _ranked(affected, end) if each[0] is not None]
    ranked.sort(key=lambda each: each[0], reverse=end == "high")
    for tried, (limit, _, _) in enumerate(ranked):
        empty = [[not _usable(effect, end, limit) for effect in one.effects] for one in affected]
        for _, number, place in reversed(ranked[: tried + 1]):
            counts = _instance(affected, empty, (number, place))
            if counts is not None:
                takes = _takes(affected, end, limit)
                takes[number][place] = True
                return End(limit, _is_proven(affected, counts), affected, counts, takes, end)
    return End(None, True, affected, [], [], end, exists=False)


def _ranked(affected: Sequence[AffectedPart], end: str) -> list[tuple[Any, int, int]]:
    """The value at the end of every cell whose rows count, and where the cell is; None for no limit."""
    return [
        (effect.at(end), number, place)
        for number, one in enumerate(affected)
        for place, effect in enumerate(one.effects)
        if effect.counts
    ]


def _within(affected: Sequence[AffectedPart], side: str, limit: Any) -> list[tuple[int, ...]] | None:
    """An instance whose counting rows do not go beyond the limit (None: without counting rows)."""
    return _instance(affected, [[not _usable(effect, side, limit) for effect in one.effects] for one in affected], None)


def _usable(effect: Effect, side: str, limit: Any) -> bool:
    return effect.silent or not effect.counts or _fits(effect, side, limit)


def _fits(effect: Effect, side: str, limit: Any) -> bool:
    value = effect.at(side)
    if limit is None or value is None or not effect.counts:
        return False
    return bool(value <= limit) if side == "low" else bool(value >= limit)


def _takes(affected: Sequence[AffectedPart], side: str, limit: Any) -> list[list[bool]]:
    return [[effect.counts and not effect.silent and _fits(effect, side, limit) for effect in one.effects] for one in affected]


def _instance(
    affected: Sequence[AffectedPart], empty: Sequence[Sequence[bool]], needed: tuple[int, int] | None
) -> list[tuple[int, ...]] | None:
    found = []
    for number, one in enumerate(affected):
        place = needed[1] if needed is not None and needed[0] == number else None
        counts = one.part.block.instance(empty[number], place)
        if counts is None:
            return None
        found.append(counts)
    return found


def _is_proven(affected: Sequence[AffectedPart], counts: Sequence[tuple[int, ...]]) -> bool:
    """Whether the instance is known, not only possible."""
    return all(one.part.is_exact and len(each) == len(one.effects) for one, each in zip(affected, counts, strict=True))
