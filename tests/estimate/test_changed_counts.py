"""Numbers of rows that few changes correct: their limits hold for any number of changes, and are close where few were drawn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from nearly.estimate.changed_counts import interval_of_count
from nearly.estimate.corrections import Estimates, interval_of
from nearly.estimate.evidence import Evidence

GROUPS, TRIALS, STORED = 32, 400, 2_000

Floats = NDArray[np.float64]


def drawn(sizes: Floats, share: float, make: np.random.Generator) -> Floats:
    """How many rows each group of tickets has in many samples, of clusters of rows that share a ticket."""
    tickets = make.random((TRIALS, len(sizes)))
    group = np.where(tickets < share, (tickets / share * GROUPS).astype(int), GROUPS)
    return np.array([np.bincount(each, sizes, GROUPS + 1)[:GROUPS] for each in group]).T


def estimates(stale: float, of_groups: Floats, share: float) -> Estimates:
    total = of_groups.sum(axis=0)
    return Estimates(stale + total / share, stale + GROUPS / ((GROUPS - 1) * share) * (total - of_groups))


def sizes_of(count: int, largest: int, make: np.random.Generator) -> Floats:
    return make.integers(1, largest + 1, count).astype(float)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.4])
@pytest.mark.parametrize("largest", [1, 7])
@pytest.mark.parametrize(("came", "went"), [(0, 0), (3, 0), (0, 25), (40, 10), (80, 80)])
def test_limits_hold(came: int, went: int, largest: int, share: float) -> None:
    make = np.random.default_rng(came + went + largest)
    stored, plus, minus = (sizes_of(count, largest, make) for count in (STORED, came, went))
    change = drawn(plus, share, make) - drawn(minus, share, make)
    stale, truth = float(stored.sum()), float(stored.sum() + plus.sum() - minus.sum())
    corrected, direct = estimates(stale, change, share), estimates(0.0, drawn(stored, share, make) + change, share)
    behind = Evidence(share, GROUPS, np.ones(GROUPS), 0.95)
    found = interval_of_count(corrected, np.full(TRIALS, stale), direct, behind)
    given = ~found.withheld
    assert given.mean() >= 0.98
    assert ((found.low <= truth) & (truth <= found.high))[given].mean() >= 0.93
    assert ((found.low <= corrected.theta) & (corrected.theta <= found.high))[given].all()
    if came + went <= 25:
        usual = interval_of(corrected, corrected.support, direct, behind)
        assert np.nanmedian((found.high - found.low) / (usual.high - usual.low)) < 0.5


def test_without_a_change_in_the_sample_as_many_are_allowed_as_could_be_missed() -> None:
    """Of 35 changes one is drawn with a probability of 97.5 percent, where a tenth is."""
    nothing = Estimates(np.array([5_000.0]), np.full((GROUPS, 1), 5_000.0))
    found = interval_of_count(nothing, np.array([5_000.0]), nothing, Evidence(0.1, GROUPS, np.ones(GROUPS), 0.95))
    assert found.low[0] == pytest.approx(4_965, abs=0.5)
    assert found.high[0] == pytest.approx(5_035, abs=0.5)


def test_rows_that_come_in_heaps_have_none() -> None:
    heaps = np.zeros((GROUPS, 1))
    heaps[:8] = 40.0
    corrected, direct = estimates(5_000.0, heaps, 0.1), estimates(0.0, heaps + 15, 0.1)
    found = interval_of_count(corrected, np.array([5_000.0]), direct, Evidence(0.1, GROUPS, np.ones(GROUPS), 0.95))
    assert found.withheld[0]


def test_cells_of_which_nothing_was_drawn_lose_as_many_rows_at_once_as_others() -> None:
    """Ten rows share each ticket: what may have gone unseen are 35 times ten rows, where 35 are of single ones."""
    make = np.random.default_rng(1)
    clusters = 10.0 * make.poisson(3, (GROUPS, 20))
    rows = np.concatenate([clusters, np.zeros((GROUPS, 1))], axis=1)
    direct = estimates(0.0, rows, 0.1)
    stale = np.append(direct.theta[:-1], 500.0)
    corrected = Estimates(stale, np.tile(stale, (GROUPS, 1)))
    behind = Evidence(0.1, GROUPS, np.ones(GROUPS), 0.95)
    found = interval_of_count(corrected, stale, direct, behind)
    assert found.high[-1] - 500 == pytest.approx(350, rel=0.2)
    alone = (Estimates(each.theta[-1:], each.copies[:, -1:]) for each in (corrected, direct))
    told = interval_of_count(next(alone), stale[-1:], next(alone), behind, 10.0)
    assert told.high[0] - 500 == pytest.approx(350, rel=0.01)
