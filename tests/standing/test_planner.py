"""The choice of states is the best one: compared with all choices, and with the programme as a plain table."""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import replace
from itertools import count

import pytest

from benchmarks.standings.oracles import Table, exhaustive, least, random_tree
from nearly.standing.actions import ALL, CHANGE, DISK, Allowed, Prices
from nearly.standing.operators import JOIN, SCAN, Operator
from nearly.standing.planner import MOST_STEPS, BudgetStep, StateBudget, StateProgramme, Steps, choose, pruned
from tests.fixtures.long import first_quick

ALLOWED = (Allowed(), Allowed(materialise=False), Allowed(symmetric=False), Allowed(materialise=False, symmetric=False))


def drawn(seed: int, most: int = 4) -> tuple[Operator, Prices, Allowed, random.Random]:
    pick = random.Random(seed)
    tree = random_tree(pick, pick.randint(1, most), count())
    present = {each.plan for each in tree.walk() if pick.random() < 0.2}
    prices = Prices(horizon=pick.choice([1.0, 5.0]), present=present, room=pick.choice([0.0, 0.0, 1e-9, 1e-7]))
    return tree, prices, pick.choice(ALLOWED), pick


@pytest.mark.parametrize("seed", first_quick(range(400), 60))
def test_oracle_equals_all_choices(seed: int) -> None:
    tree, prices, allowed, pick = drawn(seed, most=5 if seed >= 60 else 4)
    total = sum(each.bytes for each in tree.walk())
    for memory in {0.0, total, *(float(pick.randint(0, int(total) + 1)) for _ in range(3))}:
        found = choose(tree, prices, StateBudget(memory), allowed)
        assert found.cost == pytest.approx(least(tree, prices, allowed, memory), rel=1e-9, abs=1e-15)
        assert found.memory <= memory


@pytest.mark.parametrize("seed", range(20))
def test_all_work_counts_where_nothing_is_later(seed: int) -> None:
    """The seconds of a choice are all its work; only what it costs is less where some comes after the answer."""
    tree, prices, allowed, _ = drawn(seed + 500)
    found = choose(tree, replace(prices, room=0.0), StateBudget(1e9), allowed)
    assert found.cost <= found.seconds
    now = choose(tree, replace(prices, room=0.0, later=1.0), StateBudget(1e9), allowed)
    assert now.cost == pytest.approx(now.seconds)
    assert now.seconds <= found.seconds * (1 + 1e-9)
    kept = choose(tree, replace(prices, room=0.0, later=1.0), StateBudget(1e9), allowed, only={each.plan for each in found.keeps})
    assert kept.seconds <= found.seconds * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_law_what_is_left_is_beaten_by_none(seed: int) -> None:
    """Equal steps are one; many steps become fewer, which are some of them."""
    pick = random.Random(seed)
    steps = [BudgetStep(*(float(pick.randint(0, 9)) for _ in range(3))) for _ in range(pick.choice([0, 1, 5, 60]))]
    as_good = {each for each in steps for other in steps if other != each and _is_beaten(each, other)}
    assert sorted(map(_needs, pruned(steps))) == sorted(map(_needs, set(steps) - as_good))
    many = [BudgetStep(float(i), 0.0, float(5 * MOST_STEPS - i)) for i in range(4 * MOST_STEPS)]
    assert len(pruned(many)) <= MOST_STEPS
    assert set(pruned(many)) <= set(many)


def _is_beaten(step: BudgetStep, other: BudgetStep) -> bool:
    return other.memory <= step.memory and other.disk <= step.disk and other.cost <= step.cost


def _needs(step: BudgetStep) -> tuple[float, float, float]:
    return step.memory, step.disk, step.cost


@pytest.mark.parametrize("seed", range(20))
def test_oracle_equals_the_plain_table(seed: int) -> None:
    tree, prices, allowed, _ = drawn(seed + 1000, most=6)
    memory = 400
    table, halved = Table(prices, memory, allowed), Table(prices, memory, allowed, halving=True)
    functions = StateProgramme(prices, StateBudget(float(memory)), allowed).functions(tree)
    for what, steps in ((CHANGE, functions.change), (ALL, functions.full)):
        values = table.function(tree, what)
        assert halved.function(tree, what) == values
        assert sorted(values, reverse=True) == values
        for bytes_ in (0, 1, 7, 50, 133, 399, 400):
            assert _value(steps, bytes_) == pytest.approx(values[bytes_], rel=1e-9, abs=1e-15)
    assert halved.evaluated <= table.evaluated


def test_halving_asks_for_far_less() -> None:
    counts = []
    for seed in range(8):
        tree, prices, allowed, _ = drawn(seed + 2000, most=6)
        tables = Table(prices, 300, allowed), Table(prices, 300, allowed, halving=True)
        for table in tables:
            table.function(tree, ALL)
        counts.append(tables[1].evaluated / tables[0].evaluated)
    assert statistics.median(counts) < 0.3


def _value(steps: Steps, memory: float) -> float:
    return min(each.cost for each in steps if each.memory <= memory)


@pytest.mark.parametrize("seed", range(10))
def test_disk_is_a_second_budget(seed: int) -> None:
    tree, prices, _, _ = drawn(seed + 3000)
    total = sum(each.bytes for each in tree.walk())
    both = Prices(prices.constants, horizon=prices.horizon, disk=True)
    memory_only = choose(tree, both, StateBudget(total / 4))
    with_disk = choose(tree, both, StateBudget(total / 4, total))
    assert with_disk.cost <= memory_only.cost
    assert with_disk.memory <= total / 4
    assert all(each.place != DISK for each in memory_only.keeps)


def test_only_what_changes_on_the_other_side_is_read() -> None:
    """The side that does not meet a change is neither read nor kept; the one that does is kept where memory allows."""
    pick = random.Random(1)
    left = _leaf(pick, 100_000, 1_000)
    right = _leaf(pick, 100_000, 0)
    joined = Operator(JOIN, random_tree(pick, 1, count(90)).plan, 1e5, 1e3, 1.01e5, 8.0, (left, right), join="inner")
    found = choose(joined, Prices(horizon=100), StateBudget(1e9))
    assert [each.plan for each in found.keeps] == [right.plan]
    assert choose(joined, Prices(horizon=100), StateBudget(0)).keeps == ()


def _leaf(pick: random.Random, rows: float, change: float) -> Operator:
    return Operator(SCAN, random_tree(pick, 1, count(int(rows + change))).plan, rows, change, rows + change, 8.0, read=rows * 4)


def test_large_trees_are_planned_at_once() -> None:
    times = []
    for seed in range(10):
        pick = random.Random(seed)
        tree = random_tree(pick, 20, count())
        began = time.perf_counter()
        choose(tree, Prices(), StateBudget(sum(each.bytes for each in tree.walk()) / 3))
        times.append(time.perf_counter() - began)
    assert statistics.median(times) < 0.5


def test_all_choices_are_many() -> None:
    tree, prices, _, _ = drawn(5, most=5)
    assert len(exhaustive(tree, prices, Allowed())) >= 2
