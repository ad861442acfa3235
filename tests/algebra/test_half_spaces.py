"""Half-spaces are decided in whole numbers: equal to enumeration where that is possible, right where doubles are too coarse."""

from __future__ import annotations

import itertools
import random

import pytest

from nearly.algebra.half_spaces import HalfSpace, is_feasible, lowest
from nearly.algebra.ordered_sets import OrderedSet, span

WIDE = 2**63


@pytest.mark.parametrize("offset", [0, WIDE - 40, -WIDE, 10**37])
@pytest.mark.parametrize("seed", range(4))
def test_oracle_all_points_of_a_small_box(seed: int, offset: int) -> None:
    """Random half-spaces over up to three columns with gaps, far from zero too: emptiness and least cost as enumerated."""
    draw = random.Random(seed)
    empty = 0
    for _ in range(150):
        names = "abc"[: draw.randrange(1, 4)]
        sides = {name: _side(draw, offset) for name in names}
        planes = [_plane(draw, names, offset) for _ in range(draw.randrange(1, 5))]
        used = sorted({column for plane in planes for column in plane.columns})
        points = [dict(zip(used, ranks, strict=True)) for ranks in itertools.product(*(_ranks(sides[name]) for name in used))]
        inside = [point for point in points if all(plane.holds(point) for plane in planes)]
        assert is_feasible(planes, sides) == bool(inside)
        cost = {name: draw.randrange(-3, 4) for name in used}
        found = lowest(planes, sides, cost)
        if not inside:
            empty += 1
            assert found is None
            continue
        assert found in inside
        least = min(sum(cost[name] * point[name] for name in used) for point in inside)
        assert sum(cost[name] * found[name] for name in used) == least
    assert 5 < empty < 145


def _side(draw: random.Random, offset: int) -> OrderedSet:
    first = offset + draw.randrange(8)
    side = span(first, first + draw.randrange(1, 6))
    return side | span(first + 7, first + 9) if draw.random() < 0.3 else side


def _ranks(side: OrderedSet) -> list[int]:
    return [rank for first, end in side.pieces for rank in range(first, end)]


def _plane(draw: random.Random, names: str, offset: int) -> HalfSpace:
    terms = tuple((name, draw.choice([-5, -2, -1, 1, 2, 3])) for name in names)
    return HalfSpace(terms, sum(weight for _, weight in terms) * (offset + 6) + draw.randrange(-9, 10))


@pytest.mark.parametrize("size", [2**31, WIDE, 10**38])
def test_the_last_unit_counts(size: int) -> None:
    """`a < b` for numbers up to the limit of their type, and one step further nothing."""
    whole = {"a": span(-size, size), "b": span(-size, size)}
    below = HalfSpace((("a", 1), ("b", -1)), -1)
    assert is_feasible([below], whole)
    assert is_feasible([HalfSpace((("a", 1), ("b", -1)), -(2 * size - 1))], whole)
    assert not is_feasible([HalfSpace((("a", 1), ("b", -1)), -2 * size)], whole)
    assert not is_feasible([below, below.negated], whole)
    assert lowest([below], whole, {"a": -1}) == {"a": size - 2, "b": size - 1}
