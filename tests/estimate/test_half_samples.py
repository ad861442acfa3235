"""Half-samples: their law, and the case that leaving single groups out gets wrong."""

from __future__ import annotations

import numpy as np
import pytest

from nearly.estimate.half_samples import balanced_weights, lengthened
from nearly.estimate.intervals import Interval, interval


@pytest.mark.parametrize("groups", [2, 7, 16, 31, 32])
def test_law_every_replicate_has_as_many_rows(groups: int) -> None:
    rows = np.random.default_rng(groups).integers(50, 150, groups).astype(float)
    factors = balanced_weights(rows, 0.3)
    np.testing.assert_allclose(factors @ rows, rows.sum())
    assert factors.min() > 0


@pytest.mark.parametrize(("groups", "share"), [(8, 0.0), (16, 0.5), (32, 0.1), (32, 0.9)])
def test_law_mean_square_is_nearly_the_variance_of_a_total(groups: int, share: float) -> None:
    rng = np.random.default_rng(groups)
    values = rng.normal(100, 10, groups)
    rows = np.full(groups, 50.0)
    totals = balanced_weights(rows, share) @ values
    variance = (1 - share) * ((values - values.mean()) ** 2).sum()
    assert 0.95 * variance < np.mean((totals - values.sum()) ** 2) < (1 + 3 / groups) * variance


def test_nothing_moves_when_all_is_read() -> None:
    np.testing.assert_allclose(balanced_weights(np.array([3.0, 4.0, 5.0]), 1.0), 1.0)


def test_oracle_totals_of_keys_that_a_test_picks() -> None:
    """Sums over the keys whose own average is above a limit, as some keys are near to it: half-samples see the jumps."""
    single, half, tries = 0, 0, 300
    for seed in range(tries):
        rng = np.random.default_rng(seed)
        everything = rng.normal(rng.normal(0, 0.1, 6), 1.0, (320, 6))  # units x keys
        sample = everything[rng.permutation(320)[:32]]

        def picked(weights: np.ndarray, rows: np.ndarray = sample) -> float:
            means = weights @ rows / weights.sum()
            return float(((means > 0) * (means + 3)).sum() * 320)

        truth = picked(np.ones(320), everything)
        theta = np.array([picked(np.ones(32))])
        ones = np.array([[picked(np.delete(np.ones(32), r), np.delete(sample, r, axis=0))] for r in range(32)])
        found = interval(theta, ones, 0.1, 0.95)
        found = Interval(*(np.where(found.withheld, theta, each) for each in (found.low, found.high)), found.error)
        halves = np.array([[picked(each)] for each in balanced_weights(np.ones(32), 0.1)])
        longer = lengthened(found, theta, halves, 32, 0.05)
        single += bool(found.low[0] <= truth <= found.high[0])
        half += bool(longer.low[0] <= truth <= longer.high[0])
    assert single < 0.9 * tries
    assert half > 0.93 * tries


def test_withheld_stays_withheld() -> None:
    nothing = Interval(np.array([np.nan]), np.array([np.nan]), np.array([np.nan]))
    assert lengthened(nothing, np.array([1.0]), np.array([[0.5], [1.5]]), 2, 0.05).withheld.all()


def test_cells_that_many_replicates_lack_are_withheld() -> None:
    found = Interval(np.array([0.0, 0.0]), np.array([2.0, 2.0]), np.array([1.0, 1.0]))
    copies = np.array([[1.1, np.nan], [0.9, np.nan], [1.2, 1.0], [0.8, 1.0]])
    assert lengthened(found, np.array([1.0, 1.0]), copies, 4, 0.05).withheld.tolist() == [False, True]
