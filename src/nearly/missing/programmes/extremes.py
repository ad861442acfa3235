"""Ranges of MIN and MAX.

The greatest MAX is the greatest value of a cell in which some instance has a row. The least MAX is the least t for which some
instance keeps all rows that count at or below t: a cell is usable when its least value is at most t, or when its rows can be
silent. Usable cells only grow with t, so t is found by bisection over the cells' least values. MIN is MAX in the reversed order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nearly.missing.programmes.effects import Effect
from nearly.missing.programmes.problem import End, Stake


def extreme_end(stakes: Sequence[Stake], function: str, end: str, *, certain: bool) -> End:
    """One end of MIN or MAX over the missing rows; values are ranks, or numbers for an expression.

    `certain` says that there are certain rows. Then the inner end may be left to them, and `exists` is False where some instance
    has no counting row; without certain rows only instances with a value are considered, and `exists` is False where there are
    none.
    """
    if (function == "max") == (end == "high"):
        return _outer(stakes, end)
    return _inner(stakes, end) if certain else _inner_of_some(stakes, end)


def _outer(stakes: Sequence[Stake], end: str) -> End:
    """The most extreme value of any row that some instance has."""
    ranked = [
        (effect.at(end), number, place)
        for number, stake in enumerate(stakes)
        for place, effect in enumerate(stake.effects)
        if effect.counts
    ]
    for value, number, place in _from_the_end(ranked, end):
        counts = _instance(stakes, [[False] * len(stake.effects) for stake in stakes], (number, place))
        if counts is not None:
            takes = [[not effect.silent for effect in stake.effects] for stake in stakes]
            takes[number][place] = True
            return End(value, _is_proven(stakes, counts), stakes, counts, takes, end)
    return End(None, True, stakes, [], [], end, exists=False)


def _inner(stakes: Sequence[Stake], end: str) -> End:
    """The least extreme value that the extreme row can have."""
    side = end
    silent = _within(stakes, side, None)
    if silent is not None:
        return End(None, _is_proven(stakes, silent), stakes, silent, _takes(stakes, side, None), end, exists=False)
    known = [effect.at(side) for stake in stakes for effect in stake.effects if effect.counts and effect.at(side) is not None]
    candidates = sorted(set(known), reverse=side == "high")
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        if _within(stakes, side, candidates[middle]) is None:
            low = middle + 1
        else:
            high = middle
    counts = _within(stakes, side, candidates[low]) if candidates else None
    if counts is None:
        return End(None, False, stakes, [], [], end)
    return End(candidates[low], _is_proven(stakes, counts), stakes, counts, _takes(stakes, side, candidates[low]), end)


def _inner_of_some(stakes: Sequence[Stake], end: str) -> End:
    """The inner end over instances that have at least one counting row."""
    forced = _inner(stakes, end)
    if forced.exists:
        return forced
    ranked = [
        (effect.at(end), number, place)
        for number, stake in enumerate(stakes)
        for place, effect in enumerate(stake.effects)
        if effect.counts and effect.at(end) is not None
    ]
    ranked.sort(key=lambda each: each[0], reverse=end == "high")
    for tried, (limit, _, _) in enumerate(ranked):
        empty = [[not _usable(effect, end, limit) for effect in stake.effects] for stake in stakes]
        for _, number, place in reversed(ranked[: tried + 1]):
            counts = _instance(stakes, empty, (number, place))
            if counts is not None:
                takes = _takes(stakes, end, limit)
                takes[number][place] = True
                return End(limit, _is_proven(stakes, counts), stakes, counts, takes, end)
    return End(None, True, stakes, [], [], end, exists=False)


def _within(stakes: Sequence[Stake], side: str, limit: Any) -> list[tuple[int, ...]] | None:
    """An instance whose counting rows do not go beyond the limit (None: without counting rows)."""
    return _instance(stakes, [[not _usable(effect, side, limit) for effect in stake.effects] for stake in stakes], None)


def _usable(effect: Effect, side: str, limit: Any) -> bool:
    return effect.silent or not effect.counts or _fits(effect, side, limit)


def _fits(effect: Effect, side: str, limit: Any) -> bool:
    value = effect.at(side)
    if limit is None or value is None or not effect.counts:
        return False
    return bool(value <= limit) if side == "low" else bool(value >= limit)


def _takes(stakes: Sequence[Stake], side: str, limit: Any) -> list[list[bool]]:
    return [[effect.counts and not effect.silent and _fits(effect, side, limit) for effect in stake.effects] for stake in stakes]


def _instance(
    stakes: Sequence[Stake], empty: Sequence[Sequence[bool]], needed: tuple[int, int] | None
) -> list[tuple[int, ...]] | None:
    found = []
    for number, stake in enumerate(stakes):
        place = needed[1] if needed is not None and needed[0] == number else None
        counts = stake.part.block.instance(empty[number], place)
        if counts is None:
            return None
        found.append(counts)
    return found


def _is_proven(stakes: Sequence[Stake], counts: Sequence[tuple[int, ...]]) -> bool:
    """Whether the instance is known, not only possible."""
    return all(stake.part.is_exact and len(each) == len(stake.effects) for stake, each in zip(stakes, counts, strict=True))


def _from_the_end(ranked: list[tuple[Any, int, int]], end: str) -> list[tuple[Any, int, int]]:
    """Most extreme first; an end that does not exist (None) is beyond all others."""
    unlimited = [each for each in ranked if each[0] is None]
    limited = sorted((each for each in ranked if each[0] is not None), key=lambda each: each[0], reverse=end == "high")
    return unlimited + limited
