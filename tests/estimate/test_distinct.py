"""count(distinct) from incidence in groups: brute-force replicates, soundness, and the estimates that cast doubt."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearly.errors import SchemaError
from nearly.estimate.distinct import distinct, lower_estimate, series_estimate
from nearly.estimate.incidence import fit


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
    alone = []
    for group in range(12):
        times = np.delete(seen, group, axis=0).sum(axis=0)
        alone.append(fit(np.bincount(times, minlength=12)[1:], 0.1 * 11 / 12).estimated)
    centred = np.array(alone) - np.mean(alone) + found.estimate
    assert found.replicates.mean() == pytest.approx(found.estimate)
    assert np.corrcoef(found.replicates, centred)[0, 1] > 0.98
    assert np.std(found.replicates) == pytest.approx(np.std(centred), rel=0.3)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), groups=st.integers(6, 32), share=st.floats(0.01, 0.9))
def test_law_never_fewer_keys_than_seen_nor_an_empty_interval(seed: int, groups: int, share: float) -> None:
    seen = drawn(200, groups, seed)
    found = distinct(incidence_of(seen), share)
    ends = found.interval(0.95)
    assert ends.low[0] >= seen.any(axis=0).sum()
    assert ends.low[0] <= found.estimate + 1e-6 <= ends.high[0] + 2e-6


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


def test_known_estimates() -> None:
    assert lower_estimate([100, 50, 0, 0], 0.5) == pytest.approx(150 + 100**2 / (2 * 50 * 4 / 3 + 100))
    assert series_estimate([100, 50, 10], 0.5) == pytest.approx(160 + 100 - 50 + 10)
    assert np.isfinite(series_estimate([100, 50, 10], 0.3))


@pytest.mark.parametrize("table", [[], [[]], [[1, 2]], [1, 2], [[[1]]]])
def test_incidence_is_square(table: list[object]) -> None:
    with pytest.raises(SchemaError, match="groups x groups"):
        distinct(table, 0.5)
