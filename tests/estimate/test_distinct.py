"""count(distinct) from incidence in groups: brute-force replicates, soundness, and the estimates that cast doubt."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearly.errors import SchemaError
from nearly.estimate.distinct import distinct, lower_estimate


def incidence_of(seen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many keys of each group were seen in k groups, from groups x keys."""
    times = seen.sum(axis=0)
    return np.stack([np.bincount(times[each], minlength=len(seen) + 1)[1:] for each in seen])


def drawn(keys: int, groups: int, seed: int) -> NDArray[np.bool_]:
    rng = np.random.default_rng(seed)
    return rng.random((groups, keys)) < rng.beta(0.5, 6, keys)


def test_replicates_are_close_to_fits_of_their_own() -> None:
    """One Newton step from the common fit instead of a fit for each replicate, up to a shift of all."""
    seen = drawn(4000, 12, seed=1)
    found = distinct(incidence_of(seen), 0.1)
    alone = [distinct(incidence_of(np.delete(seen, group, axis=0)), 0.1 * 11 / 12).estimate for group in range(12)]
    centred = np.array(alone) - np.mean(alone) + found.estimate
    assert found.replicates.mean() == pytest.approx(found.estimate)
    assert np.corrcoef(found.replicates, centred)[0, 1] > 0.8
    assert np.std(found.replicates) == pytest.approx(np.std(centred), rel=0.4)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), groups=st.integers(6, 32), share=st.floats(0.01, 0.9))
def test_law_never_fewer_keys_than_seen_nor_an_empty_interval(seed: int, groups: int, share: float) -> None:
    seen = drawn(200, groups, seed)
    found = distinct(incidence_of(seen), share)
    ends = found.interval(0.95)
    assert ends.low[0] >= seen.any(axis=0).sum()
    assert ends.low[0] <= found.estimate + 1e-6 <= ends.high[0] + 2e-6


@pytest.mark.parametrize(("kind", "share"), [("alike", 0.1), ("alike", 0.6), ("power law", 0.3), ("rows of 1 to 7", 0.3)])
def test_oracle_estimates_are_near_the_number_of_keys(kind: str, share: float) -> None:
    """Of 400 units a share is read; keys occur in units at random."""
    rng = np.random.default_rng(4)
    times = {
        "alike": rng.poisson(9, 5000),
        "power law": np.minimum(rng.zipf(1.8, 5000), 400),
        "rows of 1 to 7": rng.integers(1, 8, 5000),
    }
    units = [np.unique(rng.integers(0, 400, each)) for each in times[kind] if each]
    read, groups = round(400 * share), 32
    seen = np.zeros((groups, len(units)), dtype=bool)
    for key, found in enumerate(units):
        seen[found[found < read] % groups, key] = True
    estimate = distinct(incidence_of(seen), share)
    assert estimate.estimate == pytest.approx(len(units), rel=0.06)
    assert estimate.interval(0.95).low[0] <= len(units) <= estimate.interval(0.95).high[0]


def test_when_no_key_was_seen_once_all_are_known() -> None:
    found = distinct(incidence_of(np.ones((10, 7), dtype=bool)), 0.2)
    ends = found.interval(0.95)
    assert (found.estimate, ends.low[0], ends.high[0]) == (7, 7, 7)


def test_all_read_counts_exactly() -> None:
    found = distinct(incidence_of(drawn(300, 8, seed=2)), 1.0)
    assert found.estimate == found.model.seen
    assert found.interval(0.95).high[0] == found.model.seen


def test_unique_keys_leave_doubt_downwards() -> None:
    seen = np.repeat(np.eye(10, dtype=bool), 20, axis=1)
    found = distinct(incidence_of(seen), 0.05)
    assert found.estimate == pytest.approx(4000, rel=0.02)
    assert found.interval(0.95).low[0] < 3500


def test_looks_widen() -> None:
    found = distinct(incidence_of(drawn(2000, 12, seed=3)), 0.1)
    once, later = found.interval(0.95), found.interval(0.95, look=4)
    assert later.low[0] <= once.low[0]
    assert later.high[0] > once.high[0]


def test_chao_and_lins_formula() -> None:
    assert lower_estimate([100, 50, 0, 0], 0.5) == pytest.approx(150 + 100**2 / (2 * 50 * 4 / 3 + 100))
    assert lower_estimate([100, 0], 1.0) == 100


@pytest.mark.parametrize("table", [[], [[]], [[1, 2]], [1, 2], [[[1]]]])
def test_incidence_is_square(table: list[object]) -> None:
    with pytest.raises(SchemaError, match="groups x groups"):
        distinct(table, 0.5)
