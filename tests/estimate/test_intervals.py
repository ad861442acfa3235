"""Intervals from replicates: the laws they obey, and what is refused or withheld."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearly.errors import SchemaError
from nearly.estimate.intervals import FEWEST_SEEN, FEWEST_UNITS, interval

Floats = NDArray[np.float64]
seeds = st.integers(0, 2**32 - 1)


def total(values: Floats, rows: Floats, population_rows: float) -> tuple[Floats, Floats]:
    """The estimated total and its replicates when groups have these sums and rows."""
    estimate = population_rows * values.sum() / rows.sum()
    copies = population_rows * (values.sum() - values) / (rows.sum() - rows)
    return np.array([estimate]), copies[:, None]


@settings(max_examples=50, deadline=None)
@given(seed=seeds, groups=st.integers(6, 32))
def test_law_the_error_of_a_total_is_that_of_the_ratio_estimator(seed: int, groups: int) -> None:
    """v = (1 - f) N^2 / n^2 * sum (y_r - R n_r)^2 / (1 - n_r / n) with R = sum y / sum n (Cochran 1977, 6.13, for unlike n_r)."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(50, 200, groups).astype(float)
    values = rng.gamma(2, 3, groups) * rows
    whole = rows.sum() * 7
    theta, copies = total(values, rows, whole)
    found = interval(theta, copies, 1 / 7, 0.95, group_rows=rows)
    residuals = values - values.sum() / rows.sum() * rows
    textbook = (1 - 1 / 7) * (whole / rows.sum()) ** 2 * (residuals**2 / (1 - rows / rows.sum())).sum()
    assert found.error[0] == pytest.approx(np.sqrt(textbook), rel=1e-9)


def test_the_error_has_no_bias_for_groups_of_unlike_sizes() -> None:
    """Averages of independent rows, one group with a third of them: the mean of error^2 is the variance of the average."""
    rng = np.random.default_rng(3)
    rows = np.array([8.0] + [1.0] * 16)
    means = rng.normal(0, 1 / np.sqrt(rows), (20_000, len(rows)))
    sums = means * rows
    whole = sums.sum(axis=1) / rows.sum()
    copies = (sums.sum(axis=1, keepdims=True) - sums) / (rows.sum() - rows)
    found = interval(whole, copies.T, 0.0, 0.95, group_rows=rows)
    assert float((found.error**2).mean()) == pytest.approx(1 / rows.sum(), rel=0.02)


@settings(max_examples=50, deadline=None)
@given(seed=seeds)
def test_law_the_order_of_groups_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, values, order = rng.uniform(50, 200, 12), rng.normal(5, 2, 12), rng.permutation(12)
    theta, copies = total(values, rows, 1e5)
    first = interval(theta, copies, 0.1, 0.95, group_rows=rows)
    second = interval(theta, copies[order], 0.1, 0.95, group_rows=rows[order])
    np.testing.assert_allclose([first.low, first.high], [second.low, second.high], rtol=1e-9)


@settings(max_examples=50, deadline=None)
@given(seed=seeds, factor=st.sampled_from([-3.0, 0.001, 1e6]), shift=st.sampled_from([0.0, -50.0, 1e4]))
def test_law_an_interval_moves_and_scales_with_its_unit(seed: int, factor: float, shift: float) -> None:
    rng = np.random.default_rng(seed)
    theta, copies = rng.normal(3, 1, 1), rng.gamma(1, 1, (10, 1))
    plain, changed = interval(theta, copies, 0.3, 0.9), interval(theta * factor + shift, copies * factor + shift, 0.3, 0.9)
    ends = np.sort([plain.low[0] * factor + shift, plain.high[0] * factor + shift])
    np.testing.assert_allclose([changed.low[0], changed.high[0]], ends, rtol=1e-6, atol=1e-6 * abs(factor))


@settings(max_examples=50, deadline=None)
@given(seed=seeds, share=st.floats(0.01, 0.95))
def test_law_more_confidence_and_more_looks_never_narrow(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    theta, copies = np.zeros(5), rng.exponential(1, (16, 5))
    narrow, wide = interval(theta, copies, share, 0.8), interval(theta, copies, share, 0.99)
    looks = [interval(theta, copies, share, 0.8, look=look) for look in (1, 2, 9)]
    for inner, outer in [(narrow, wide), (narrow, looks[0]), (looks[0], looks[1]), (looks[1], looks[2])]:
        assert np.all(outer.low <= inner.low)
        assert np.all(outer.high >= inner.high)


def test_law_the_error_probability_of_all_looks_adds_up() -> None:
    assert sum(0.05 / (look * (look + 1)) for look in range(1, 100_000)) == pytest.approx(0.05, abs=1e-6)


def test_skewness_lengthens_the_side_of_the_unread_values() -> None:
    values = np.array([1.0, 1.1, 0.9, 1.2, 0.8, 1.0, 1.1, 0.9, 1.0, 9.0])
    theta, copies = total(values, np.ones(10), 100)
    found = interval(theta, copies, 0.1, 0.95)
    assert found.high[0] - theta[0] > 1.5 * (theta[0] - found.low[0])


def test_everything_read_has_no_width() -> None:
    found = interval([5.0, np.nan], [[4.0, 1.0]] * 3, 1.0, 0.95, seen_in=[1, 1])
    np.testing.assert_array_equal(found.low, [5.0, np.nan])
    np.testing.assert_array_equal(found.high, [5.0, np.nan])
    np.testing.assert_array_equal(found.error, [0.0, 0.0])


def test_what_was_the_same_everywhere_has_no_interval() -> None:
    """A rare other value may be in the rest; six groups that differ from all others are the fewest that say something."""
    rng = np.random.default_rng(0)
    for differing in range(11):
        copies = np.full((10, 1), 7.0)
        copies[:differing, 0] += rng.normal(0, 0.1, differing)
        assert interval([7.0], copies, 0.1, 0.95).withheld[0] == (differing < FEWEST_SEEN - 1)


def test_what_cannot_be_trusted_is_withheld() -> None:
    copies = np.random.default_rng(0).normal(1, 0.1, (20, 4))
    copies[:6, 1] = np.nan
    copies[:5, 2] = np.nan
    found = interval([1.0, 1.0, 1.0, np.nan], copies, 0.1, 0.95)
    np.testing.assert_array_equal(found.withheld, [False, True, False, True])
    seen = interval([1.0] * 3, copies[:, [0, 0, 0]], 0.1, 0.95, seen_in=[FEWEST_SEEN - 1, FEWEST_SEEN, 20])
    np.testing.assert_array_equal(seen.withheld, [True, False, False])
    assert np.isnan(seen.low[0])
    assert np.isnan(seen.high[0])


@pytest.mark.parametrize("groups", range(FEWEST_UNITS))
def test_few_units_give_no_interval(groups: int) -> None:
    assert interval([1.0], np.ones((groups, 1)), 0.1, 0.95).withheld[0]


def test_infinite_replicates_are_missing_ones() -> None:
    copies = 1 + np.random.default_rng(0).normal(0, 0.1, (8, 1))
    copies[0] = np.inf
    assert not interval([1.0], copies, 0.1, 0.95).withheld[0]


def test_no_cells_give_no_intervals() -> None:
    assert interval([], np.empty((10, 0)), 0.1, 0.95).low.shape == (0,)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 95.0, float("nan")])
def test_confidence_is_a_probability(confidence: float) -> None:
    with pytest.raises(SchemaError, match="is usual"):
        interval([1.0], np.ones((8, 1)), 0.1, confidence)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_the_share_read_is_a_share(share: float) -> None:
    with pytest.raises(SchemaError, match="share read"):
        interval([1.0], np.ones((8, 1)), share, 0.95)


def test_shapes_must_fit() -> None:
    with pytest.raises(SchemaError, match="groups x cells"):
        interval([1.0, 2.0], np.ones((8, 1)), 0.1, 0.95)
    with pytest.raises(SchemaError, match="at least one row"):
        interval([1.0], np.ones((3, 1)), 0.1, 0.95, group_rows=[1, 0, 1])
    with pytest.raises(SchemaError, match="counted from 1"):
        interval([1.0], np.ones((8, 1)), 0.1, 0.95, look=0)
