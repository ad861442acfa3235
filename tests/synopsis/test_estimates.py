"""Estimates against brute force: exact where they claim to be, inside their certain bounds, unbiased, and covered as promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from nearly.synopsis.build.drafting import Shape
from nearly.synopsis.query.reading import TreeReading
from nearly.synopsis.query.totals import ESTIMATED, NAMES
from tests.synopsis.oracle import ask, built, rows_of, truth

AGGREGATES = sorted(NAMES)


def skewed(rows: int, seed: int, nulls: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    c = rng.random(rows) ** 2
    values = np.round(rng.normal(size=rows) * 10 * (1 + 5 * c) + 20 * np.sin(9 * c), 2)
    return c, np.where(rng.random(rows) < nulls, np.nan, values)


@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.data())
def test_every_answer_lies_within_its_certain_bounds(data: st.DataObject) -> None:
    """Law: hard_low <= truth <= hard_high, for values of any sign, nulls, ties and empty ranges."""
    count = data.draw(st.integers(1, 60))
    whole = st.integers(-20, 20).map(float)
    c = np.array(data.draw(st.lists(whole, min_size=count, max_size=count)))
    values = np.array(data.draw(st.lists(st.one_of(whole, st.just(math.nan)), min_size=count, max_size=count)))
    rows = rows_of(c, values)
    reading = TreeReading(built(rows, Shape((0,), data.draw(st.integers(1, 8)), data.draw(st.integers(2, 40)))))
    low, high = sorted(data.draw(st.tuples(whole, whole)))
    aggregate = data.draw(st.sampled_from(AGGREGATES))
    found, expected = ask(reading, aggregate, (0, low, high)), truth(rows, (0, low, high)).of(aggregate)
    if math.isnan(expected):
        return
    slack = 1e-9 * max(1.0, abs(expected))
    assert found.hard_low - slack <= expected <= found.hard_high + slack
    assert found.low - slack <= found.value <= found.high + slack
    if found.exact:
        assert found.value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_queries_along_leaf_borders_are_exact(aggregate: str) -> None:
    c, values = skewed(4_000, 1, nulls=0.1)
    rows = rows_of(c, values)
    reading = TreeReading(built(rows, Shape((0,), 16, 200)))
    cuts = np.sort(reading.scales.tree.cut[~reading.scales.tree.is_leaf])
    for low, high in ((cuts[2], cuts[9]), (-math.inf, cuts[0]), (cuts[-1], math.inf)):
        found = ask(reading, aggregate, (0, np.nextafter(low, math.inf), high))
        assert found.exact
        assert found.processed == 0
        assert found.value == pytest.approx(truth(rows, (0, np.nextafter(low, math.inf), high)).of(aggregate))


def test_a_leaf_sampled_whole_is_exact() -> None:
    c, values = skewed(300, 2)
    rows = rows_of(c, values)
    reading = TreeReading(built(rows, Shape((0,), 8, 3_000)))
    for aggregate in ESTIMATED:
        found = ask(reading, aggregate, (0, 0.1, 0.6))
        assert found.value == pytest.approx(truth(rows, (0, 0.1, 0.6)).of(aggregate))
        assert found.high - found.low < 1e-6 * max(1.0, abs(found.value))


@pytest.mark.long
def test_estimates_are_unbiased_and_intervals_cover() -> None:
    """Over 300 draws of the sample: the mean error is within 4 of its standard errors of zero, plus the known bias of order 1/n,
    and 95 % intervals hold the truth about 95 % of the time."""
    c, values = skewed(6_000, 3, nulls=0.05)
    questions = [(name, low, high) for name in ("rows", "count", "sum", "avg", "stddev_samp") for low, high in
                 ((0.05, 0.4), (0.21, 0.83), (0.3, 0.5))]  # fmt: skip
    expected = np.array([truth(rows_of(c, values), (0, low, high)).of(name) for name, low, high in questions])
    errors, covered = np.empty((300, len(questions))), np.empty((300, len(questions)))
    for seed in range(300):
        reading = TreeReading(built(rows_of(c, values, seed=seed), Shape((0,), 8, 800), seed=0))
        found = [ask(reading, name, (0, low, high)) for name, low, high in questions]
        errors[seed] = [each.value for each in found] / expected - 1
        covered[seed] = [each.low <= true <= each.high for each, true in zip(found, expected, strict=True)]
    assert (np.abs(errors.mean(axis=0)) < errors.std(axis=0, ddof=1) * (4 / np.sqrt(300) + 0.05)).all()
    by_aggregate = covered.reshape(300, 5, 3).mean(axis=(0, 2))
    assert (by_aggregate[:4] >= 0.93).all()
    assert by_aggregate[4] >= 0.9
    assert (by_aggregate <= 0.985).all()


def test_rare_matches_do_not_make_a_narrow_interval() -> None:
    """A range in which no sampled row lies has an interval that reaches the rows it does hold."""
    rng = np.random.default_rng(5)
    c, values = rng.random(20_000), np.ones(20_000)
    covered = 0
    for seed in range(60):
        rows = rows_of(c, values, seed=seed)
        reading = TreeReading(built(rows, Shape((0,), 4, 80), seed=0))
        found, expected = ask(reading, "rows", (0, 0.3, 0.302)), truth(rows, (0, 0.3, 0.302)).rows
        covered += found.low <= expected <= found.high
    assert covered >= 55


def test_constant_values_give_a_certain_average() -> None:
    """The rule of zero variance: no sample is looked at when all values of the frontier are equal."""
    rng = np.random.default_rng(6)
    rows = rows_of(rng.random(5_000), np.full(5_000, 7.0))
    found = ask(TreeReading(built(rows, Shape((0,), 8, 100))), "avg", (0, 0.2, 0.7))
    assert (found.value, found.exact, found.processed) == (7.0, True, 0)


@pytest.mark.parametrize(("aggregate", "expected"), [("avg", 7.0), ("var_pop", 0.0), ("stddev_samp", 0.0)])
def test_equal_values_need_a_matching_row_only(aggregate: str, expected: float) -> None:
    """No node lies in the query, but sampled rows do: what all values agree on is certain; where none matches it may be null."""
    rows = rows_of(np.arange(4_000.0), np.full(4_000, 7.0))
    reading = TreeReading(built(rows, Shape((0,), 2, 400)))
    found = ask(reading, aggregate, (0, 100, 1_900))
    assert (found.value, found.exact) == (expected, True)
    assert not ask(reading, aggregate, (0, 100.5, 100.6)).exact


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, math.nan, 5.0, -3.0]), st.integers(1, 40)), min_size=1, max_size=8),
    st.tuples(st.integers(0, 160), st.integers(0, 160)),
    st.sampled_from(sorted(ESTIMATED)),
)
def test_runs_of_equal_values(runs: list[tuple[float, int]], ends: tuple[int, int], aggregate: str) -> None:
    """Law: leaves of zeros, of nulls and of one value make answers exact only where they are right, null included."""
    values = np.repeat([value for value, _ in runs], [2 * count for _, count in runs])
    rows = rows_of(np.arange(float(len(values))), values)
    found = ask(TreeReading(built(rows, Shape((0,), 6, 24))), aggregate, (0, min(ends), max(ends)))
    expected = truth(rows, (0, min(ends), max(ends))).of(aggregate)
    if found.exact:
        assert found.value == pytest.approx(expected, abs=1e-9, nan_ok=True)
    elif not math.isnan(expected):
        assert found.hard_low - 1e-9 <= expected <= found.hard_high + 1e-9


def test_a_sum_is_exact_when_its_borders_cut_zeros() -> None:
    """The adversarial data of PASS: seven eighths zeros. A query around all other rows takes them whole and zeros for nothing."""
    rng = np.random.default_rng(0)
    c = np.arange(8_000.0)
    rows = rows_of(c, np.where(c < 7_000, 0.0, np.round(rng.normal(size=8_000), 2)))
    reading = TreeReading(built(rows, Shape((0,), 32, 400)))
    found, expected = ask(reading, "sum", (0, 1_234.5, 9_999)), truth(rows, (0, 1_234.5, 9_999)).of("sum")
    assert found.exact
    assert found.value == pytest.approx(expected)
    assert not ask(reading, "count", (0, 1_234.5, 9_999)).exact


def test_large_nearly_equal_values_keep_their_variance() -> None:
    rng = np.random.default_rng(7)
    rows = rows_of(np.arange(5_000.0), 1e9 + rng.normal(size=5_000))
    reading = TreeReading(built(rows, Shape((0,), 8, 400)))
    found = ask(reading, "var_pop")
    assert found.value == pytest.approx(truth(rows).of("var_pop"), rel=1e-6)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_several_columns(dimensions: int) -> None:
    """k-d trees: certain bounds hold, most intervals cover, and a query on one column alone works."""
    rng = np.random.default_rng(8)
    c = rng.random((dimensions, 30_000))
    values = rng.exponential(size=30_000) * (1 + c[0])
    rows = rows_of(c, values)
    reading = TreeReading(built(rows, Shape(tuple(range(dimensions)), 64, 3_000)))
    assert reading.scales.tree.leaves == 64
    covered = 0
    for _ in range(60):
        low = rng.random(dimensions) * 0.5
        ranges = [(place, float(each), float(each + 0.45)) for place, each in enumerate(low)]
        for aggregate in ("rows", "sum", "avg"):
            found, expected = ask(reading, aggregate, *ranges), truth(rows, *ranges).of(aggregate)
            assert found.hard_low <= expected <= found.hard_high
            covered += found.low <= expected <= found.high
    assert covered >= 0.88 * 180
    alone, whole = ask(reading, "sum", (1, 0.25, 0.5)), truth(rows, (1, 0.25, 0.5)).of("sum")
    assert abs(alone.value - whole) < alone.high - alone.low


def test_a_tree_serves_columns_it_does_not_split_on() -> None:
    rng = np.random.default_rng(9)
    c = rng.random((2, 20_000))
    rows = rows_of(c, c[0] + c[1])
    reading = TreeReading(built(rows, Shape((0,), 32, 4_000)))
    found, expected = ask(reading, "sum", (0, 0.2, 0.6), (1, 0.5, 1.0)), truth(rows, (0, 0.2, 0.6), (1, 0.5, 1.0)).of("sum")
    assert abs(found.value - expected) < 0.06 * expected
    assert found.hard_low <= expected <= found.hard_high
