"""States that several parts or queries have in common: brought up to date once, whoever comes or goes meanwhile."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

import nearly
from nearly.engine.deltas.several import Moving, PartAddition
from nearly.engine.native.failures import NativeFailure
from nearly.errors import EngineError, NearlyError
from nearly.plan.nodes import GroupBy, Scan
from nearly.rewrite.delta.additions import Addition
from nearly.standing.actions import MEMORY, Kept
from nearly.standing.course import StandingCourse, StateMove, due, in_order
from nearly.standing.maintained import present
from nearly.standing.planner import Planned, StateBudget
from nearly.standing.refresh import advance, begin
from nearly.standing.standing import Standing
from nearly.standing.states import StateRows, StateStore
from nearly.standing.upkeep import CHANGE, WHOLE, StandingRefresh, Upkeep
from tests.engine.deltas.histories import Histories
from tests.fixtures.agreement import difference
from tests.fixtures.generation import QueryGenerator
from tests.fixtures.long import first_quick
from tests.standing.test_refresh import PREDICTION, judge, random_states, upkeep_of
from tests.standing.test_standing import opened, orders
from tests.standing.test_watching import until

GROUP = 4
GROUPS = "select customer, count(*) as n, sum(price) as total from orders group by customer"
OVER_GROUPS = f"select max(n) as m, sum(total) as t from ({GROUPS})"
WITH_CUSTOMERS = (
    f"select c.region, sum(g.n) as n, sum(g.total) as t from ({GROUPS}) g join customers c on c.id = g.customer group by c.region"
)
FROM_CUSTOMERS = (
    f"select c.region, sum(g.n) as n, sum(g.total) as t from customers c join ({GROUPS}) g on c.id = g.customer group by c.region"
)
"""Reads the groups as they were when customers come."""


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[nearly.Session]:
    """Whatever is grouped is kept, and answers come from changes."""

    def groups(self: Upkeep, *_: object) -> Planned:
        return Planned(tuple(Kept(node, 0.0) for node in set(self.plan.walk()) if isinstance(node, GroupBy) and node.keys), 0.0, ())

    monkeypatch.setattr(Upkeep, "choose", groups)
    monkeypatch.setattr(Upkeep, "pays", lambda *_: (True, 0.0))
    made = opened(tmp_path)
    yield made
    made.close()


def right(db: nearly.Session, s: Standing) -> bool:
    return difference(db.sql(s.text, kernel="native").exact().table, s.refresh().table, s.text) is None


def test_who_begins_to_share_is_moved_with_the_others(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its first answer and its being known, nobody may bring the state that it shares up to date."""
    first = db.standing(GROUPS)
    begins = Standing.begin

    def begin_slowly(self: Standing) -> None:
        begins(self)
        db.insert("orders", orders(5000, 7))
        other = threading.Thread(target=first.refresh)
        other.start()
        other.join(1)

    monkeypatch.setattr(Standing, "begin", begin_slowly)
    second = db.standing(OVER_GROUPS)
    assert second in first.sharing()
    assert right(db, second)
    assert right(db, first)
    db.delete("orders", where="id % 3 = 0")
    assert right(db, second)


def both_change(db: nearly.Session, step: int) -> None:
    """Orders come, also of the customer that comes, and some other changes."""
    db.insert("orders", [{"id": 6000 + 100 * step + i, "customer": 90 + step + i % 30, "price": i} for i in range(60)])
    db.insert("customers", [{"id": 100 + step, "region": "new"}])
    db.execute(f"update customers set region = 'r9' where id = {step}")


@pytest.mark.parametrize("texts", [(GROUPS, FROM_CUSTOMERS), (FROM_CUSTOMERS, GROUPS), (GROUPS, FROM_CUSTOMERS, OVER_GROUPS)])
def test_groups_are_added_to_after_what_reads_them_as_they_were(db: nearly.Session, texts: tuple[str, ...]) -> None:
    """Whoever's refresh it is: what is added to the groups of one query is told by those of another before these change."""
    queries = [db.standing(text) for text in texts]
    assert all(each in queries[0].sharing() for each in queries[1:])
    for step in range(4):
        both_change(db, step)
        assert right(db, queries[step % len(queries)])
        for each in queries:
            assert difference(db.sql(each.text, kernel="native").exact().table, each.answer.table, each.text) is None


def test_equal_groups_of_one_query_are_added_to_after_what_reads_them(db: nearly.Session) -> None:
    """They are a part of the answer, and below other groups, under other names."""
    s = db.standing(f"{FROM_CUSTOMERS} union all select cast(customer as string), n, total from ({GROUPS})")
    for step in range(3):
        both_change(db, step)
        assert right(db, s)
        assert len({state.table for state in s.states}) == 2


def a_move(table: str, reads: str, events: list[str]) -> StateMove:
    """What a state is added to, told by others."""

    class Recorded:
        def aside(self, name: str, query: str) -> str:
            events.append(f"aside {name}")
            return query

    addition = PartAddition("", cast(Addition, None), frozenset(reads))
    return StateMove(cast(Moving, Recorded()), StateRows(table, "", MEMORY, (), None, ()), addition)


def test_law_each_move_comes_before_those_that_bring_what_it_reads() -> None:
    events: list[str] = []
    moves = [a_move(table, reads, events) for table, reads in (("a", "a"), ("b", "a"), ("c", "ba"), ("d", "x"))]
    order = [each.table for each in in_order(moves)]
    assert order.index("c") < order.index("b") < order.index("a")
    assert not events
    ring = [a_move(table, reads, events) for table, reads in (("a", "b"), ("b", "a"))]
    assert len(in_order(ring)) == 2
    assert events == ["aside told of a", "aside told of b"]


def test_law_what_reads_a_state_that_is_brought_is_due_with_it() -> None:
    moves = [a_move(table, reads, []) for table, reads in (("a", "a"), ("b", "a"), ("c", "b"), ("d", "x"), ("a", "b"))]
    assert [each.table for each in due(moves, {"a"})] == ["a", "b", "c"]
    assert [each.table for each in due(moves, {"x"})] == ["d"]


def test_a_neighbour_whose_table_is_gone_keeps_nobody_from_refreshing(db: nearly.Session) -> None:
    first, second = db.standing(GROUPS), db.standing(WITH_CUSTOMERS)
    assert second in first.sharing()
    db.drop("customers")
    db.insert("orders", orders(5000, 7))
    assert right(db, first)
    db.delete("orders", where="id % 3 = 0")
    assert right(db, first)


@pytest.mark.parametrize("asked", [0, 1])
def test_an_answer_is_told_though_a_neighbour_fails_after_it(asked: int, db: nearly.Session, tmp_path: Path) -> None:
    """Else it would be one of the present versions that nobody has heard of."""
    told: list[int] = []
    pair = db.standing(GROUPS, on_change=lambda *_: told.append(1)), db.standing(WITH_CUSTOMERS)
    for step in range(2):
        db.insert("orders", orders(5000 + 10 * step, 7))
        assert right(db, pair[0])
    assert pair[1] in pair[0].sharing()
    (tmp_path / "customers.parquet").rename(tmp_path / "away.parquet")
    db.insert("orders", orders(6000, 7))
    for each in (pair[asked], pair[1 - asked]):
        with suppress(EngineError):
            each.refresh()
    assert right(db, pair[0])
    assert until(lambda: len(told) == 3)
    (tmp_path / "away.parquet").rename(tmp_path / "customers.parquet")
    assert right(db, pair[1])


def test_an_answer_is_told_though_the_next_one_is_broken_off(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = db.standing(GROUPS), db.standing(OVER_GROUPS)
    for step in range(2):
        db.insert("orders", orders(5000 + 10 * step, 7))
        assert all(right(db, each) for each in pair)
    done, answered = list[StandingCourse](), StandingCourse.answered

    def break_off(course: StandingCourse) -> StandingRefresh:
        done.append(course)
        if len(done) == 2:
            raise KeyboardInterrupt
        return answered(course)

    db.insert("orders", orders(6000, 7))
    with monkeypatch.context() as patch:
        patch.setattr(StandingCourse, "answered", break_off)
        with pytest.raises(KeyboardInterrupt):
            pair[0].refresh()
    assert len(done) == 2
    assert all(right(db, each) for each in pair)


def test_a_neighbours_watcher_that_blocks_holds_up_no_refresh(db: nearly.Session) -> None:
    go_on, called = threading.Event(), threading.Event()

    def block(*_: object) -> None:
        called.set()
        go_on.wait(60)

    pair = db.standing(GROUPS), db.standing(OVER_GROUPS, on_change=block)
    db.insert("orders", orders(5000, 7))
    assert pair[1] in pair[0].sharing()
    asking = threading.Thread(target=pair[0].refresh, daemon=True)
    asking.start()
    asking.join(20)
    assert not asking.is_alive()
    assert called.wait(20)
    go_on.set()


def test_a_predictor_that_stops_its_query_leaves_nothing(db: nearly.Session) -> None:
    queries: list[Standing] = []

    def predict(*_: object) -> dict[str, float]:
        for each in queries:
            each.stop()
        return {"orders": 5}

    other, s = db.standing(OVER_GROUPS), db.standing(GROUPS, arrivals=predict)
    queries.append(s)
    db.insert("orders", orders(5000, 7))
    s.refresh()
    assert s.is_over
    assert not s.states
    assert right(db, other)
    other.stop()
    assert not other._upkeep.store._states


def test_equal_parts_of_one_query_are_one_state_until_none_is_kept(tmp_path: Path) -> None:
    history = Histories(tmp_path, random.Random(3).choice)
    store = StateStore(history.db._engine)
    upkeep = upkeep_of(history, store, "select x.b, y.b as c from r x join r y on x.a = y.a", "one", StateBudget(1e9))
    scans = [node for node in upkeep.plan.walk() if isinstance(node, Scan) and node.table == "r"]
    upkeep.fixed, upkeep.forced = scans, CHANGE
    begin(upkeep, dict(history.tables), PREDICTION)
    for kept in (scans, scans[:1], scans[:1], scans, scans[1:]):
        history._insert("r")
        history._delete("r")
        upkeep.fixed = kept
        (refresh,) = advance([upkeep], history.tables, [PREDICTION])
        judge(history, upkeep)
        assert refresh.reason == "asked for"
        assert len({state.table for state in upkeep.held.values()}) == 1
        assert set(upkeep.held) == set(kept)
        assert upkeep.bytes() == sum({state.table: state.bytes for state in upkeep.held.values()}.values())
    store.close()
    history.db.close()


def random_group(history: Histories, store: StateStore, pick: random.Random) -> list[Upkeep]:
    """Queries that often have parts in common: some count the rows of others."""
    group: list[Upkeep] = []
    generator = QueryGenerator(pick.choice)
    for _ in range(40):
        counting = group and pick.random() < 0.4
        text = f"select count(*) as n from ({pick.choice(group).query.text})" if counting else generator.query()
        with suppress(NearlyError, NativeFailure):  # what the native kernel does not answer has no oracle here
            budget = StateBudget(pick.choice([1e5, 1e9, 1e9]), pick.choice([0.0, 1e9]))
            upkeep = upkeep_of(history, store, text, f"q{len(group)}", budget)
            history.db._engine.run(history.db._engine.plan(text, "native"))
            if upkeep.query.plan is not None:
                group.append(upkeep)
        if len(group) == GROUP:
            break
    return group


@pytest.mark.parametrize("seed", first_quick(range(24), 2))
def test_law_groups_of_random_queries(seed: int, tmp_path: Path) -> None:
    """Whoever shares whatever, is computed as a whole or from changes, and leaves: all answers are those of recomputation."""
    pick = random.Random(seed)
    history = Histories(tmp_path, pick.choice)
    store = StateStore(history.db._engine)
    group = random_group(history, store, pick)
    for upkeep in group:
        random_states(upkeep, pick)
        begin(upkeep, present(upkeep.engine, upkeep.query), PREDICTION)
    for _ in range(4):
        history.step()
        for upkeep in group:
            upkeep.forced = pick.choice([CHANGE, CHANGE, CHANGE, WHOLE])
            if pick.random() < 0.3:
                random_states(upkeep, pick)
        pick.shuffle(group)
        refreshes = advance(group, history.tables, [PREDICTION if pick.random() < 0.5 else None for _ in group])
        for upkeep, refresh in zip(group, refreshes, strict=True):
            judge(history, upkeep)
            assert "could not be computed" not in refresh.reason
        if pick.random() < 0.2 and len(group) > 1:
            group.pop().release()
    store.close()
    history.db.close()
