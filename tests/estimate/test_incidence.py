"""The growth of keys: laws of scales and weights, and comparison with the naive choices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearly.errors import SchemaError
from nearly.estimate.incidence import fit

Integers = NDArray[np.int64]
frequencies = st.lists(st.integers(0, 1000), min_size=2, max_size=32).filter(lambda counts: sum(counts) > 0)


@settings(max_examples=60, deadline=None)
@given(counts=frequencies, share=st.floats(0.001, 0.999))
def test_law_weights_undo_scales_and_totals_rise_with_what_was_seen(counts: list[int], share: float) -> None:
    model = fit(counts, share)
    k = np.arange(1, len(counts) + 1)
    scales, weights = model.scale(k), model.M / model.m / model.scale(k)
    np.testing.assert_allclose(scales * weights, 1 / share, rtol=1e-9)
    assert np.all(np.diff(k * scales) >= -1e-9 * k[1:] / share)
    assert np.all(scales >= 1 - 1e-9)
    assert model.estimated == pytest.approx(float((np.array(counts) * weights).sum()), rel=1e-9)
    assert model.estimated <= model.seen / share * (1 + 1e-6)


def test_keys_that_were_all_seen_often_grow_as_the_rows_do() -> None:
    model = fit([0, 0, 3, 0, 20], 0.1)
    np.testing.assert_allclose(model.scale([3, 5]), 10)
    assert model.estimated == 23


def test_unique_keys_do_not_grow() -> None:
    model = fit([5000] + [0] * 31, 0.02)
    assert model.scale(1) == pytest.approx(1, abs=0.02)
    assert model.estimated == pytest.approx(250_000, rel=0.02)


def test_rare_keys_are_told_from_frequent_ones() -> None:
    model = fit([5000] + [0] * 30 + [10], 0.1)
    assert model.scale(1) == pytest.approx(1, abs=0.02)
    assert model.scale(32) == pytest.approx(10)


def test_all_read_needs_no_scale() -> None:
    model = fit([7, 2, 1], 1.0)
    np.testing.assert_array_equal(model.scale([1, 2, 3]), 1)
    assert model.estimated == 10


def test_no_keys_and_one_group_are_possible() -> None:
    assert fit([0, 0, 0], 0.5).estimated == 0
    assert np.isfinite(fit([4], 0.5).scale(1))
    assert np.isfinite(fit([4, 4], 1e-7).estimated)


@pytest.mark.parametrize(
    ("counts", "share", "message"),
    [
        ([], 0.5, "frequencies"),
        ([-1], 0.5, "frequencies"),
        ([np.nan], 0.5, "frequencies"),
        ([1], 0.0, "share"),
        ([1], 1.5, "share"),
    ],
)
def test_wrong_input_is_refused(counts: list[float], share: float, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        fit(counts, share)


@pytest.mark.parametrize("k", [0, 4, [1, 9]])
def test_a_key_cannot_be_in_more_groups_than_there_are(k: int | list[int]) -> None:
    with pytest.raises(SchemaError, match="1 to 3"):
        fit([3, 2, 1], 0.5).scale(k)


@dataclass(frozen=True)
class Sampled:
    """Keys in 600 units of which a share was read: groups in which each was seen, its rows read and its rows in all."""

    seen_in: Integers
    rows: Integers
    totals: Integers
    groups: int
    share: float
    power: float

    @property
    def found(self) -> NDArray[np.bool_]:
        return self.seen_in > 0

    def error(self, estimate: NDArray[np.float64]) -> float:
        """Mean absolute error of the keys' totals in percent of the true ones, weighted by them."""
        return float(np.abs(estimate - self.totals)[self.found].sum() / self.totals[self.found].sum())


def sample(key: Integers, share: float, seed: int) -> Sampled:
    """Read random units; `power` is WAKE's: the slope of log(average rows of a key) over log(progress)."""
    units, rng = np.arange(len(key)) * 600 // len(key), np.random.default_rng(seed)
    order, count = rng.permutation(600), round(600 * share)
    groups = min(count, 32)
    group_of = np.full(600, -1)
    group_of[order[:count]] = np.arange(count) % groups
    read, size = group_of[units] >= 0, int(key.max()) + 1
    pairs = np.unique(key[read] * groups + group_of[units][read]) // groups
    progress, averages = [], []
    for part in (0.2, 0.4, 0.7, 1.0):
        early = np.isin(units, order[: max(1, round(count * part))])
        progress.append(early.mean())
        averages.append(early.sum() / len(np.unique(key[early])))
    power = float(np.clip(np.polyfit(np.log(progress), np.log(averages), 1)[0], 0, 1))
    rows, totals = np.bincount(key[read], minlength=size), np.bincount(key, minlength=size)
    return Sampled(np.bincount(pairs, minlength=size), rows, totals, groups, float(read.mean()), power)


def keys(kind: str, rows: int = 60_000) -> Integers:
    rng = np.random.default_rng(1)
    match kind:
        case "uniform":
            found = rng.integers(0, rows // 10, rows)
        case "zipf":
            found = np.minimum(rng.zipf(1.5, rows), 10**7)
        case "once":
            found = rng.permutation(rows)
        case "mixed":
            found = np.where(rng.random(rows) < 0.5, rng.integers(0, 10, rows), 1000 + np.arange(rows))
        case "few":
            found = rng.integers(0, 20, rows)
        case _:
            raise AssertionError(kind)
    return np.unique(found, return_inverse=True)[1]


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("kind", ["uniform", "zipf", "once", "mixed", "few"])
def test_scales_beat_both_naive_choices(kind: str, share: float) -> None:
    """Errors of the keys' totals: the model against M / m for all keys, and against WAKE's shared power of progress."""
    drawn = sample(keys(kind), share, seed=3)
    counts = np.bincount(drawn.seen_in[drawn.found], minlength=drawn.groups + 1)[1:]
    model = fit(counts, drawn.share)
    ours = drawn.error(drawn.rows * np.where(drawn.found, model.scale(np.maximum(drawn.seen_in, 1)), 0))
    proportional, power = drawn.error(drawn.rows / drawn.share), drawn.error(drawn.rows / drawn.share**drawn.power)
    assert ours <= 1.02 * min(proportional, power) + 1e-3
    distinct = abs(model.estimated / len(drawn.totals) - 1)
    assert distinct < 0.35
