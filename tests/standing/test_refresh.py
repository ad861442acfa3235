"""Answers from whatever is kept are those of recomputation: random queries, states, budgets and histories, without Spark."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from nearly.engine.costs import Costs
from nearly.engine.native.failures import NativeFailure
from nearly.errors import NearlyError
from nearly.plan.nodes import GroupBy, Join
from nearly.standing import states
from nearly.standing import upkeep as upkeeps
from nearly.standing.actions import DISK, MEMORY, Kept
from nearly.standing.arrivals import Expected
from nearly.standing.maintained import maintained, present
from nearly.standing.operators import Sizes, operators
from nearly.standing.planner import StateBudget
from nearly.standing.refresh import advance, begin
from nearly.standing.states import StateStore
from nearly.standing.upkeep import CHANGE, WHOLE, Upkeep
from tests.engine.deltas.histories import Histories
from tests.engine.deltas.judging import bag
from tests.fixtures.driver_only import driver_only
from tests.fixtures.generation import ARROW, COLUMNS, QueryGenerator
from tests.fixtures.long import first_quick

STEPS = 3
PREDICTION = {name: Expected(3.0, 1.0) for name in ("r", "t", "u")}

SHAPES = (
    "select count(*) as n from r",
    "select a, sum(a) as x, count(*) as n, min(a) as low, max(a) as high from r group by a having count(*) >= 1",
    "select r.a, count(*) as n from r join t on r.a = t.a group by r.a order by n desc, r.a limit 3",
    "select r.a from r left join t on r.a = t.a",
    "select r.a, t.a as b from r full join t on r.a = t.a",
    "select a from r where exists (select 1 from t where t.a = r.a)",
    "select a from r where a not in (select a from t where a is not null)",
    "select a, count(distinct a) as n, avg(a) as mean from t group by a",
    "select n, count(*) as m from (select a, count(*) as n from r group by a) group by n",
    "select a from r union all select a from t",
    "select a from r intersect select a from t",
    "select a, row_number() over (partition by a order by a) as n from r",
    "select x.a, y.a as b, z.a as c from r x join r y on x.a = y.a join t z on y.a = z.a",
    "select t.b from r cross join t",
    "select t.b, count(*) as n from t left join r on t.a > 0 group by t.b",
    "select x.b, u.b as c from (select distinct t.b, t.a from r cross join t) x join u on x.b <> u.b",
)


SUMS = (
    "select count(*) as n, sum(a) as x, avg(a) as mean from r",
    "select a, count(*) as n, sum(a) as x, count(a) as m from r group by a",
    "select a % 2 as k, sum(a) as x, avg(a) as mean, count_if(a > 1) as n from r group by a % 2 order by k",
    "select a, min(a) as low, max(a) as high from r group by a",
    "select r.a, sum(t.a) as x from r join t on r.a = t.a group by r.a",
)
"""Groups that can be added to; the least and greatest only as long as rows come."""


@pytest.fixture
def history(tmp_path: Path) -> Iterator[Histories]:
    made = Histories(tmp_path, random.Random(3).choice)
    yield made
    made.db.close()


def upkeep_of(history: Histories, store: StateStore, text: str, user: str, budget: StateBudget) -> Upkeep:
    engine = history.db._engine
    return Upkeep(engine, store, maintained(engine, text), user, budget, Costs())


def judge(history: Histories, upkeep: Upkeep) -> None:
    """The answer is that of the query, asked anew over the tables that it names."""
    pinned = history.db._engine.at(upkeep.tables.values())
    expected = history.db._engine.run(history.db._engine.planner.over(pinned.catalog).prepare(upkeep.query.text)).table
    assert upkeep.answer is not None
    assert bag(upkeep.answer) == bag(expected), upkeep.query.text
    assert upkeep.answer.schema.types == expected.schema.types


def random_states(upkeep: Upkeep, pick: random.Random) -> None:
    """Any parts of the plan are to be kept."""
    if upkeep.query.plan is not None:
        sizes = Sizes(lambda name: upkeep.engine.catalog.table(name).schema, {})
        parts = dict.fromkeys(each.plan for each in operators(upkeep.plan, sizes).walk())
        upkeep.fixed = [part for part in parts if pick.random() < 0.5]


def run(history: Histories, upkeep: Upkeep, pick: random.Random) -> int:
    """Some steps of a history; how many answers came from changes."""
    begin(upkeep, present(upkeep.engine, upkeep.query), PREDICTION)
    judge(history, upkeep)
    found = 0
    for _ in range(STEPS):
        history.step()
        upkeep.forced = pick.choice([CHANGE, CHANGE, CHANGE, WHOLE])
        if pick.random() < 0.3:
            random_states(upkeep, pick)
        (refresh,) = advance([upkeep], present(upkeep.engine, upkeep.query), [PREDICTION if pick.random() < 0.5 else None])
        judge(history, upkeep)
        assert "could not be computed" not in refresh.reason
        found += refresh.strategy == CHANGE
    upkeep.release()
    return found


@pytest.mark.parametrize("text", SHAPES)
def test_law_any_states_give_the_same_answers(text: str, history: Histories) -> None:
    pick = random.Random(text)
    store = StateStore(history.db._engine)
    upkeep = upkeep_of(history, store, text, "one", StateBudget(1e9))
    random_states(upkeep, pick)
    assert upkeep.query.plan is not None
    upkeep.fixed = None if pick.random() < 0.2 else upkeep.fixed
    run(history, upkeep, pick)
    store.close()


@pytest.mark.parametrize("few", [0, states.FEW_GROUPS])
@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("text", SUMS)
def test_groups_are_added_to(text: str, grows: bool, few: int, history: Histories, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changed is added to kept groups, written anew or where they lie; those that end are gone, and sums of nothing null."""
    monkeypatch.setattr(states, "FEW_GROUPS", few)
    if text == SUMS[1]:
        monkeypatch.setattr(upkeeps, "Kept", lambda plan, size: Kept(plan, size, DISK))
    db, store = history.db, StateStore(history.db._engine)
    upkeep = upkeep_of(history, store, text, "one", StateBudget(1e9, 1e9))
    upkeep.fixed, upkeep.forced = [node for node in upkeep.plan.walk() if isinstance(node, GroupBy)][:1], CHANGE
    begin(upkeep, present(upkeep.engine, upkeep.query), PREDICTION)
    for step in range(6):
        nothing = {name: pa.nulls(4, ARROW[kind]) for name, kind in COLUMNS.items()}
        db.insert("r", pa.table(nothing | {"a": pa.array([None, 1, 1, 7 + step], ARROW[COLUMNS["a"]])}))
        if not grows:
            db.delete("r", where=f"a = {6 + step}" if step < 3 else "a is null" if step == 3 else "true")
        (refresh,) = advance([upkeep], present(upkeep.engine, upkeep.query), [None])
        assert refresh.strategy == CHANGE
        judge(history, upkeep)
        (state,) = upkeep.held.values()
        assert state.place == (DISK if text == SUMS[1] else MEMORY)
        assert state.rows == db._engine.at(upkeep.tables.values()).native.run_here(next(iter(upkeep.held))).num_rows
    upkeep.release()
    store.close()


def test_the_engine_of_states_does_not_stop_to_tidy_up(history: Histories) -> None:
    """A checkpoint of all states within a refresh would take many times as long as the refresh."""
    store = StateStore(history.db._engine)
    with store._native.cursor() as cursor:
        found = cursor.execute("SELECT current_setting('checkpoint_threshold')").fetchone()
    assert found is not None
    assert "TiB" in found[0]
    store.close()


@pytest.mark.parametrize("kind", ["cross", "left"])
def test_a_side_without_columns_shifts_none_of_the_others(kind: str, history: Histories) -> None:
    """Such a side has a column for the engine alone, which may come first."""
    joined = "r cross join t" if kind == "cross" else "r left join t on true"
    store = StateStore(history.db._engine)
    upkeep = upkeep_of(
        history, store, f"select x.b, u.b as c from (select distinct t.b from {joined}) x, u", "one", StateBudget(1e9)
    )
    upkeep.fixed, upkeep.forced = [node for node in upkeep.plan.walk() if isinstance(node, Join)][-1:], CHANGE
    for name in ("r", "t"):
        history._insert(name)
    begin(upkeep, present(upkeep.engine, upkeep.query), PREDICTION)
    for changed in ("u", "u", "t", "r"):
        history._insert(changed)
        (refresh,) = advance([upkeep], present(upkeep.engine, upkeep.query), [None])
        assert refresh.reason == "asked for"
        judge(history, upkeep)
    store.close()


@pytest.mark.parametrize("seed", first_quick(range(16), 3))
def test_law_random_queries(seed: int, tmp_path: Path) -> None:
    pick = random.Random(seed)
    history = Histories(tmp_path, pick.choice)
    store = StateStore(history.db._engine)
    generator, checked = QueryGenerator(pick.choice), 0
    for number in range(4):
        text = generator.query()
        try:
            upkeep = upkeep_of(
                history, store, text, f"q{number}", StateBudget(pick.choice([0.0, 1e5, 1e9]), pick.choice([0.0, 1e9]))
            )
            if upkeep.query.plan is None:
                continue
            history.db._engine.run(history.db._engine.plan(text, "native"))
        except (NearlyError, NativeFailure):
            continue  # what the native kernel does not answer has no oracle here
        random_states(upkeep, pick)
        checked += run(history, upkeep, pick)
    store.close()
    history.db.close()


def test_equal_parts_of_two_queries_are_one_state(history: Histories) -> None:
    store = StateStore(history.db._engine)
    texts = ("select a, count(*) as n from r group by a", "select max(m) from (select a as k, count(*) as m from r group by a)")
    pair = [upkeep_of(history, store, text, text, StateBudget(1e9)) for text in texts]
    for each in pair:
        each.fixed = [node for node in each.plan.walk() if isinstance(node, GroupBy) and len(node.keys) == 1]
        each.forced = CHANGE
        begin(each, present(each.engine, each.query), PREDICTION)
    states = [{state.table for state in each.held.values()} for each in pair]
    assert states[0] & states[1]
    for _ in range(3):
        history.step()
        advance(pair, present(pair[0].engine, pair[0].query), [None, None])
        for each in pair:
            judge(history, each)
    pair[0].release()
    history.step()
    advance(pair[1:], present(pair[1].engine, pair[1].query), [None])
    judge(history, pair[1])
    store.close()


def test_budgets_are_kept_by_measured_bytes(history: Histories) -> None:
    store = StateStore(history.db._engine)
    for memory, disk in ((0.0, 0.0), (3e5, 0.0), (0.0, 1e9)):
        upkeep = upkeep_of(history, store, SHAPES[2], "one", StateBudget(memory, disk))
        upkeep.forced = CHANGE
        begin(upkeep, present(upkeep.engine, upkeep.query), PREDICTION)
        for _ in range(2):
            history.step()
            advance([upkeep], present(upkeep.engine, upkeep.query), [PREDICTION])
            assert upkeep.bytes(MEMORY) <= memory
            assert upkeep.bytes(DISK) <= disk
            judge(history, upkeep)
        upkeep.release()
    store.close()


@pytest.mark.parametrize(("length", "rows"), [(300, 6_000), (6_000, 600)])
def test_texts_that_become_longer_count(length: int, rows: int, tmp_path: Path) -> None:
    """Also where there are as many as before, and where they are so long that the engine has them elsewhere."""
    db = driver_only(tmp_path / "catalog")
    db.register("words", pa.table({"k": pa.array([each % 300 for each in range(rows)], pa.int64()), "s": ["a"] * rows}))
    store = StateStore(db._engine)
    upkeep = Upkeep(
        db._engine, store, maintained(db._engine, "select k, max(s) as m from words group by k"), "one", StateBudget(1e9), Costs()
    )
    upkeep.fixed, upkeep.forced = [node for node in upkeep.plan.walk() if isinstance(node, GroupBy)], CHANGE
    begin(upkeep, present(upkeep.engine, upkeep.query), PREDICTION)
    for step in (1, 2, 3):
        longer = chr(ord("a") + step) * length * step
        db.insert("words", pa.table({"k": pa.array(range(300), pa.int64()), "s": [longer] * 300}))
        (refresh,) = advance([upkeep], present(upkeep.engine, upkeep.query), [None])
        assert refresh.reason == "asked for"
        assert upkeep.bytes() > 300 * len(longer)
    upkeep.budget = StateBudget(1e5)
    db.insert("words", pa.table({"k": pa.array([1], pa.int64()), "s": ["z"]}))
    advance([upkeep], present(upkeep.engine, upkeep.query), [None])
    assert upkeep.bytes() <= 1e5
    store.close()
    db.close()


def test_what_was_not_foreseen_must_promise_more(history: Histories) -> None:
    """A change of a table that nobody expected to change is taken from what is kept where that is expected to take half as long."""
    store = StateStore(history.db._engine)
    upkeep = upkeep_of(history, store, SHAPES[2], "one", StateBudget(1e9))
    begin(upkeep, present(upkeep.engine, upkeep.query), {"r": Expected(3.0)})
    changes = {name: {name: Expected(2.0)} for name in ("r", "t")}
    for foreseen, least in (("r", 1.0), ("t", 0.5)):
        upkeep.whole_seconds = 1e9
        _, expected = upkeep.pays(upkeep.tables, changes[foreseen])
        for share, pays in ((0.9, True), (1.1, False)):
            upkeep.whole_seconds = expected / (share * least)
            assert upkeep.pays(upkeep.tables, changes[foreseen])[0] is pays
    upkeep.release()
    store.close()


def test_versions_of_small_tables_that_were_read_do_not_pile_up(history: Histories, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "MOST_CELLS", 100)
    store = StateStore(history.db._engine)
    upkeep = upkeep_of(history, store, SHAPES[3], "one", StateBudget(0.0))
    upkeep.forced = CHANGE
    begin(upkeep, present(upkeep.engine, upkeep.query), PREDICTION)
    for _ in range(12):
        history._insert("r")
        history._insert("t")
        advance([upkeep], present(upkeep.engine, upkeep.query), [None])
        judge(history, upkeep)
    needed = 2 * sum(table.rows * len(table.columns) for table in upkeep.tables.values())
    assert sum(store._native._statics.values()) <= 100 + needed
    store.close()


@pytest.mark.parametrize(("text", "in_order"), [
    ("select b % 2 as k, count(*) as n from r group by b % 2 order by 1 desc nulls last limit 1", True),
    ("select a, n from (select a, b, count(*) as n from r group by a, b order by b, a limit 3)", False),
    ("select a, b, count(*) as n from r group by a, b order by 2 desc, 1", True),
])  # fmt: skip
def test_order_outlives_keeping(text: str, in_order: bool, history: Histories) -> None:
    """What is kept has no order of its own: rows that a LIMIT picks, and those of an answer, are put in order again."""
    store = StateStore(history.db._engine)
    upkeep = upkeep_of(history, store, text, "ordered", StateBudget(1e9))
    upkeep.fixed = [each.plan for each in operators(upkeep.plan, Sizes(lambda n: upkeep.engine.catalog.table(n).schema, {})).walk()]
    begin(upkeep, present(upkeep.engine, upkeep.query), PREDICTION)
    for _ in range(STEPS):
        history.step()
        upkeep.forced = CHANGE
        advance([upkeep], present(upkeep.engine, upkeep.query), [PREDICTION])
        judge(history, upkeep)
        assert upkeep.answer is not None
        assert not in_order or upkeep.answer.to_pylist() == history.db.sql(text).exact().table.to_pylist()
    store.close()
