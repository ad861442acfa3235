"""Partitionings of one column: equal depth, the optimal dynamic program, its fast forms, and the search over error values.

Each takes a sorted sample as `Prefixes` and returns the boundaries between leaves as places among its groups, ascending. With
A[i, j] the smallest worst variance of the first i groups in j leaves and M the worst variance of a leaf,

    A[i, j] = min over h < i of max(A[h, j - 1], M(h, i)).

A[h, j - 1] grows with h and M(h, i) falls, so the best h is where they meet and can be found by bisection (PASS, section 2.4.3).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nearly.errors import SchemaError, unknown
from nearly.synopsis.partition.variance import Prefixes
from nearly.synopsis.structure.rows import Floats, Integers

MOST_GROUPS_EXHAUSTIVE = 256
"""Beyond this the programs that look at every query take too long."""
STEP = 2.0 ** (1 / 8)
"""Ratio of neighbouring error values in the search; the result is within this factor of the best for its M."""


def equal_depth(prefixes: Prefixes, leaves: int) -> Integers:
    """Leaves of equal numbers of rows: the optimum for COUNT."""
    wanted = np.arange(1, leaves) * (prefixes.rows[-1] / leaves)
    places = np.searchsorted(prefixes.rows, wanted)
    return _proper(places, prefixes.groups)


def optimal(prefixes: Prefixes, leaves: int) -> Integers:
    """The dynamic program over every boundary and every query; for small samples, and to judge the others by."""
    worst = _exhaustive(prefixes)
    groups = prefixes.groups
    best, choices = worst[0].copy(), []
    for _ in range(1, min(leaves, groups)):
        candidates = np.maximum(best[:, None], worst)
        choices.append(candidates.argmin(axis=0))
        best = np.minimum(candidates.min(axis=0), best)
    return _traced(choices, groups)


def monotone(prefixes: Prefixes, leaves: int) -> Integers:
    """The same program with the best h found by bisection."""
    worst = _exhaustive(prefixes)
    return _program(prefixes.groups, leaves, lambda low, high: worst[low, high])


def sampled(prefixes: Prefixes, leaves: int) -> Integers:
    """The default: bisection, and a few queries in place of all; within 2 sqrt(2) of the optimum for sums, 2 for averages."""
    return _program(prefixes.groups, leaves, prefixes.worst)


def search(prefixes: Prefixes, leaves: int) -> Integers:
    """Bisection over error values; for each, leaves are made as long as the error allows (JanusAQP, section 3.5.2).

    Quicker than the program by a factor of the sample's size, and nearly as good.
    """
    groups = prefixes.groups
    whole = float(prefixes.worst(np.array([0]), np.array([groups]))[0])
    least = float(prefixes.worst(np.arange(groups), np.arange(1, groups + 1)).max(initial=0.0))
    steps = max(1, int(np.ceil(np.log(max(whole, 1e-300) / max(least, whole * 1e-12, 1e-300)) / np.log(STEP))))
    values = whole * STEP ** -np.arange(steps + 1.0)
    good, bad = 0, len(values)
    found: list[int] = []
    while bad - good > 1:
        middle = (good + bad) // 2
        boundaries = _greedy(prefixes, leaves, values[middle])
        if boundaries is None:
            bad = middle
        else:
            good, found = middle, boundaries
    return _proper(np.array(found, np.int64), groups)


METHODS: dict[str, Callable[[Prefixes, int], Integers]] = {
    "sampled": sampled, "equal_depth": equal_depth, "optimal": optimal, "monotone": monotone, "search": search,
}  # fmt: skip


def cuts(prefixes: Prefixes, leaves: int, method: str = "sampled") -> Floats:
    """The cut values between leaves; fewer than asked for when the column has fewer different values."""
    if method not in METHODS:
        raise unknown("partitioning", method, METHODS)
    if prefixes.groups <= leaves:
        return np.asarray(prefixes.ends[:-1])
    places = METHODS[method](prefixes, leaves)
    return np.asarray(prefixes.ends[_filled(prefixes, places, leaves) - 1])


def _exhaustive(prefixes: Prefixes) -> Floats:
    groups = prefixes.groups
    if groups > MOST_GROUPS_EXHAUSTIVE:
        raise SchemaError(
            f"this partitioning looks at every query over {groups} values; it takes at most {MOST_GROUPS_EXHAUSTIVE}, "
            f"use 'sampled' instead"
        )
    worst = np.full((groups + 1, groups + 1), np.inf)
    for low in range(groups):
        for high in range(low + 1, groups + 1):
            worst[low, high] = prefixes.worst_of_all(low, high)
    return worst


def _program(groups: int, leaves: int, worst: Callable[[Integers, Integers], Floats]) -> Integers:
    """The dynamic program by bisection, for all i at once; with more leaves the best h only moves up, so it starts where it was."""
    i = np.arange(groups + 1)
    best = worst(np.zeros_like(i), i)
    best[0] = 0.0
    choices = []
    low = np.zeros_like(i)
    for _ in range(1, leaves):
        high = i.copy()
        while (low < high).any():
            middle = (low + high) // 2
            meets = best[middle] >= worst(middle, i)
            high = np.where(meets, middle, high)
            low = np.where(meets, low, np.minimum(middle + 1, high))
        before = np.maximum(low - 1, 0)
        at_low = np.where(low < i, np.maximum(best[low], worst(np.minimum(low, i), i)), np.inf)
        at_before = np.where(before < i, np.maximum(best[before], worst(before, i)), np.inf)
        choice = np.where(at_low <= at_before, low, before)
        choices.append(np.minimum(choice, np.maximum(i - 1, 0)))
        best = np.minimum(np.minimum(at_low, at_before), best)
        best[0] = 0.0
    return _traced(choices, groups)


def _traced(choices: list[Integers], groups: int) -> Integers:
    """The boundaries, from the last leaf back to the first."""
    places, end = [], groups
    for choice in reversed(choices):
        end = int(choice[end])
        places.append(end)
    return _proper(np.array(places[::-1], np.int64), groups)


def _greedy(prefixes: Prefixes, leaves: int, allowed: float) -> list[int] | None:
    """Leaves as long as the error allows, or None when they do not suffice."""
    boundaries: list[int] = []
    start, groups = 0, prefixes.groups
    for _ in range(leaves):
        low, high = start + 1, groups
        while low < high:
            middle = (low + high + 1) // 2
            fits = float(prefixes.worst(np.array([start]), np.array([middle]))[0]) <= allowed
            low, high = (middle, high) if fits else (low, middle - 1)
        if low >= groups:
            return boundaries
        boundaries.append(low)
        start = low
    return None


def _proper(places: Integers, groups: int) -> Integers:
    """Distinct inner boundaries."""
    return np.unique(places[(places > 0) & (places < groups)])


def _filled(prefixes: Prefixes, places: Integers, leaves: int) -> Integers:
    """When boundaries fell together: halve the worst leaves until there are as many as asked for."""
    bounds = np.concatenate([[0], places, [prefixes.groups]]).astype(np.int64)
    while len(bounds) - 1 < leaves:
        low, high = bounds[:-1], bounds[1:]
        score = np.where(high - low > 1, prefixes.worst(low, high) + 1e-12 * (prefixes.rows[high] - prefixes.rows[low]), -1.0)
        worst = int(score.argmax())
        if score[worst] < 0:
            break
        begin, end = int(low[worst]), int(high[worst])
        middle = int(prefixes.middle(np.array([begin]), np.array([end]))[0])
        bounds = np.insert(bounds, worst + 1, min(max(middle, begin + 1), end - 1))
    return bounds[1:-1]
