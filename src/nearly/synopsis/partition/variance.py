"""The largest variance that a query inside an interval can have, from prefix sums over a sorted sample.

For a query q inside a leaf b of n rows the sampled estimate of a total has, up to a factor, the variance

    V(q, b) = scale(b) * (sum over q of t^2 - (sum over q of t)^2 / n),

and the average has it divided by |q|^2 (PASS, section 2.4). The scale is n when every leaf gets as many samples, and 1 when
samples are proportional to rows. `sum` takes t = the value, `count` takes t = 1, and `all` adds both, values scaled to mean square
1, so that leaves suit both; `avg` looks at queries of `window` rows only, the worst ones being short.

Rows may carry weights: a row of weight w stands for w rows.

Law: V(q, b) grows with b, and therefore so does the maximum over q.
"""

from __future__ import annotations

import numpy as np

from nearly.errors import unknown
from nearly.synopsis.structure.rows import Floats, Integers

FOCUSES = ("all", "sum", "count", "avg")


class Prefixes:
    """Prefix sums over groups of rows with equal coordinates, in order; interval [i, j) holds groups i to j - 1."""

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

    def worst_of_all(self, low: int, high: int, shortest: float = 1.0) -> float:
        """The largest V over every query in [low, high) of at least `shortest` rows: the definition, for small samples."""
        start, stop = np.triu_indices(high - low + 1, 1)
        start, stop = start + low, stop + low
        meaningful = self.rows[stop] - self.rows[start] >= min(shortest, self.rows[high] - self.rows[low])
        start, stop = start[meaningful], stop[meaningful]
        if not start.size:
            return 0.0
        return float(self.query_variance(start, stop, np.full_like(start, low), np.full_like(start, high)).max())


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
