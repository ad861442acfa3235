"""Intervals of quantiles: they cover, also for whole numbers and groups whose rows are alike, and follow order alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearly.estimate.evidence import Evidence
from nearly.estimate.intervals import FEWEST_SEEN
from nearly.estimate.quantiles import OrderedValues

GROUPS, ROWS = 24, 40


def read(share: float = 0.1, confidence: float = 0.95, look: int | None = None) -> Evidence:
    return Evidence(share, GROUPS, np.full(GROUPS, float(ROWS)), confidence, look)


def values(rng: np.random.Generator, alike: float) -> tuple[np.ndarray, np.ndarray]:
    """Normal values in groups whose rows are the more alike, the larger `alike` is."""
    levels = np.repeat(rng.normal(0, alike, GROUPS), ROWS)
    return levels + rng.normal(0, 1, GROUPS * ROWS), np.repeat(np.arange(GROUPS), ROWS)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("alike", [0.0, 1.0])
@pytest.mark.parametrize("step", [None, 0.5])
def test_intervals_cover(p: float, alike: float, step: float | None) -> None:
    """Of 400 intervals with true coverage 0.95 fewer than 90 % cover once in 50,000 times."""
    rng = np.random.default_rng(7)
    truth = float(np.quantile(rng.normal(0, np.hypot(1, alike), 1_000_000), p))
    covered = []
    for _ in range(400):
        found, groups = values(rng, alike)
        final = truth if step is None else np.round(truth / step) * step
        made = OrderedValues.of(found if step is None else np.round(found / step) * step, groups).interval(p, read(0.0))
        covered.append(made.low[0] <= final <= made.high[0])
    assert np.mean(covered) >= 0.9


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), p=st.floats(0.05, 0.95))
def test_law_the_interval_follows_a_rising_function(seed: int, p: float) -> None:
    """interval(f(x)) = f(interval(x)), unless the estimate lies between two values."""
    found, groups = values(np.random.default_rng(seed), 0.5)
    first, second = (OrderedValues.of(each, groups).interval(p, read()) for each in (found, np.exp(found)))
    assert second.low[0] == pytest.approx(np.exp(first.low[0]))
    assert second.high[0] == pytest.approx(np.exp(first.high[0]))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_law_more_confidence_and_more_looks_never_narrow(seed: int) -> None:
    made = OrderedValues.of(*values(np.random.default_rng(seed), 0.5))
    usual, surer, second = (made.interval(0.5, read(confidence=each)) for each in (0.9, 0.95, 0.99))
    looked = made.interval(0.5, read(confidence=0.9, look=3))
    assert surer.low[0] <= usual.low[0] <= made.quantile(0.5) <= usual.high[0] <= surer.high[0]
    assert second.low[0] <= surer.low[0]
    assert looked.low[0] <= usual.low[0]


def test_without_evidence_there_is_no_interval() -> None:
    """One value everywhere, no value, and values from few groups say nothing about the rest."""
    groups = np.repeat(np.arange(GROUPS), ROWS)
    found, of = values(np.random.default_rng(0), 0.5)
    assert OrderedValues.of(np.full(GROUPS * ROWS, 3.0), groups).interval(0.5, read()).withheld[0]
    assert OrderedValues.of(np.empty(0), np.empty(0, dtype=np.int64)).interval(0.5, read()).withheld[0]
    for seen in range(1, GROUPS):
        few = of < seen
        assert OrderedValues.of(found[few], of[few]).interval(0.5, read()).withheld[0] == (seen < FEWEST_SEEN)


def test_intervals_have_a_width() -> None:
    """Of values that are nearly all equal, the next ones on both sides are not excluded."""
    groups = np.repeat(np.arange(GROUPS), ROWS)
    found = np.where(np.arange(GROUPS * ROWS) % 40 == groups % 40, 5.0, 3.0)
    found[::97] = 1.0
    made = OrderedValues.of(found, groups).interval(0.5, read())
    assert (made.low[0], made.high[0]) == (1.0, 5.0)


def test_an_end_that_no_value_bounds_is_not_given() -> None:
    """Of the largest of few values only a lower end is known."""
    found = OrderedValues.of(np.arange(96.0), np.arange(96) % 24).interval(0.92, read(confidence=0.999))
    assert np.isnan(found.high[0])
    assert found.low[0] > 40
