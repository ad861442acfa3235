"""Bounds of progressive answers, on an engine without Spark: extremes, large states, and what is certain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.sampling.answers import Stored
from benchmarks.sampling.populations import Population, cut
from nearly.engine.stream.units import GROUPS
from nearly.progressive import evaluation
from nearly.progressive.reading import UnitsRead

ROWS = 20_000
COUNTS = (11, 20, 40)


@pytest.fixture(scope="module")
def population() -> Population:
    """Rows in the order of x; every thousandth is selected by a large tag."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.normal(10, 3, ROWS))
    tag = np.where(np.arange(ROWS) % 1000 == 999, 1_000_000, rng.integers(0, 5_000, ROWS))
    return Population("small", x, x + rng.normal(0, 1, ROWS), rng.integers(0, 5, ROWS), tag, cut(ROWS, 200))


@pytest.fixture(scope="module")
def stored(population: Population, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    directory: Path = tmp_path_factory.mktemp("bounds")
    return Stored.of(population, directory)


def test_extremes_have_certain_bounds_only(stored: Stored, population: Population) -> None:
    for answer in stored.answers("SELECT min(tag) AS a, max(tag) AS b, max(y) AS c FROM t", 0, COUNTS):
        assert answer.low.equals(answer.hard_low)
        assert answer.high.equals(answer.hard_high)
        assert answer.low["b"][0].as_py() >= answer.table["b"][0].as_py()
        assert answer.high["b"][0].as_py() == population.tag.max()
        assert answer.low["c"][0].as_py() <= population.y.max()
        assert answer.high["c"][0].as_py() is None  # a column of fractions may hold NaN
        assert answer.error == float("inf")


def test_intervals_keep_to_what_is_certain(stored: Stored) -> None:
    """Few rows are selected, so the interval of their number would go below those that were seen."""
    for seed in range(10):
        for answer in stored.answers("SELECT count(*) FILTER (WHERE tag > 5000) AS c FROM t", seed, COUNTS):
            low, hard_low, value = (each["c"][0].as_py() for each in (answer.low, answer.hard_low, answer.table))
            assert value >= hard_low
            assert low is None or low >= hard_low


def test_quantiles_by_key_beside_other_aggregates(stored: Stored, population: Population) -> None:
    """Each key's interval is that of its own rows, whatever stands beside it and however rows are ordered."""
    text = "SELECT sum(y) AS s, median(y) AS m, k + 0 AS shown, k, percentile(y, 0.9D) AS q FROM t GROUP BY k ORDER BY m"
    covered = []
    for seed in range(5):
        (answer,) = stored.answers(text, seed, (40,))
        for row, key in enumerate(answer.table["k"].to_pylist()):
            mine = population.y[population.key == key]
            for name, p in (("m", 0.5), ("q", 0.9)):
                low, high = (side[name][row].as_py() for side in (answer.low, answer.high))
                covered.append(low <= np.quantile(mine, p) <= high)
    assert np.mean(covered) >= 0.8


@pytest.mark.long
def test_distinct_counts_by_key(stored: Stored, population: Population) -> None:
    """Each key's estimate and interval are those of its own values, and much shorter than the number itself."""
    covered, widths = [], []
    for seed in range(8):
        text = "SELECT sum(y) AS s, count(DISTINCT tag) AS d, k AS shown FROM t GROUP BY k ORDER BY k DESC"
        (answer,) = stored.answers(text, seed, (40,))
        for row, key in enumerate(answer.table["shown"].to_pylist()):
            low, high = (side["d"][row].as_py() for side in (answer.low, answer.high))
            covered.append(low <= len(np.unique(population.tag[population.key == key])) <= high)
            widths.append((high - low) / answer.table["d"][row].as_py())
    assert np.mean(covered) >= 0.85
    assert np.median(widths) < 0.5


@pytest.mark.long
def test_averages_over_keys(stored: Stored, population: Population) -> None:
    """A total divided by the number of keys: intervals cover, and are far from zero."""
    text = "SELECT avg(c) AS a FROM (SELECT tag, count(*) AS c FROM t GROUP BY tag) AS u"
    truth = ROWS / len(np.unique(population.tag))
    covered = []
    for seed in range(12):
        (answer,) = stored.answers(text, seed, (40,))
        low, value, high = (side["a"][0].as_py() for side in (answer.low, answer.table, answer.high))
        covered.append(low <= truth <= high)
        assert 0.6 * value < low < value < high < 1.6 * value
    assert sum(covered) >= 10


def test_a_large_state_has_fewer_replicates(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT avg(y) AS a FROM t WHERE x > (SELECT avg(x) FROM t)"
    (usual,) = stored.answers(query, 0, (40,))
    monkeypatch.setattr(evaluation, "REPLICATED_ROWS", 12 * usual.stats["state_rows"])
    (fewer,) = stored.answers(query, 0, (40,))
    assert fewer.table["a"][0].as_py() == pytest.approx(usual.table["a"][0].as_py())
    assert fewer.low != usual.low
    assert fewer.low["a"][0].as_py() < fewer.table["a"][0].as_py() < fewer.high["a"][0].as_py()
    monkeypatch.setattr(evaluation, "REPLICATED_ROWS", 2 * usual.stats["state_rows"])
    (without,) = stored.answers(query, 0, (40,))
    assert without.low["a"][0].as_py() is None


@pytest.mark.parametrize("groups", [GROUPS, GROUPS // 2, GROUPS // 4])
def test_law_every_replicate_stands_for_all_rows(stored: Stored, groups: int) -> None:
    whole = UnitsRead.of(stored.orders(1)[0], range(45))
    reading, unit_rows = whole.in_groups(groups), whole.group_rows
    weights = reading.weights().to_pylist()
    assert reading.groups == groups
    for replicate in range(groups):
        mine = [each for each in weights if each["replicate"] == replicate]
        assert len(mine) == GROUPS - GROUPS // groups
        assert sum(each["unit_weight"] * unit_rows[each["unit_group"]] for each in mine) == pytest.approx(ROWS)
    assert reading.group_rows.sum() == pytest.approx(unit_rows.sum())
