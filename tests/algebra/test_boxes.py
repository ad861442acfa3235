"""Laws of sets, boxes and regions, against membership of every row of a small space."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearly.algebra.boxes import Box, Region, box, difference, hull, intersection, meet, union, within
from nearly.algebra.half_spaces import HalfSpace, is_feasible, lowest
from nearly.algebra.ordered_sets import EMPTY, END_OF_TEXTS, OrderedSet, span

SIZE = 6
VALUES = (None, *range(SIZE))
FULL = OrderedSet(((0, SIZE),), null=True)
SPACE = {"a": FULL, "b": FULL}


def members(values: OrderedSet) -> set[int | None]:
    return {rank for rank in range(SIZE) if rank in values} | ({None} if values.null else set())


def of(chosen: frozenset[int | None]) -> OrderedSet:
    found = EMPTY
    for rank in chosen - {None}:
        found = found | span(rank, rank + 1)  # type: ignore[operator]
    return OrderedSet(found.pieces, None in chosen)


SETS = st.frozensets(st.sampled_from(VALUES)).map(of)
PLANES = st.lists(
    st.builds(
        lambda x, y, bound: HalfSpace((("a", x), ("b", y)), bound), *[st.sampled_from([-2, -1, 1, 2])] * 2, st.integers(-4, 8)
    ),
    max_size=1,
)


def a_box(a: OrderedSet, b: OrderedSet, planes: list[HalfSpace]) -> Region:
    sides = {"a": a, "b": b}
    return box({name: side.without_null for name, side in sides.items()} if planes else sides, tuple(planes))


BOXES = st.builds(a_box, SETS, SETS, PLANES)


def rows(region: Region) -> set[tuple[int | None, int | None]]:
    return {
        (a, b)
        for a, b in product(VALUES, VALUES)
        for each in region
        if all(value in members(each.sides.get(name, FULL)) for name, value in (("a", a), ("b", b)))
        and all(plane.holds({"a": a, "b": b}) for plane in each.planes)
    }


@given(SETS, SETS)
@settings(max_examples=300, deadline=None)
def test_law_sets_behave_like_sets(left: OrderedSet, right: OrderedSet) -> None:
    a, b = members(left), members(right)
    assert (members(left & right), members(left | right), members(left - right)) == (a & b, a | b, a - b)
    assert (left.meets(right), left <= right, left.is_empty) == (bool(a & b), a <= b, not a)
    assert all(first < end for first, end in (left - right).pieces)


@given(BOXES, BOXES, BOXES)
@settings(max_examples=120, deadline=None)
def test_law_regions_behave_like_sets_of_rows(first: Region, second: Region, third: Region) -> None:
    left, right = union(first, second, SPACE), third
    a, b = rows(left), rows(right)
    assert rows(intersection(left, right)) == a & b
    assert rows(difference(left, right, SPACE)) == a - b
    assert rows(union(left, right, SPACE)) == a | b
    assert (meet(left, right), within(left, right, SPACE), bool(left)) == (bool(a & b), a <= b, bool(a))
    for each in (left, difference(left, right, SPACE)):
        assert sum(len(rows((piece,))) for piece in each) == len(rows(each)), "the boxes of a region must be disjoint"


def test_half_spaces_narrow_what_is_within() -> None:
    """b >= 4 within {0, 4}, although its sides alone are not."""
    high = box({"a": span(0, 1), "b": span(0, 5)}, (HalfSpace((("a", -2), ("b", -1)), -4),))
    assert within(high, box({"b": of(frozenset([0, 4]))}), SPACE)
    assert not within(high, box({"b": of(frozenset([0, 3]))}), SPACE)


def test_hull_is_the_projection() -> None:
    region = union(box({"a": span(0, 2)}), box({"a": span(4, 5), "b": span(1, 2)}), SPACE)
    assert members(hull(region, "a", SPACE)) == {0, 1, 4}
    assert members(hull(region, "b", SPACE)) == set(VALUES)


def test_texts_end_nowhere() -> None:
    after_b = span("b\0", END_OF_TEXTS)
    assert "b" not in after_b
    assert "\U0010ffff" * 3 in after_b
    assert (after_b & span("", "c")).pieces == (("b\0", "c"),)
    assert (span("", END_OF_TEXTS) - span("x", "x\0")).pieces == (("", "x"), ("x\0", END_OF_TEXTS))


def test_half_spaces_use_the_gaps_of_sides() -> None:
    sides = {"a": OrderedSet(((0, 1), (5, 6))), "b": span(0, 6)}
    between = (HalfSpace((("a", 1),), 4), HalfSpace((("a", -1),), -1))
    assert not is_feasible(between, sides)
    assert lowest((HalfSpace((("a", 1), ("b", -1)), -1),), sides, {"a": -1}) == {"a": 0, "b": pytest.approx(3, abs=3)}


def test_a_free_column_is_everything() -> None:
    assert rows(difference((Box({}),), box({"a": span(0, SIZE)}), SPACE)) == {(None, b) for b in VALUES}
