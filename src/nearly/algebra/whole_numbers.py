"""Linear programmes over whole numbers, decided in exact arithmetic: no rounding can make a feasible one seem empty.

Branch and bound over the simplex method in fractions (Bland's rule, so that it ends). Numbers may be of any size; programmes are
small: a few columns that a predicate compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor, gcd
from typing import TypeAlias

MOST_BRANCHES = 400
"""After so many parts a programme counts as undecided."""

Ranges: TypeAlias = tuple[tuple[int, int], ...]
Row: TypeAlias = tuple[tuple[int, ...], int]
"""Coefficients and a bound: `sum(coefficient * x) <= bound`."""


class UndecidedError(Exception):
    """The search was given up before it came to an end."""


def whole_minimum(cost: Sequence[int], rows: Sequence[Row], ranges: Ranges) -> tuple[int, ...] | None:
    """Whole numbers x with the least `cost @ x` where all rows hold and each x lies in its range, ends included; else None.

    >>> whole_minimum((0, 0), [((1, -1), -1)], ((-(2**63), 2**63 - 1),) * 2)  # some x < y
    (-9223372036854775808, -9223372036854775807)
    >>> whole_minimum((0, 0), [((2, -2), 1), ((-2, 2), -1)], ((0, 9), (0, 9)))  # 2x - 2y = 1 has none
    """
    reduced = [_reduced(row) for row in rows]
    best: tuple[int, tuple[int, ...]] | None = None
    open_ = [ranges]
    for _ in range(MOST_BRANCHES):
        if not open_:
            return None if best is None else best[1]
        part = open_.pop()
        found = _relaxed(cost, reduced, part)
        if found is None:
            continue
        value = sum((weight * each for weight, each in zip(cost, found, strict=True)), Fraction(0))
        if best is not None and ceil(value) >= best[0]:
            continue
        split = next((place for place, each in enumerate(found) if each.denominator != 1), None)
        if split is None:
            best = int(value), tuple(int(each) for each in found)
            continue
        (low, high), cut = part[split], floor(found[split])
        open_ += [(*part[:split], piece, *part[split + 1 :]) for piece in ((cut + 1, high), (low, cut))]
    if open_:
        raise UndecidedError
    return None if best is None else best[1]


def _reduced(row: Row) -> Row:
    """The same row over whole numbers, without a common factor: 2x - 2y <= 1 is x - y <= 0."""
    coefficients, bound = row
    common = gcd(*coefficients) or 1
    return tuple(each // common for each in coefficients), bound // common


def _relaxed(cost: Sequence[int], rows: Sequence[Row], ranges: Ranges) -> list[Fraction] | None:
    """The least point with fractions allowed, by the simplex method over the distances from the lower ends."""
    if any(low > high for low, high in ranges):
        return None
    count = len(ranges)
    lines = [list(map(Fraction, coefficients)) for coefficients, _ in rows]
    limits = [Fraction(bound - sum(a * low for a, (low, _) in zip(line, ranges, strict=True))) for line, bound in rows]
    for place, (low, high) in enumerate(ranges):
        lines.append([Fraction(int(place == other)) for other in range(count)])
        limits.append(Fraction(high - low))
    tableau = _Dictionary(lines, limits, [Fraction(each) for each in cost])
    if not tableau.solve():
        return None
    return [low + distance for (low, _), distance in zip(ranges, tableau.point(count), strict=True)]


class _Dictionary:
    """`basic = limit - sum(line * free)` with all variables at least 0, and a cost in the free ones (Chvatal, Linear Programming).

    Variable -1 is the helper that makes a first point: it is taken from every row, and must end at 0.
    """

    def __init__(self, lines: list[list[Fraction]], limits: list[Fraction], cost: list[Fraction]) -> None:
        count = len(cost)
        self._lines, self._limits = lines, limits
        self._cost = cost
        self._free = list(range(count))
        self._basic = list(range(count, count + len(lines)))

    def solve(self) -> bool:
        """Move to the point of least cost; False where there is none. Ranges are finite, so that the cost has a least value."""
        if min(self._limits) < 0 and not self._first_point():
            return False
        self._improve()
        return True

    def point(self, count: int) -> list[Fraction]:
        values = dict(zip(self._basic, self._limits, strict=True))
        return [values.get(place, Fraction(0)) for place in range(count)]

    def _first_point(self) -> bool:
        wanted, width = self._cost, len(self._free)
        for line in self._lines:
            line.append(Fraction(-1))
        self._free.append(-1)
        self._cost = [Fraction(0)] * width + [Fraction(1)]
        self._pivot(self._limits.index(min(self._limits)), width)
        self._improve()
        if -1 in self._basic:
            row = self._basic.index(-1)
            if self._limits[row] > 0:
                return False
            self._pivot(row, next(place for place, each in enumerate(self._lines[row]) if each))
        helper = self._free.index(-1)
        for line in self._lines:
            del line[helper]
        del self._free[helper]
        self._restore(wanted)
        return True

    def _restore(self, wanted: list[Fraction]) -> None:
        """The wanted cost in terms of the variables that are free now; a constant does not matter."""
        self._cost = [wanted[each] if each < len(wanted) else Fraction(0) for each in self._free]
        for variable, line in zip(self._basic, self._lines, strict=True):
            if variable < len(wanted) and wanted[variable]:
                self._cost = [old - wanted[variable] * each for old, each in zip(self._cost, line, strict=True)]

    def _improve(self) -> None:
        while True:
            falling = [(self._free[place], place) for place, each in enumerate(self._cost) if each < 0]
            if not falling:
                return
            enters = min(falling)[1]
            steps = [
                (limit / line[enters], self._basic[row], row)
                for row, (line, limit) in enumerate(zip(self._lines, self._limits, strict=True))
                if line[enters] > 0
            ]
            self._pivot(min(steps)[2], enters)

    def _pivot(self, leaves: int, enters: int) -> None:
        """Exchange a basic variable for a free one."""
        line, scale = self._lines[leaves], self._lines[leaves][enters]
        new = [each / scale for each in line]
        new[enters] = 1 / scale
        limit = self._limits[leaves] / scale
        for row, other in enumerate(self._lines):
            factor = other[enters]
            if row != leaves and factor:
                self._lines[row] = [
                    -factor * new[place] if place == enters else each - factor * new[place] for place, each in enumerate(other)
                ]
                self._limits[row] -= factor * limit
        self._lines[leaves], self._limits[leaves] = new, limit
        factor = self._cost[enters]
        self._cost = [
            -factor * new[place] if place == enters else each - factor * new[place] for place, each in enumerate(self._cost)
        ]
        self._free[enters], self._basic[leaves] = self._basic[leaves], self._free[enters]
