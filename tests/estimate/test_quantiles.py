"""Quantiles from summaries of units: against the quantiles of all values, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearly.errors import SchemaError
from nearly.estimate.quantiles import Summaries, quantiles, summarize, summary_ranks


def summaries(seed: int, units: int = 12, discrete: bool = False) -> tuple[Summaries, np.ndarray]:
    """Summaries of units of unlike sizes, and all their values."""
    rng = np.random.default_rng(seed)
    parts = [rng.gamma(2, 1 + unit % 3, rng.integers(50, 900)) for unit in range(units)]
    parts = [np.floor(part) for part in parts] if discrete else parts
    made = Summaries.of([summarize(part) for part in parts], [len(part) for part in parts], range(units))
    return made, np.concatenate(parts)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rank=st.floats(0.02, 0.98))
def test_oracle_estimates_are_quantiles_of_all_values(seed: int, rank: float) -> None:
    """The rank of the estimate among all values is off by at most half a step of a summary, here 1/402, and a value."""
    made, values = summaries(seed)
    estimate = quantiles(made, rank, 0.1, 0.95).estimate[0]
    assert np.mean(values <= estimate) == pytest.approx(rank, abs=1 / 402 + 1 / 200)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), discrete=st.booleans())
def test_law_quantiles_and_their_bounds_rise_with_the_rank(seed: int, discrete: bool) -> None:
    made, _ = summaries(seed, discrete=discrete)
    found = quantiles(made, np.linspace(0.05, 0.95, 19), 0.1, 0.95)
    assert np.all(np.diff(found.estimate) >= 0)
    assert np.all(found.bounds.low <= found.estimate)
    assert np.all(found.bounds.high >= found.estimate)


def test_law_units_are_interchangeable_and_looks_widen() -> None:
    made, _ = summaries(5)
    order = np.random.default_rng(0).permutation(12)
    other = Summaries.of(made.points[order], made.counts[order], made.groups[order])
    first, second = quantiles(made, 0.3, 0.1, 0.95), quantiles(other, 0.3, 0.1, 0.95)
    np.testing.assert_allclose(first.bounds.low, second.bounds.low)
    later = quantiles(made, 0.3, 0.1, 0.95, look=3)
    assert later.bounds.low[0] < first.bounds.low[0] < first.bounds.high[0] < later.bounds.high[0]


def test_everything_read_has_no_width() -> None:
    made, _ = summaries(1)
    found = quantiles(made, [0.0, 0.5], 1.0, 0.95)
    np.testing.assert_array_equal(found.bounds.low, found.estimate)
    np.testing.assert_array_equal(found.bounds.high, found.estimate)


def test_the_ends_have_no_interval_and_few_units_neither() -> None:
    made, values = summaries(1)
    found = quantiles(made, [0.0, 1.0, 0.999], 0.1, 0.95)
    np.testing.assert_array_equal(found.bounds.withheld, [True, True, False])
    assert found.estimate[0] >= values.min()
    assert quantiles(summaries(1, units=1)[0], 0.5, 0.1, 0.95).bounds.withheld[0]


def test_one_value_and_equal_values() -> None:
    made = Summaries.of([summarize([3.0])] * 8, [1] * 8, range(8))
    found = quantiles(made, 0.5, 0.1, 0.95)
    assert (found.estimate[0], found.bounds.low[0], found.bounds.high[0]) == (3, 3, 3)
    assert len(summary_ranks()) == 201


def test_several_units_may_share_a_group() -> None:
    made, _ = summaries(2)
    shared = Summaries.of(made.points, made.counts, np.arange(12) % 6)
    assert not quantiles(shared, 0.5, 0.1, 0.95).bounds.withheld[0]


@pytest.mark.parametrize("ranks", [-0.1, 1.1, [0.5, np.nan]])
def test_ranks_are_shares(ranks: float | list[float]) -> None:
    with pytest.raises(SchemaError, match="between 0 and 1"):
        quantiles(summaries(0)[0], ranks, 0.1, 0.95)


def test_units_without_values_are_refused() -> None:
    with pytest.raises(SchemaError, match="leave it out"):
        summarize([])
    with pytest.raises(SchemaError, match="at least one value"):
        Summaries.of([[1.0, 2.0]], [0], [0])
    with pytest.raises(SchemaError, match="at least one value"):
        Summaries.of([[1.0, np.nan]], [2], [0])
    with pytest.raises(SchemaError, match="at least one value"):
        Summaries.of(np.empty((0, 3)), [], [])
    with pytest.raises(SchemaError, match="do not fit"):
        Summaries.of([[1.0, 2.0]], [2, 2], [0])
