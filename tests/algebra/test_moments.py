"""Moments of unions and quantiles, against numpy and scipy."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import nearly
from nearly.algebra import moments
from nearly.algebra.moments import merged, pooled_freedom, quantile

NUMBERS = st.lists(st.floats(-1e6, 1e6), max_size=30)


@settings(max_examples=50, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=5))
def test_moments_of_a_union_are_those_of_its_rows(parts: list[list[float]]) -> None:
    """Law: merging does not depend on how rows were cut into parts."""
    summaries = [(float(len(part)), float(np.mean(part)), float(np.var(part) * len(part))) for part in parts if part]
    every = [value for part in parts for value in part]
    count, mean, squares = merged(summaries)
    assert count == len(every)
    if every:
        assert mean == pytest.approx(np.mean(every), abs=1e-6)
        assert squares == pytest.approx(np.var(every) * len(every), rel=1e-6, abs=1e-3)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("freedom", [1, 2, 10, 1_000])
def test_quantiles_are_those_of_student(confidence: float, freedom: int) -> None:
    assert quantile(confidence, freedom) == pytest.approx(stats.t.ppf(0.5 + confidence / 2, freedom))


def test_without_variance_the_normal_distribution_serves() -> None:
    assert pooled_freedom(0.0, 0.0) is None
    assert quantile(0.95) == pytest.approx(1.959964)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -3.0, 95])
def test_a_confidence_is_a_probability(confidence: float) -> None:
    with pytest.raises(nearly.SchemaError, match="between 0 and 1"):
        quantile(confidence)


def test_the_examples_hold() -> None:
    assert doctest.testmod(moments).failed == 0
