"""count(distinct) from incidence in groups: how far off it is over many samples, soundness, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearly.errors import SchemaError
from nearly.estimate.distinct import distinct


def incidence_of(seen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many keys of each group were seen in k groups, from groups x keys."""
    times = seen.sum(axis=0)
    return np.stack([np.bincount(times[each], minlength=len(seen) + 1)[1:] for each in seen])


def drawn(keys: int, groups: int, seed: int) -> NDArray[np.bool_]:
    rng = np.random.default_rng(seed)
    return rng.random((groups, keys)) < rng.beta(0.5, 6, keys)


def sampled(units_of: list[NDArray[np.int64]], units: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Which of 32 groups sees which key when a share of the units is read in random order."""
    place = np.random.default_rng(seed).permutation(units)
    read = round(units * share)
    seen = np.zeros((32, len(units_of)), dtype=bool)
    for key, found in enumerate(units_of):
        order = place[found]
        seen[order[order < read] % 32, key] = True
    return seen


@pytest.mark.parametrize("together", [1, 40])
def test_oracle_errors_are_those_over_many_samples(together: int) -> None:
    """Also for keys that come in bunches: then the spread is as if there were fewer keys."""
    rng = np.random.default_rng(5)
    kinds = [rng.choice(400, size, replace=False) for size in rng.integers(1, 12, 1600 // together)]
    keys = [each for each in kinds for _ in range(together)]
    results = [distinct(incidence_of(sampled(keys, 400, 0.4, seed)), 0.4) for seed in range(60)]
    spread = np.std([each.estimate for each in results])
    ends = [each.interval(0.95) for each in results]
    assert np.median([each.error[0] for each in ends]) == pytest.approx(spread, rel=0.4)
    assert np.mean([each.low[0] <= len(keys) <= each.high[0] for each in ends]) >= 0.85


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), groups=st.integers(6, 32), share=st.floats(0.01, 0.9))
def test_law_never_fewer_keys_than_seen_nor_an_empty_interval(seed: int, groups: int, share: float) -> None:
    seen = drawn(200, groups, seed)
    found = distinct(incidence_of(seen), share)
    ends = found.interval(0.95)
    assert ends.low[0] >= seen.any(axis=0).sum()
    assert ends.low[0] <= found.estimate <= ends.high[0]
    assert (ends.low[0] % 1, ends.high[0] % 1) == (0, 0)


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


def test_common_keys_say_nothing_about_rare_ones() -> None:
    """Thirteen keys of one row each are all missed in a fifth of the table with probability 0.8^13 = 5.5 %."""
    found = distinct(incidence_of(np.ones((10, 7), dtype=bool)), 0.2)
    ends = found.interval(0.95)
    assert (found.estimate, ends.low[0], ends.high[0]) == (7, 7, 7 + 13)


def test_all_read_counts_exactly() -> None:
    found = distinct(incidence_of(drawn(300, 8, seed=2)), 1.0)
    assert found.estimate == found.seen
    assert found.interval(0.95).high[0] == found.seen


def test_unique_keys_leave_doubt_downwards() -> None:
    seen = np.repeat(np.eye(10, dtype=bool), 20, axis=1)
    found = distinct(incidence_of(seen), 0.05)
    assert found.estimate == pytest.approx(4000, rel=0.02)
    assert found.interval(0.95).low[0] < 3500


def test_groups_of_unlike_size_are_told_from_keys_that_come_together() -> None:
    """Twice the rows hold twice the unique keys; without the rows that would look like an error."""
    rows = np.tile([1, 2], 8)
    seen = np.repeat(np.eye(16, dtype=bool), 20 * rows, axis=1)
    wide, narrow = distinct(incidence_of(seen), 0.3), distinct(incidence_of(seen), 0.3, rows)
    assert wide.estimate == narrow.estimate
    assert narrow.errors.variance < wide.errors.variance / 10


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_few_groups_give_no_interval(groups: int) -> None:
    found = distinct(incidence_of(np.repeat(np.eye(groups, dtype=bool), 5, axis=1)), 0.3)
    assert found.estimate > found.seen
    assert found.interval(0.95).withheld[0]


@pytest.mark.parametrize("share", [1e-6, 0.97, 0.9999])
def test_shares_close_to_nothing_and_to_all_are_possible(share: float) -> None:
    seen = drawn(300, 12, seed=6)
    ends = distinct(incidence_of(seen), share).interval(0.95)
    assert seen.any(axis=0).sum() <= ends.low[0] <= ends.high[0] < np.inf


def test_looks_widen() -> None:
    found = distinct(incidence_of(drawn(2000, 12, seed=3)), 0.1)
    once, later = found.interval(0.95), found.interval(0.95, look=4)
    assert later.low[0] <= once.low[0]
    assert later.high[0] > once.high[0]


@pytest.mark.parametrize("table", [[], [[]], [[1, 2]], [1, 2], [[[1]]]])
def test_incidence_is_square(table: list[object]) -> None:
    with pytest.raises(SchemaError, match="groups x groups"):
        distinct(table, 0.5)


@pytest.mark.parametrize("share", [0.0, 1.1, float("nan")])
def test_the_share_read_is_a_share(share: float) -> None:
    with pytest.raises(SchemaError, match="share read"):
        distinct([[1]], share)


@pytest.mark.parametrize("rows", [[1.0], [1.0, 0.0], [[1.0, 1.0]]])
def test_every_group_has_rows(rows: list[object]) -> None:
    with pytest.raises(SchemaError, match="numbers of rows"):
        distinct([[3, 0], [3, 0]], 0.5, rows)
