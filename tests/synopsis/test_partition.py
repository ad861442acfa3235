"""Partitionings: the optimum by definition, and how close the fast ones come."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nearly
from nearly.synopsis.build.drafting import Shape, plan_tree
from nearly.synopsis.partition.one_column import FOCUSES, METHODS, Prefixes, cuts, monotone, optimal, sampled, search
from nearly.synopsis.partition.several_columns import MaximumVariance, grow
from tests.synopsis.oracle import rows_of


def worst(prefixes: Prefixes, places: np.ndarray) -> float:
    edges = [0, *places.tolist(), prefixes.groups]
    return max(prefixes.worst_of_all(low, high) for low, high in itertools.pairwise(edges))


def sample(seed: int, rows: int = 14) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.random(rows), rng.exponential(size=rows) * (rng.random(rows) < 0.7)


@pytest.mark.parametrize("focus", FOCUSES)
@pytest.mark.parametrize("seed", range(4))
def test_the_dynamic_program_finds_the_best_of_all_partitionings(focus: str, seed: int) -> None:
    prefixes = Prefixes(*sample(seed), focus)
    every = itertools.combinations(range(1, prefixes.groups), 3)
    best = min(worst(prefixes, np.array(places)) for places in every)
    assert worst(prefixes, optimal(prefixes, 4)) == pytest.approx(best)


@pytest.mark.parametrize("focus", ["sum", "count", "all"])
@pytest.mark.parametrize("seed", range(4))
def test_bisection_gives_the_same_optimum(focus: str, seed: int) -> None:
    """Law: V(q, b) grows with b, so the best boundary is where two monotone sequences meet."""
    prefixes = Prefixes(*sample(seed, 30), focus)
    assert worst(prefixes, monotone(prefixes, 6)) == pytest.approx(worst(prefixes, optimal(prefixes, 6)))


@pytest.mark.parametrize("method", [sampled, search])
@pytest.mark.parametrize("focus", FOCUSES)
def test_fast_partitionings_stay_within_their_factor(method: object, focus: str) -> None:
    """Errors within 2 sqrt(2) of the optimum, so variances within 8."""
    for seed in range(6):
        prefixes = Prefixes(*sample(seed, 60), focus)
        assert worst(prefixes, method(prefixes, 6)) <= 8.0 * worst(prefixes, optimal(prefixes, 6)) + 1e-9  # type: ignore[operator]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(1, 10), st.sampled_from(sorted(METHODS)))
def test_cuts_are_ascending_values_and_never_too_many(column: list[int], leaves: int, method: str) -> None:
    values = np.arange(len(column), dtype=float)
    found = cuts(Prefixes(np.array(column, float), values), leaves, method)
    assert len(found) <= leaves - 1 if leaves > 1 else len(found) == 0 or len(set(column)) <= leaves
    assert (np.diff(found) > 0).all()
    assert set(found) <= set(map(float, column))
    if len(set(column)) >= leaves:
        assert len(found) == leaves - 1


def test_optimised_leaves_crowd_where_values_vary() -> None:
    """The adversarial data: seven eighths zeros, then noise; equal depth gives the noise an eighth of the leaves."""
    rng = np.random.default_rng(0)
    c = np.arange(4_000.0)
    values = np.where(c < 3_500, 0.0, rng.normal(size=4_000))
    rows = rows_of(c, values)
    noisy = {
        method: int((plan_tree(Shape((0,), 64, 1_000, method), rows).cut > 3_500).sum())
        for method in ("sampled", "search", "equal_depth")
    }
    assert noisy["equal_depth"] <= 8
    assert min(noisy["sampled"], noisy["search"]) >= 2 * noisy["equal_depth"]


def test_a_kd_tree_stays_balanced_and_splits_the_worst() -> None:
    rng = np.random.default_rng(1)
    c = rng.random((2, 5_000))
    values = np.where(c[0] < 0.25, 100.0 * rng.random(5_000), 1.0)
    tree = grow(MaximumVariance(c, values), (0, 1), 50)
    depths = tree.depth[tree.leaf_nodes]
    assert tree.leaves == 50
    assert depths.max() - depths.min() <= 2
    centre = tree.leaf_of(np.array([[0.1, 0.9], [0.5, 0.5]]))
    assert depths[centre[0]] >= depths[centre[1]]


def test_few_different_points_give_few_leaves() -> None:
    c = np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    assert grow(MaximumVariance(c, np.ones(4)), (0, 1), 16).leaves == 2


def test_every_point_is_in_the_leaf_whose_cell_holds_it() -> None:
    rng = np.random.default_rng(2)
    c = rng.random((3, 2_000))
    tree = grow(MaximumVariance(c, rng.random(2_000)), (0, 1, 2), 40)
    leaf = tree.leaf_of(c)
    low, high = (side[tree.leaf_nodes[leaf]].T for side in tree.cells)
    assert ((c > low) & (c <= high)).all()
    assert np.bincount(leaf).sum() == 2_000


def test_wrong_names_are_named() -> None:
    with pytest.raises(nearly.UnknownName, match="sampled"):
        cuts(Prefixes(np.arange(9.0), np.ones(9)), 3, "smapled")
    with pytest.raises(nearly.UnknownName, match="focus"):
        Prefixes(np.arange(9.0), np.ones(9), "summ")
    with pytest.raises(nearly.SchemaError, match="leaves=0"):
        Shape((0,), 0, 10)
    with pytest.raises(nearly.SchemaError, match="every query"):
        optimal(Prefixes(np.arange(900.0), np.ones(900)), 3)
