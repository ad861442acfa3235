"""Half-spaces: linear comparisons between columns, decided by a solver because boxes cannot express them.

A half-space holds the rows with `sum(coefficient * rank(column)) <= bound`, where ranks are whole numbers (days of a date, cents
of a decimal(10,2)). Since everything is whole, the rows outside it are again a half-space: `not (s <= b)` is `-s <= -(b + 1)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from nearly.algebra.ordered_sets import OrderedSet, Rank
from nearly.algebra.whole_numbers import UndecidedError, whole_minimum


@dataclass(frozen=True, slots=True)
class HalfSpace:
    """`sum(coefficient * rank(column)) <= bound` for pairs (column, coefficient). Its columns are never null."""

    terms: tuple[tuple[str, int], ...]
    bound: int

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for column, _ in self.terms)

    @property
    def negated(self) -> HalfSpace:
        """The rows that are not in it.

        >>> HalfSpace((("a", 2), ("b", -1)), 3).negated
        HalfSpace(terms=(('a', -2), ('b', 1)), bound=-4)
        """
        return HalfSpace(tuple((column, -coefficient) for column, coefficient in self.terms), -self.bound - 1)

    def holds(self, ranks: Mapping[str, Rank]) -> bool:
        return bool(sum(coefficient * ranks[column] for column, coefficient in self.terms) <= self.bound)


def is_feasible(planes: Sequence[HalfSpace], sides: Mapping[str, OrderedSet]) -> bool:
    """Whether some row lies in all half-spaces and in the sides of their columns; what is too hard to decide counts as if.

    Law: False is a proof, since it is decided in whole numbers.
    """
    try:
        return _lowest(planes, sides, {}) is not None
    except UndecidedError:
        return True


def lowest(planes: Sequence[HalfSpace], sides: Mapping[str, OrderedSet], cost: Mapping[str, int]) -> dict[str, int] | None:
    """The ranks of the half-spaces' columns with the least `sum(cost * rank)`; None where no row is, or none was found in time."""
    try:
        return _lowest(planes, sides, cost)
    except UndecidedError:
        return None


def _lowest(planes: Sequence[HalfSpace], sides: Mapping[str, OrderedSet], cost: Mapping[str, int]) -> dict[str, int] | None:
    best: tuple[int, dict[str, int]] | None = None
    undecided = False
    for ranges in _choices(planes, sides):
        try:
            found = _solve(planes, ranges, cost)
        except UndecidedError:
            undecided = True
            continue
        if found is not None:
            value = sum(weight * found[column] for column, weight in cost.items())
            if not cost:
                return found
            if best is None or value < best[0]:
                best = value, found
    if undecided:
        raise UndecidedError
    return None if best is None else best[1]


def _choices(planes: Sequence[HalfSpace], sides: Mapping[str, OrderedSet]) -> Iterator[dict[str, tuple[int, int]]]:
    """One range for each column; a side with gaps gives several choices."""
    names = sorted({column for plane in planes for column in plane.columns})
    for pieces in product(*(sides[name].pieces for name in names)):
        yield {name: (first, end - 1) for name, (first, end) in zip(names, pieces, strict=True)}


def _solve(planes: Sequence[HalfSpace], ranges: Mapping[str, tuple[int, int]], cost: Mapping[str, int]) -> dict[str, int] | None:
    rows = [(tuple(dict(plane.terms).get(name, 0) for name in ranges), plane.bound) for plane in planes]
    found = whole_minimum([cost.get(name, 0) for name in ranges], rows, tuple(ranges.values()))
    return None if found is None else dict(zip(ranges, found, strict=True))
