"""Partitionings of one column: equal depth, the optimal dynamic program, its fast forms, and the search over error values.

For a query q inside a leaf b of n rows the sampled estimate of a total has, up to a factor, the variance

    V(q, b) = scale(b) * (sum over q of t^2 - (sum over q of t)^2 / n),

and the average has it divided by |q|^2 (PASS, section 2.4). The scale is n when every leaf gets as many samples, and 1 when
samples are proportional to rows. `sum` takes t = the value, `count` takes t = 1, and `all` adds both, values scaled to mean square
1, so that leaves suit both; `avg` looks at queries of `window` rows only, the worst ones being short.

Law: V(q, b) grows with b, and therefore so does its maximum over q, M(b).

A partitioning takes a sorted sample as `Prefixes` and returns the boundaries between leaves as places among its groups, ascending.
With A[i, j] the smallest worst M of the first i groups in j leaves,

    A[i, j] = min over h < i of max(A[h, j - 1], M(h, i)).

A[h, j - 1] grows with h and M(h, i) falls, so the best h is where they meet and can be found by bisection (PASS, section 2.4.3).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nearly.errors import SchemaError, unknown
from nearly.synopsis.structure.rows import Floats, Integers

FOCUSES = ("all", "sum", "count", "avg")
MOST_GROUPS_EXHAUSTIVE = 256
"""Beyond this the programs that look at every query take too long."""
STEP = 2.0 ** (1 / 8)
"""Ratio of neighbouring error values in the search; the result is within this factor of the best for its M."""


class Prefixes:
    """Prefix sums over groups of rows with equal coordinates, in order; interval [i, j) holds groups i to j - 1.

    With weights, a row of weight w stands for w rows.
    """

    def __init__(
        self, coordinates: Floats, values: Floats, focus: str = "all", equal_samples: bool = True, weights: Floats | None = None
    ) -> None:
        if focus not in FOCUSES:
            raise unknown("focus", focus, FOCUSES)
        order = np.argsort(coordinates, kind="stable")
        coordinates, values = coordinates[order], np.nan_to_num(values[order])
        ends = (
            np.append(np.flatnonzero(coordinates[1:] > coordinates[:-1]), len(coordinates) - 1) + 1
            if len(coordinates)
            else np.zeros(0, int)
        )
        self.ends = coordinates[ends - 1]
        self.focus = focus
        self.equal_samples = equal_samples
        weights = np.ones(len(values)) if weights is None else weights[order]
        places = np.append(0, ends)
        self.rows = np.append(0.0, np.cumsum(weights))[places]
        self._distinct = len(ends) == len(coordinates) and bool((weights == 1.0).all())
        root = float(np.sqrt(np.mean(values**2))) if len(values) else 0.0
        scaled = values / root if root > 0 else values
        responses = _responses(focus, scaled)
        self._firsts = [np.append(0.0, np.cumsum(weights * each))[places] for each in responses]
        self._seconds = np.append(0.0, np.cumsum(weights * sum(each**2 for each in responses)))[places]
        self._windows = _WindowMaxima(self.rows, self._seconds) if focus == "avg" and len(ends) else None

    @property
    def groups(self) -> int:
        return len(self.ends)

    def middle(self, low: Integers, high: Integers) -> Integers:
        """The place that halves the rows of [low, high)."""
        found: Integers
        if self._distinct:
            found = (low + high + 1) // 2
        else:
            found = np.clip(np.searchsorted(self.rows, (self.rows[low] + self.rows[high]) / 2.0), low, high)
        return found

    def query_variance(self, start: Integers, stop: Integers, low: Integers, high: Integers) -> Floats:
        """V of the queries [start, stop) in the leaves [low, high)."""
        rows = np.maximum(self.rows[high] - self.rows[low], 1.0)
        total = sum((first[stop] - first[start]) ** 2 for first in self._firsts)
        found: Floats = np.maximum(self._seconds[stop] - self._seconds[start] - total / rows, 0.0)
        if self.focus == "avg":
            found = found / np.maximum(self.rows[stop] - self.rows[start], 1.0) ** 2
        return found * rows if self.equal_samples else found

    def worst(self, low: Integers, high: Integers) -> Floats:
        """The largest V in leaves [low, high), within a factor of 4: the halves and the whole stand for all queries.

        For averages: the short query of largest sum of squares.
        """
        if self._windows is not None:
            rows = np.maximum(self.rows[high] - self.rows[low], 1.0)
            found = self._windows.largest(low, high)
            return found * rows if self.equal_samples else found
        middle = self.middle(low, high)
        best = np.maximum(self.query_variance(low, middle, low, high), self.query_variance(middle, high, low, high))
        return np.maximum(best, self.query_variance(low, high, low, high))

    def worst_of_all(self, low: int, high: int) -> float:
        """The largest V over every query in [low, high): the definition, for small samples."""
        start, stop = (low + each for each in np.triu_indices(high - low + 1, 1))
        return float(self.query_variance(start, stop, np.full_like(start, low), np.full_like(start, high)).max(initial=0.0))


def _responses(focus: str, scaled: Floats) -> list[Floats]:
    if focus == "count":
        return [np.ones_like(scaled)]
    return [scaled, np.ones_like(scaled)] if focus == "all" else [scaled]


class _WindowMaxima:
    """Maxima over ranges of windows of about equal row counts: a sparse table, two look-ups per question."""

    def __init__(self, rows: Floats, squares: Floats) -> None:
        self._length = max(1.0, rows[-1] / 256.0)
        stops = np.searchsorted(rows, rows[:-1] + self._length)
        self._stops = np.minimum(stops, len(rows) - 1)
        size = np.maximum(rows[self._stops] - rows[:-1], 1.0)
        self._levels = [(squares[self._stops] - squares[:-1]) / size**2]
        while (1 << len(self._levels)) <= len(self._levels[0]):
            last, step = self._levels[-1], 1 << (len(self._levels) - 1)
            self._levels.append(np.maximum(last[:-step], last[step:]))
        self._flat = np.full((len(self._levels), len(self._levels[0])), 0.0)
        for level, line in enumerate(self._levels):
            self._flat[level, : len(line)] = line

    def largest(self, low: Integers, high: Integers) -> Floats:
        """The largest window that starts in [low, high); windows that stick out make this an upper estimate."""
        length = np.maximum(high - low, 1)
        level = np.log2(length).astype(np.int64)
        found = np.maximum(self._flat[level, low], self._flat[level, np.maximum(high - (1 << level), low)])
        return np.where(high > low, found, 0.0)


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
