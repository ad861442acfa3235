"""The learner: laws of its parts, and a small world whose best choice is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from nearly.autoview.learning.agent import Agent, Experience
from nearly.autoview.learning.credits import MU, Credits
from nearly.autoview.learning.features import Vocabulary, stacked
from nearly.autoview.learning.network import Network
from nearly.autoview.options import Holding, Occasion, Option, ViewShape
from nearly.autoview.policies.known import policy_of
from nearly.autoview.policies.learned import AGAIN, Learned

VIEWS = {"a": (40, 0.9), "b": (60, 0.6), "c": (50, 0.7), "d": (90, 0.95), "e": (10, 0.1)}
"""Bytes of views, and what a use of one gains."""
SERVES = {0: "ab", 1: "ac", 2: "b", 3: "cd", 4: "d", 5: "e", 6: "ae"}
"""The views that serve each question."""
RATES = np.array([0.3, 0.2, 0.15, 0.15, 0.1, 0.05, 0.05])
CAPACITY = 110
COST = 0.2


def _option(view: str, expected: float = 0.5) -> Option:
    size, _ = VIEWS[view]
    return Option(view, ViewShape((f"t{view}",)), float(size), 1.0, expected, COST)


def _saved(chosen: tuple[str, ...]) -> float:
    """Seconds that a set of views saves per query."""
    return sum(float(rate) * max((VIEWS[view][1] for view in SERVES[question] if view in chosen), default=0.0)
               for question, rate in enumerate(RATES))  # fmt: skip


def _optimum() -> float:
    sets = [chosen for count in range(6) for chosen in combinations(VIEWS, count)]
    return max(_saved(chosen) for chosen in sets if sum(VIEWS[view][0] for view in chosen) <= CAPACITY)


def _lived(policy: Learned, steps: int, seed: int) -> tuple[dict[str, Holding], float]:
    """A life of the policy in the small world: what it keeps in the end, and what it saved per query in the second half."""
    random = np.random.default_rng(seed)
    kept: dict[str, Holding] = {}
    saved = 0.0
    for step in range(1, steps + 1):
        question = int(random.choice(len(RATES), p=RATES))
        moment = Occasion(step, str(question), [_option(view) for view in SERVES[question]], list(kept.values()), CAPACITY, 1.0)
        ranked = [each for each in policy.ranked(moment) if each.id not in kept]
        victims = policy.victims(moment, ranked[0], ranked[0].bytes) if ranked else None
        if victims is not None:
            for each in victims:
                policy.gone(kept.pop(each.id), step)
            kept[ranked[0].id] = Holding(ranked[0], VIEWS[ranked[0].id][0], COST, step)
            policy.made(kept[ranked[0].id], moment)
        served = [view for view in SERVES[question] if view in kept]
        if served:
            best = max(served, key=lambda view: VIEWS[view][1])
            policy.used(kept[best], moment, VIEWS[best][1])
            saved += VIEWS[best][1] if step > steps // 2 else 0.0
            for view in served:
                policy.measured(str(question), view, VIEWS[view][1])
        policy.train()
        assert sum(each.bytes for each in kept.values()) <= CAPACITY
    return kept, saved / (steps - steps // 2)


@pytest.mark.parametrize("seed", range(2))
def test_a_small_world_is_learned_to_its_optimum(seed: int) -> None:
    policy = Learned(seed)
    kept, saved = _lived(policy, 3_000, seed)
    assert _saved(tuple(kept)) >= 0.97 * _optimum(), sorted(kept)
    assert saved >= 0.9 * _optimum()
    assert policy.agent.is_ready


def test_the_same_seed_decides_the_same() -> None:
    first, second = (_lived(Learned(4), 400, 1) for _ in range(2))
    assert first[1] == second[1]
    assert list(first[0]) == list(second[0])


def test_what_was_learned_can_be_kept() -> None:
    policy = Learned(0)
    kept, _ = _lived(policy, 600, 0)
    again = Learned(9)
    again.restore(policy.content())
    moment = Occasion(601 + AGAIN, "0", [_option(view) for view in VIEWS], list(kept.values()), CAPACITY)
    policy.agent.decisions = again.agent.decisions = 10**9
    assert [each.id for each in policy.ranked(moment)] == [each.id for each in again.ranked(moment)]


def test_law_rewards_of_a_view_add_up_to_its_benefit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearly.autoview.policies.learned.DISCOUNT", 1 - 1e-12)
    policy, told = Learned(0), list[Experience]()
    monkeypatch.setattr(policy.agent, "add", told.append)
    holding = Holding(_option("a"), 40, 3.0, 1)
    policy.made(holding, Occasion(1, "0", [], [], CAPACITY))
    for step in range(2, 250):
        moment = Occasion(step, "0", [], [holding], CAPACITY)
        policy.ranked(moment)
        if step % 7 == 0:
            policy.used(holding, moment, 0.25)
    policy.gone(holding, 250)
    assert sum(each.reward for each in told) == pytest.approx(35 * 0.25 - 3.0)


def test_a_question_that_never_returns_asks_for_nothing() -> None:
    policy, made = Learned(0), 0
    for step in range(1, 600):
        option = Option(f"v{step}", ViewShape(("t",)), 10.0, 1.0, 0.5, 0.4)
        made += bool(policy.ranked(Occasion(step, f"q{step}", [option], [], CAPACITY, 1.0))) and step > 300
    assert made == 0


def _asked(policy: Learned, step: int, kept: list[Holding]) -> list[str]:
    """What is made for a question that takes long, and for which nothing is expected to help."""
    return [each.id for each in policy.ranked(Occasion(step, "0", [_option("a", 0.0)], kept, CAPACITY, 10.0))]


def test_room_that_is_free_is_given_to_what_nothing_is_known_of() -> None:
    policy = Learned(0)
    policy.agent.decisions = 10**9  # it hardly explores any more
    assert _asked(policy, 1, []) == ["a"]
    full = Holding(_option("b"), CAPACITY, 1.0, 1)
    assert _asked(policy, 2, [full]) == []
    policy.measured("0", "a", 0.0)
    assert _asked(policy, 3, []) == []


def test_what_was_declined_is_not_thought_about_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, full = Learned(0), [Holding(_option("b"), CAPACITY, 1.0, 1)]
    policy.agent.decisions, thought = 10**9, list[int]()
    monkeypatch.setattr(policy.agent, "values", lambda vectors, expected: thought.append(len(vectors)) or expected)
    for step in range(1, AGAIN + 2):
        _asked(policy, step, full)
    assert len(thought) == 2
    policy.gone(*full, AGAIN + 1)
    _asked(policy, AGAIN + 2, [])  # something else is kept
    assert len(thought) == 3


def test_law_credits_fall_with_time_and_penalties_do_not() -> None:
    credits_, view = Credits(), Holding(_option("a"), 40, 2.0, 1)
    credits_.use(view, 1, 1.0)
    assert credits_.of(view, 101) == pytest.approx(credits_.of(view, 1) * MU**100)
    for _ in range(4):
        credits_.use(view, 101, -2.0)
    assert credits_.of(view, 101) < 0
    assert credits_.of(view, 500) == credits_.of(view, 101)


def test_law_a_network_grows_without_forgetting() -> None:
    network, random = Network(5, 0), np.random.default_rng(0)
    inputs = random.normal(size=(64, 5))
    wanted = inputs[:, 0] - 0.5 * inputs[:, 1]
    first = network.learn(inputs, wanted)
    for _ in range(800):
        last = network.learn(inputs, wanted)
    assert last < 0.05 * first
    before = network(inputs)
    network.widen(9)
    assert np.allclose(network(np.hstack([inputs, np.zeros((64, 4))])), before)
    again = Network(5, 3)
    again.restore(network.content())
    assert np.allclose(again(np.hstack([inputs, np.zeros((64, 4))])), before)


def test_law_the_double_network_learns_a_constant_reward() -> None:
    """With reward r each time and discount g, the value is r / (1 - g), as far as corrections reach."""
    agent = Agent(0)
    kept = Holding(_option("a"), 40, 0.0, 1)
    for _ in range(700):
        vector = agent.vector(kept.option, agent.vocabulary.state([kept]), CAPACITY, 0.0)
        agent.add(Experience(vector, 2.0, 1.0, vector, 2.0, 0.5))
        agent.train()
    assert agent.values([vector], [2.0])[0] == pytest.approx(2.0, abs=0.2)
    for _ in range(2_000):
        agent.add(Experience(vector, 1.0, 1.0, vector, 1.0, 0.5))
        agent.train()
    assert 1.4 < agent.values([vector], [1.0])[0] < 2.3, "half of what was missing, at least, was learned"


def test_who_knows_more_trains_more_seldom() -> None:
    agent = Agent(0)
    kept = Holding(_option("a"), 40, 0.0, 1)
    vector = agent.vector(kept.option, agent.vocabulary.state([kept]), CAPACITY, 0.0)
    trained = []
    for number in range(1, 4_001):
        agent.add(Experience(vector, 2.0, 1.0, None, 0.0, 0.0))
        if agent.train():
            trained.append(number)
    gaps = np.diff(trained)
    assert gaps[0] == 50
    assert gaps[-1] in range(180, 202)


def test_vectors_tell_views_apart() -> None:
    vocabulary = Vocabulary()
    one = Option("1", ViewShape(("a", "b"), ("a.x",), (("b.y", 0.4),)), 1.0, 1.0, 1.0, 1.0)
    two = Option("2", ViewShape(("a",), ("a.z",)), 1.0, 1.0, 1.0, 1.0)
    vectors = [vocabulary.vector(each, vocabulary.state([Holding(two, 1, 0.0, 0)]), 10.0, 0.0) for each in (one, two)]
    rows = stacked(vectors, vocabulary.width)
    assert rows.shape == (2, vocabulary.width)
    assert not np.array_equal(rows[0], rows[1])
    assert 0.4 in rows[0]


@pytest.mark.parametrize(("name", "first"), [("lru", "b"), ("lfu", "c"), ("fifo", "a")])
def test_simple_policies_let_go_by_their_rule(name: str, first: str) -> None:
    holdings: Mapping[str, Holding] = {
        "a": Holding(_option("a"), 40, 1.0, 1, last=9, uses=5),
        "b": Holding(_option("b"), 60, 1.0, 2, last=3, uses=4),
        "c": Holding(_option("c"), 50, 1.0, 3, last=8, uses=1),
    }
    moment = Occasion(10, "0", [], list(holdings.values()), 150)
    victims = policy_of(name).victims(moment, _option("e"), 10)
    assert [each.id for each in victims or ()] == [first]


def test_hawc_keeps_what_is_expected_to_save_most() -> None:
    policy = policy_of("hawc")
    options = [_option("a", 0.9), _option("b", 0.2)]
    assert [each.id for each in policy.ranked(Occasion(1, "0", options, [], CAPACITY))] == ["a"]
    kept = [Holding(options[0], 40, 1.0, 1), Holding(options[1], 60, 1.0, 1)]
    victims = policy.victims(Occasion(2, "0", options, kept, CAPACITY), _option("a", 0.9), 20)
    assert [each.id for each in victims or ()] == ["b"]


def test_the_recycler_keeps_what_was_dear() -> None:
    policy = policy_of("recycler")
    dear, cheap = Option("d", ViewShape(("t",)), 50.0, 9.0, 0.1, 0.1), Option("c", ViewShape(("t",)), 50.0, 1.0, 5.0, 0.1)
    assert [each.id for each in policy.ranked(Occasion(1, "0", [cheap, dear], [], CAPACITY))] == ["d"]
    kept = [Holding(dear, 60, 1.0, 1)]
    assert policy.victims(Occasion(2, "0", [cheap], kept, CAPACITY), cheap, 100) is None


@pytest.mark.parametrize("name", ["learned", "hawc"])
def test_what_serves_quick_questions_is_not_let_go_for_what_is_seldom_asked(name: str) -> None:
    """A view may make its question so quick that nothing more is made for it; it is asked for all the same."""
    policy = policy_of(name)
    often, seldom = _option("d"), replace(_option("b"), gain=0.2)
    policy.ranked(Occasion(1, "often", [often], [], CAPACITY, 1.0))
    kept = Holding(often, 90, COST, 1)
    policy.made(kept, Occasion(1, "often", [often], [], CAPACITY, 1.0))
    for step in range(2, 400):
        if step % 40:
            policy.asked("often", step)
            policy.used(kept, Occasion(step, "often", (), [kept], CAPACITY), 0.5)
        else:
            moment = Occasion(step, "seldom", [seldom], [kept], CAPACITY, 1.0)
            policy.ranked(moment)
            assert policy.victims(moment, seldom, 60.0) is None
