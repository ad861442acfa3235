"""Inserts and deletes: exact parts equal recomputation, samples stay uniform, trees are planned again without a gap."""

from __future__ import annotations

import math
import re
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearly.synopsis.build.drafting import LeafCounts, Shape, draft, finished
from nearly.synopsis.build.passes import Census
from nearly.synopsis.query.reading import TreeReading
from nearly.synopsis.structure.rows import Copies, Rows, concatenate, hash_columns
from nearly.synopsis.structure.state import KEPT, Largest, RowChange, TreeState
from nearly.synopsis.structure.statistics import leaf_statistics
from nearly.synopsis.upkeep.live import drift
from tests.fixtures.driver_only import driver_only
from tests.fixtures.long import first_quick
from tests.synopsis.oracle import ask, at, built, live_tree, rows_of, truth


def random_rows(rng: np.random.Generator, count: int, first: int) -> Rows:
    values = np.where(rng.random(count) < 0.1, np.nan, rng.integers(-50, 50, count))
    return rows_of(rng.integers(0, 100, (2, count)), values, first)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), steps=st.lists(st.tuples(st.booleans(), st.integers(0, 60)), max_size=12), pooled=st.booleans())
def test_exact_parts_equal_recomputation(seed: int, steps: list[tuple[bool, int]], pooled: bool) -> None:
    """Law: after any sequence of inserts and deletes the leaf aggregates are those of the live rows, outliers are exactly the
    live rows beyond the bounds, the sample exactly the others below the thresholds,
    and extreme values are attained or bound from outside."""
    rng = np.random.default_rng(seed)
    live = random_rows(rng, 80, 0)
    state = built(live, Shape((0, 1), 6, 20, pooled=pooled), seed)
    first = 1_000
    for is_insert, count in steps:
        if is_insert:
            rows = random_rows(rng, count, first)
            first += count
            state.insert(rows)
            live = concatenate([live, rows])
        else:
            gone = rng.choice(len(live), min(count, len(live)), replace=False)
            state.delete(live.take(gone))
            live = live.take(np.setdiff1d(np.arange(len(live)), gone))
    check_state(state, live)


def check_state(state: TreeState, live: Rows) -> None:
    """Whether a state is that of the live rows."""
    leaf = state.scales.tree.leaf_of(live.coordinates)
    np.testing.assert_allclose(TreeReading(state).leaf_statistics, leaf_statistics(state.scales, live, leaf), atol=1e-6)
    far = state.outliers.holds(state.scales, live, leaf)
    assert sorted(state.outliers.rows.identity.tolist()) == sorted(live.identity[far].tolist())
    wanted = set(live.identity[~far & (live.ticket < state.sample.threshold[leaf])].tolist())
    assert set(state.sample.rows.identity.tolist()) == wanted
    _check_extremes(state, live, leaf)


def _check_extremes(state: TreeState, live: Rows, leaf: np.ndarray) -> None:
    for each in range(state.scales.tree.leaves):
        values = live.values[(leaf == each) & ~np.isnan(live.values)]
        for side, sign in ((state.leaves.largest, 1.0), (state.leaves.smallest, -1.0)):
            best = (sign * values).max(initial=-math.inf)
            if values.size:
                assert side.top[each] >= best
            if side.exact[each] and values.size:
                assert side.top[each] == best


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8)), max_size=80))
def test_the_largest_values_are_exact_until_they_run_out(steps: list[tuple[bool, int]]) -> None:
    """Oracle: a sorted list."""
    found, live = Largest.nothing(1), []
    for is_insert, value in steps:
        if is_insert:
            live.append(value)
            found.insert(np.zeros(1, int), np.array([float(value)]))
        elif value in live:
            live.remove(value)
            found.delete(np.zeros(1, int), np.array([float(value)]))
        if live:
            assert found.top[0] >= max(live)
            if found.exact[0]:
                assert found.top[0] == max(live)
    if live and not any(not each for each, _ in steps):
        kept = sorted(live, reverse=True)[:KEPT]
        assert found.kept[0][: len(kept)].tolist() == kept


def test_many_values_at_once_keep_the_same_largest() -> None:
    rng = np.random.default_rng(0)
    leaf, values = rng.integers(0, 5, 30_000), np.round(rng.normal(size=30_000), 1)
    at_once, one_by_one = Largest.nothing(5), Largest.nothing(5)
    at_once.insert(leaf, values)
    for start in range(0, 30_000, 1_000):
        one_by_one.insert(leaf[start : start + 1_000], values[start : start + 1_000])
    np.testing.assert_array_equal(at_once.kept, one_by_one.kept)
    for each in range(5):
        assert at_once.kept[each].tolist() == sorted(values[leaf == each], reverse=True)[:KEPT]


def test_of_equal_rows_any_may_go() -> None:
    """Rows that nothing tells apart: those deleted are drawn among all copies, so that the same share of the rest stays sampled."""
    count, left = 2_000, []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        kind = rng.integers(0, 3, count)
        tickets = rows_of(np.arange(count), np.zeros(count), seed * count).ticket
        rows = Rows(np.zeros((1, count)), kind.astype(float), hash_columns([kind.astype(float)]), tickets)
        state = built(rows, Shape((0,), 1, 200, pooled=True), seed)
        threshold, sampled = float(state.sample.threshold[0]), len(state.sample)
        gone = rows.take(np.flatnonzero(kind == 1)[:500])
        state.delete(gone, Copies(np.full(len(gone), int((kind == 1).sum())), seed))
        assert state.leaves.statistics[0, 0] + len(state.outliers) == count - len(gone)
        assert sampled * 0.5 < len(state.sample) < sampled
        left.append(float((state.sample.rows.values == 1).sum()) - threshold * float((kind == 1).sum() - len(gone)))
    assert abs(np.mean(left)) < 4 * np.std(left) / math.sqrt(len(left))


@pytest.mark.parametrize("draws", first_quick([30, 120], 1))
@pytest.mark.parametrize("pooled", [True, False])
def test_estimates_stay_unbiased_under_changes(pooled: bool, draws: int) -> None:
    """Over many draws: inserts that favour one end and deletes that favour the other leave no bias."""
    rng = np.random.default_rng(1)
    old = rows_of(rng.random(4_000), rng.exponential(size=4_000))
    new = rows_of(0.5 + rng.random(4_000) / 2, 3 + rng.exponential(size=4_000), 4_000)
    errors = []
    for seed in range(draws):
        first, second = (rows_of(each.coordinates, each.values, int(each.identity[0]), seed) for each in (old, new))
        state = built(first, Shape((0,), 8, 400, pooled=pooled), 0)
        state.insert(second)
        gone = first.coordinates[0] < 0.4
        state.delete(first.take(gone))
        live = concatenate([first.take(~gone), second])
        expected = truth(live, (0, 0.45, 0.73)).of("sum")
        errors.append(ask(TreeReading(state), "sum", (0, 0.45, 0.73)).value / expected - 1)
    assert abs(np.mean(errors)) < np.std(errors) * (4 / math.sqrt(draws) + 0.05)


def test_the_pool_stays_between_its_target_and_twice_that() -> None:
    rng = np.random.default_rng(2)
    state = built(random_rows(rng, 5_000, 0), Shape((0,), 8, 300, pooled=True))
    for step in range(20):
        state.insert(random_rows(rng, 2_000, 10_000 + 2_000 * step))
        assert state.sample.target <= len(state.sample) <= 2 * state.sample.target
    assert not state.sample.exhausted


def test_parts_of_a_pass_merge_to_the_whole() -> None:
    """Law: the state of a union is that of the merged parts, whatever the split into tasks."""
    rng = np.random.default_rng(3)
    rows, shape = random_rows(rng, 9_000, 0), Shape((0, 1), 16, 900)
    plan = draft(shape, rows.take(np.arange(0, 9_000, 9)), len(rows))
    states = []
    for tasks in (1, 3):
        whole = LeafCounts.nothing(plan)
        for number in range(tasks):
            part = LeafCounts.nothing(plan)
            part.add(plan, rows.take(np.arange(number, 9_000, tasks)))
            whole.merge(plan, part)
        states.append(finished(plan, whole))
    one, three = states
    np.testing.assert_allclose(one.leaves.statistics, three.leaves.statistics, atol=1e-6)
    np.testing.assert_array_equal(one.leaves.hull.low, three.leaves.hull.low)
    for store in (lambda state: state.sample, lambda state: state.outliers):
        assert set(store(one).rows.identity.tolist()) == set(store(three).rows.identity.tolist())


@pytest.mark.parametrize("levels", [None, 2, "auto"])
def test_sorted_arrivals_are_planned_for_again(levels: int | str | None) -> None:
    """Rows arrive in order, so one leaf takes them all; planned again, the tree is as good as a fresh one (within two levels of the
    crowded leaf it gets better, but four leaves for most rows cannot be as good)."""
    rng = np.random.default_rng(4)
    c, values = np.sort(rng.random(40_000)), rng.exponential(size=40_000)
    rows = rows_of(c, values)
    shape = Shape((0,), 32, 3_200)
    tree, history = live_tree(rows.take(np.arange(8_000)), shape)
    for number, start in enumerate(range(8_000, 40_000, 4_000), 1):
        changes = (RowChange(True, rows.take(np.arange(start, start + 4_000))),)
        history.log.append(changes)
        tree.apply(changes, at(number))
    assert tree.questionable()
    before = _typical_error(tree.reading(), rows)
    done = tree.repartition(levels)
    assert done is not None
    assert done.after < done.before
    after, fresh = _typical_error(tree.reading(), rows), _typical_error(TreeReading(built(rows, shape)), rows)
    assert after < before
    if levels != 2:
        assert after < 1.5 * fresh
        assert tree.questionable() is None
    leaf = tree.state.scales.tree.leaf_of(rows.coordinates)
    np.testing.assert_allclose(tree.reading().leaf_statistics, leaf_statistics(tree.state.scales, rows, leaf), rtol=1e-9, atol=1e-6)


def test_leaves_that_fall_empty_are_planned_for_again() -> None:
    """No leaf gets worse when rows go, but those that stay could have the leaves of the others (JanusAQP's two-sided trigger)."""
    rng = np.random.default_rng(8)
    rows = rows_of(rng.random(30_000), rng.exponential(size=30_000))
    tree, history = live_tree(rows, Shape((0,), 32, 3_200))
    gone = np.flatnonzero(rows.coordinates[0] < 0.28)
    changes = (RowChange(False, rows.take(gone)),)
    history.log.append(changes)
    tree.apply(changes, at(1))
    assert re.search("of 0 leaves grew, and of [1-9]", drift(tree.reading(), tree.state.built_variance) or "")
    before = tree.reading().leaf_variances.max()
    tree.repartition()
    assert tree.reading().leaf_variances.max() < before


def test_a_drift_that_no_other_tree_mends_is_judged_once() -> None:
    """Four values of the column have a leaf each: there is no better tree, whatever comes."""
    rng = np.random.default_rng(9)
    tree, history = live_tree(rows_of(rng.integers(0, 4, 20_000), rng.exponential(size=20_000)), Shape((0,), 4, 2_000))
    for number, (column, drifts) in enumerate([(np.ones(20_000), True), (rng.integers(0, 4, 3_000), False)], 1):
        history.log.append((RowChange(True, rows_of(column, rng.exponential(size=len(column)), 100_000 * number)),))
        tree.apply(history.log[-1], at(number))
        assert bool(tree.questionable()) == drifts
        assert tree.repartition(force=False) is None


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    columns=st.sampled_from([(0,), (0, 1)]),
    pooled=st.booleans(),
    levels=st.sampled_from([1, 2, "auto"]),
    batches=st.integers(0, 4),
)
def test_a_part_is_planned_again_alone(seed: int, columns: tuple[int, ...], pooled: bool, levels: int | str, batches: int) -> None:
    """Law: a tree of which a part was exchanged is in the state of its live rows, whatever happened before and happens after."""
    rng = np.random.default_rng(seed)
    live = random_rows(rng, 400, 0)
    shape = Shape(columns, 8, 120, pooled=pooled)
    tree, history = live_tree(live, shape)
    for number in range(1, 2 * batches + 2):
        if number == batches + 1:
            done = tree.repartition(levels)
            assert done is not None
        new, gone = random_rows(rng, 60, 1_000 * number), rng.choice(len(live), 30, replace=False)
        changes = (RowChange(True, new), RowChange(False, live.take(gone)))
        history.log.append(changes)
        tree.apply(changes, at(number))
        live = concatenate([live.take(np.setdiff1d(np.arange(len(live)), gone)), new])
        check_state(tree.state, live)


def test_a_part_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a table that lies in order, only the blocks that may have rows of the part are read."""
    rng = np.random.default_rng(7)
    count = 160_000
    table = pa.table({"c": np.arange(count), "a": np.where(np.arange(count) < 20_000, rng.exponential(100, count), 1.0)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=10_000)
    seen: list[int] = []
    take = Census.take
    monkeypatch.setattr(Census, "take", lambda self, file, row, batch: (seen.append(batch.num_rows), take(self, file, row, batch)))
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "t.parquet")
        synopsis = db.create_synopsis("y", "t", "a", ["c"], leaves=32, sample=0.01)
        assert sum(seen) == count
        seen.clear()
        (done,) = synopsis.repartition(levels=1)
        assert done.node > 0
        assert 0 < sum(seen) < count / 3
        for low, high in ((None, None), (0, 19_999), (12_345, 99_999)):
            inside = table["a"].to_numpy()[low or 0 : count if high is None else high + 1]
            found = synopsis.query("sum", c=(low, high))
            assert found.hard_low["sum"][0].as_py() <= inside.sum() * (1 + 1e-9)
            assert found.hard_high["sum"][0].as_py() >= inside.sum() * (1 - 1e-9)
        assert synopsis.query("sum").exact


def _typical_error(reading: TreeReading, rows: Rows) -> float:
    rng = np.random.default_rng(5)
    errors = []
    for low, high in np.sort(rng.random((60, 2)), axis=1):
        expected = truth(rows, (0, low, high)).of("sum")
        errors.append(abs(ask(reading, "sum", (0, low, high)).value - expected) / expected)
    return float(np.mean(errors))


def test_changes_during_planning_are_not_lost() -> None:
    """While a tree is planned again, others insert, delete and ask; nothing is lost, and answers never stop."""
    rng = np.random.default_rng(6)
    rows = rows_of(rng.random(30_000), rng.integers(0, 9, 30_000))
    tree, history = live_tree(rows.take(np.arange(20_000)), Shape((0,), 16, 1_000))
    lock, number, stop = threading.Lock(), 0, threading.Event()
    failures: list[str] = []

    def change() -> None:
        nonlocal number
        for start in range(20_000, 30_000, 500):
            changes = (
                RowChange(True, rows.take(np.arange(start, start + 500))),
                RowChange(False, rows.take(np.arange(start, start + 100))),
            )
            with lock:
                history.log.append(changes)
                number += 1
                tree.apply(changes, at(number))

    def question() -> None:
        while not stop.is_set():
            found = ask(tree.reading(), "rows")
            if not (found.exact and 20_000 <= found.value <= 28_000):
                failures.append(str(found))

    threads = [threading.Thread(target=change), threading.Thread(target=question)]
    for each in threads:
        each.start()
    for _ in range(4):
        tree.repartition()
    threads[0].join()
    stop.set()
    threads[1].join()
    assert not failures
    assert ask(tree.reading(), "rows").value == 28_000
    tree.repartition()
    assert ask(tree.reading(), "rows").value == 28_000
