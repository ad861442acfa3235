"""Keys that were not seen: the sampling probabilities, the derivatives, and the ends of the profile likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import hypergeom

from nearly.estimate.unseen import Unseen, hypergeometric

COUNTS = {
    "power law": [400.0, 90, 45, 28, 19, 14, 11, 9, 7, 6, 5, 5],
    "nearly alike": [120.0, 260, 380, 410, 350, 250, 150, 80, 35, 12, 4, 1],
    "once each": [900.0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
}


def counts(kind: str) -> NDArray[np.float64]:
    return np.array(COUNTS[kind])


def test_oracle_hypergeometric() -> None:
    total = np.array([1.0, 3.0, 17.0, 40.0])
    ours = hypergeometric(12, 40, total)
    theirs = hypergeom.pmf(np.arange(13)[:, None], 40, total[None].astype(int), 12)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("population", [40.7, 12.01])
def test_a_key_of_one_group_is_missed_with_the_share_that_is_not_read(population: float) -> None:
    assert hypergeometric(12, population, np.array([1.0]))[0, 0] == pytest.approx(1 - 12 / population)


@pytest.mark.parametrize("kind", COUNTS)
def test_law_slopes_are_derivatives(kind: str) -> None:
    model = Unseen.of(counts(kind), 60)
    for place in range(len(model.place)):
        step = np.zeros(len(model.place))
        step[place] = 1e-5
        after, before = model.spectrum.at(model.place + step), model.spectrum.at(model.place - step)
        assert (after.ratio - before.ratio) / 2e-5 == pytest.approx(model.slopes.ratio[place], rel=1e-4, abs=1e-8)
        assert after.likelihood <= model.state.likelihood + 0.01


@pytest.mark.parametrize("kind", ["power law", "nearly alike"])
def test_law_influences_are_derivatives(kind: str) -> None:
    """Up to the difference between expected and observed information."""
    model = Unseen.of(counts(kind), 60)
    for k, influence in enumerate(model.influences()):
        more = counts(kind)
        more[k] += 2
        change = (Unseen.of(more, 60).estimate - model.estimate) / 2
        assert change == pytest.approx(influence, rel=0.3, abs=0.3)


@pytest.mark.parametrize("kind", COUNTS)
def test_law_ends_contain_the_estimate_and_move_out_with_the_quantile(kind: str) -> None:
    model = Unseen.of(counts(kind), 60)
    lower = [model.end(quantile, -1) for quantile in (1.0, 2.0, 3.0)]
    upper = [model.end(quantile, 1) for quantile in (1.0, 2.0, 3.0)]
    assert 0 <= lower[2] < lower[1] < lower[0] <= model.estimate <= upper[0]
    assert upper[0] <= upper[1] * 1.001 <= upper[2] * 1.002
    assert upper[2] <= model.keys * (60 / 12 - 1) * 1.001


def test_data_that_tell_much_have_nearly_symmetric_ends() -> None:
    """Then the profile likelihood is a parabola, and its ends are those of the usual standard error."""
    model = Unseen.of(1000 * counts("power law"), 24)
    reach = 1.96 * np.sqrt(sum(model.variances()))
    assert model.end(1.96, 1) - model.estimate == pytest.approx(reach, rel=0.2)
    assert model.estimate - model.end(1.96, -1) == pytest.approx(reach, rel=0.2)
