"""Corrections: mixtures of two estimates, and intervals of those that rest on few changes."""

from __future__ import annotations

import numpy as np
import pytest

from nearly.estimate.corrected_quantiles import QuantileWeights, UnitValues, corrected_quantile
from nearly.estimate.corrections import Estimates, interval_of, mixed, share_of_correction, shrunk
from nearly.estimate.evidence import Evidence
from nearly.plan.functions.tickets import TICKETS
from nearly.views.sampling.strata import CORRECTED, DIRECT, Strata

GROUPS = 32


def estimates(theta: float, spread: float, seed: int, groups: int = GROUPS) -> Estimates:
    """An estimate whose replicates vary by so much, in some of the groups only."""
    deviations = np.zeros(GROUPS)
    deviations[:groups] = np.random.default_rng(seed).normal(0, spread, groups)
    return Estimates(np.array([theta]), theta + deviations[:, None])


def behind(share: float = 0.1) -> Evidence:
    return Evidence(share, GROUPS, np.ones(GROUPS), 0.95)


def test_clearly_better_estimate_is_taken_alone() -> None:
    rough, fine = estimates(100.0, 5.0, 1), estimates(101.0, 0.5, 2)
    assert share_of_correction(rough, fine)[0] == 1
    assert share_of_correction(fine, rough)[0] == 0


def test_mixture_varies_less_than_both() -> None:
    a, b = estimates(100.0, 2.0, 3), estimates(100.0, 2.2, 4)
    found = mixed(a, b, share_of_correction(a, b))
    assert (found.deviations**2).sum() <= min((a.deviations**2).sum(), (b.deviations**2).sum())


def test_missing_estimate_has_no_share() -> None:
    nothing = Estimates(np.array([np.nan]), np.full((GROUPS, 1), np.nan))
    assert share_of_correction(nothing, estimates(1.0, 0.1, 5))[0] == 1
    assert share_of_correction(estimates(1.0, 0.1, 5), nothing)[0] == 0


def test_few_changes_have_an_interval_as_long_as_that_of_the_direct_estimate() -> None:
    """It lies around the corrected value, however far off the sample was."""
    corrected = estimates(100.0, 0.01, 6, groups=4)
    assert corrected.support[0] == 4
    for theta in (103.0, 170.0):
        direct = estimates(theta, 2.0, 7)
        found = interval_of(corrected, corrected.support, direct, behind())
        own = behind().interval(direct.theta, direct.copies, direct.support)
        assert found.low[0] == pytest.approx(100 + own.low[0] - theta)
        assert found.high[0] == pytest.approx(100 + own.high[0] - theta)


def test_few_changes_reach_what_they_would_say_weighed_up() -> None:
    corrected, direct = estimates(100.0, 50.0, 6, groups=4), estimates(103.0, 2.0, 7)
    found = interval_of(corrected, corrected.support, direct, behind())
    assert found.low[0] <= corrected.copies.min()
    assert found.high[0] >= corrected.copies.max()


def test_without_any_evidence_there_is_no_interval() -> None:
    corrected, direct = estimates(100.0, 0.01, 8, groups=4), estimates(103.0, 2.0, 9, groups=3)
    assert interval_of(corrected, corrected.support, direct, behind()).withheld[0]


def test_single_change_is_counted_once() -> None:
    change, share = 7.0, 0.1
    theta = 50 + change / share
    copies = np.full((GROUPS, 1), 50 + change * GROUPS / ((GROUPS - 1) * share))
    copies[3] = 50
    found = shrunk(Estimates(np.array([theta]), copies), np.array([50 + change]), np.array([50.0]), share)
    assert found[0] == pytest.approx(50 + change, rel=0.02)


def test_many_changes_keep_their_weight() -> None:
    corrected = estimates(200.0, 0.1, 10)
    assert shrunk(corrected, np.array([110.0]), np.array([100.0]), 0.1)[0] == pytest.approx(200, rel=0.01)


def test_many_rows_of_a_new_group_keep_their_weight() -> None:
    """The stale sum of a group that was not there is null."""
    corrected = estimates(200.0, 0.1, 10)
    assert shrunk(corrected, np.array([20.0]), np.array([np.nan]), 0.1)[0] == pytest.approx(200, rel=0.01)


def test_negative_weights_take_values_away() -> None:
    values = UnitValues.of(np.array([1.0, 2.0, 3.0, 4.0, 100.0]), np.array([0, 0, 0, 0, 1]))
    assert values.weighted(np.array([1.0, 1.0])).quantile(0.5) == 3
    assert values.weighted(np.array([1.0, 0.0])).quantile(0.5) == 2.5
    doubled = UnitValues.of(np.array([1.0, 2.0, 3.0, 3.0]), np.array([0, 0, 0, 1]))
    assert doubled.weighted(np.array([1.0, -1.0])).quantile(1.0) <= 3


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.75, 0.9, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_law_rows_that_came_and_went_again_do_not_count(seed: int, p: float) -> None:
    """Of equal values as of different ones, in whatever order they stand."""
    make = np.random.default_rng(seed)
    kept, gone = make.integers(0, 4, 40).astype(float), make.integers(0, 4, 60).astype(float)
    values = np.concatenate([kept, gone, gone])
    units = np.concatenate([np.zeros(100, np.int64), np.ones(60, np.int64)])
    for signs in (np.array([3.0, -3.0]), np.array([3.0, 3.0])):
        given = values if signs[1] < 0 else kept
        unit = units if signs[1] < 0 else make.integers(0, 2, 40)
        assert UnitValues.of(given, unit).weighted(signs).quantile(p) == pytest.approx(float(np.quantile(kept, p)))


def test_quantiles_at_the_edge_of_a_common_value_are_not_sure() -> None:
    """Nine tenths of the values are 0, about: the 90th percentile may be any of the least others."""
    make = np.random.default_rng(3)
    strata, held = Strata(0.1), 0
    weights = QuantileWeights(*(each for kind in (DIRECT, CORRECTED) for each in (strata.weights(kind), strata.copies(kind))))
    for _ in range(60):
        values = np.where(make.random(4_000) < 0.9, 0.0, make.exponential(50, 4_000))
        tickets = make.integers(0, TICKETS, 4_000)
        drawn = tickets < strata.bound
        units = strata.units_of(strata.drawn, tickets[drawn]).astype(np.int64)
        _, found = corrected_quantile(UnitValues.of(values[drawn], units), 0.9, weights, behind(), "aqp")
        held += bool(found.low[0] <= np.quantile(values, 0.9) <= found.high[0])
    assert held >= 54


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["corr", "aqp", "auto"])
def test_quantiles_of_values_that_are_all_taken_away(method: str) -> None:
    """A correction that takes away as much as there was leaves the direct estimate."""
    values = UnitValues.of(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 0, 1, 1]))
    ones = np.ones((GROUPS, 2))
    direct, taken = np.array([1.0, 1.0]), np.array([1.0, -1.0])
    for weights in (
        QuantileWeights(direct, ones, taken, ones),
        QuantileWeights(taken, ones, direct, ones),
        QuantileWeights(taken, ones, taken, ones),
    ):
        theta, _ = corrected_quantile(values, 0.5, weights, behind(), method)
        expected = direct if weights.direct is direct or (weights.corrected is direct and method != "aqp") else taken
        assert theta == pytest.approx(values.weighted(expected).quantile(0.5), nan_ok=True)


def test_what_rounding_leaves_of_values_that_cancel_is_nothing() -> None:
    """All drawn rows whose value is not 0 went: that their sum is 1e-13 is no evidence of how far it is off."""
    make = np.random.default_rng(0)
    left = Estimates(np.array([1e-13, 5.0]), make.normal([0.0, 5.0], 1e-13, (GROUPS, 2))).without_rounding(
        np.array([600.0, np.nan])
    )
    assert not left.theta[0]
    assert not left.copies[:, 0].any()
    assert left.theta[1] == 5
    assert behind().interval(left.theta, left.copies, [GROUPS, GROUPS]).withheld.all()
