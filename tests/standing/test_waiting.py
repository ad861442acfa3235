"""Rows that wait for their partner: answers are those of recomputation, whatever comes, goes or changes, and few rows are kept."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.costs import Constants, Costs
from nearly.engine.storage.layouts import Table
from nearly.plan.nodes import GroupBy, Join, Plan
from nearly.rewrite.delta.waiting import LEFT, RIGHT, waiting_rows
from nearly.standing import course
from nearly.standing.actions import Prices
from nearly.standing.arrivals import Expected, Forecast, History, Past, Prediction
from nearly.standing.drawing import drawn, status_of
from nearly.standing.maintained import maintained, present
from nearly.standing.operators import Sizes, operators, tables_of
from nearly.standing.planner import Planned, StateBudget, choose
from nearly.standing.policy import RefreshPolicy
from nearly.standing.refresh import advance, begin
from nearly.standing.states import StateStore
from nearly.standing.upkeep import CHANGE, Upkeep
from tests.engine.deltas.judging import bag, rows_of
from tests.fixtures.driver_only import driver_only
from tests.fixtures.long import first_quick

KEYS = {"lines": ["line"], "orders": ["id"], "people": ["id"], "prices": ["shop", "item"]}
FIRST_ROWS, MOST = 12, 40
PREDICTION, FEW = ({name: Expected(rows) for name in KEYS} for rows in (3.0, 0.1))
TEXTS = (
    "select l.n, o.day from lines l join orders o on l.order = o.id",
    "select l.n from lines l join orders o on l.order = o.id where o.day > 2 and l.n > 1",
    "select o.day, count(*) as k, sum(l.n) as x from lines l join orders o on l.order = o.id group by o.day",
    "select l.n, p.country from lines l join orders o on l.order = o.id join people p on o.person = p.id where o.day > 1",
    """select p.country, count(*) as k from lines l join orders o on l.order = o.id join people p on o.person = p.id
       where p.country < 3 group by p.country""",
    "select l.n, c.cost from lines l join prices c on l.shop = c.shop and l.item = c.item",
    """select l.n, c.cost, p.country from lines l join prices c on l.shop = c.shop and l.item = c.item and l.n >= c.cost
       join orders o on l.order = o.id join people p on p.id = o.person and p.country = l.shop""",
    "select a.day, b.day as other from orders a join orders b on a.before = b.id",
    "select a.day, b.day as other, p.country from orders a join orders b on a.before = b.id join people p on b.person = p.id",
    "select a.day, b.day as other from orders a join orders b on a.id = b.id and b.day > 1",
    "select p.country, q.cost from people p join (select shop, max(cost) as cost from prices group by shop) q on p.id = q.shop",
    "select l.n, o.day from lines l left join orders o on l.order = o.id",
    "select l.n from lines l where exists (select 1 from orders o where o.id = l.order and o.day > 2)",
)


class Arrivals:
    """Tables with keys whose rows come in any order, so that what they refer to may come later."""

    def __init__(self, path: Path, seed: int) -> None:
        self.pick = random.Random(seed)
        self.db: nearly.Session = driver_only(path / "catalog")
        self.coming = {name: self._shuffled(name) for name in KEYS}
        for name, key in KEYS.items():
            pq.write_table(self._next(name, FIRST_ROWS), path / f"{name}.parquet")
            self.db.register(name, str(path / f"{name}.parquet"), key=key)

    def _shuffled(self, name: str) -> list[dict[str, Any]]:
        """Rows with few different values, and nulls where they refer to others."""
        some, near = lambda: self.pick.choice([1, 2, 3]), lambda: self.pick.choice([None, *range(MOST)])
        made = {
            "lines": lambda i: {"line": i, "order": near(), "shop": some(), "item": self.pick.choice([None, 1, 2, 9]), "n": some()},
            "orders": lambda i: {"id": i, "person": near(), "before": near(), "day": some()},
            "people": lambda i: {"id": i, "country": some()},
            "prices": lambda i: {"shop": i // 8, "item": i % 8, "cost": some()},
        }[name]
        rows = [made(i) for i in range(MOST)]
        self.pick.shuffle(rows)
        return rows

    def _next(self, name: str, count: int) -> pa.Table:
        rows, self.coming[name] = self.coming[name][:count], self.coming[name][count:]
        names = list(rows[0])
        return pa.table({each: pa.array([row[each] for row in rows], pa.int64()) for each in names})

    def come(self) -> None:
        """Some rows of some tables."""
        for name in KEYS:
            if self.coming[name] and self.pick.random() < 0.7:
                self.db.insert(name, self._next(name, self.pick.choice([1, 2, 5])))

    def go(self) -> None:
        """Rows go, change, and some come back under their old keys."""
        name = self.pick.choice(list(KEYS))
        rows = self.db.sql(f"select * from {name}").exact().table
        some = rows.take(pa.array(sorted(self.pick.sample(range(rows.num_rows), min(3, rows.num_rows))), pa.int64()))
        self.db.delete(name, some.select(KEYS[name]))
        self.coming[name] += some.slice(0, 2).to_pylist()
        change = {"lines": {"n": "n + 1"}, "orders": {"day": "day % 3 + 1"}, "people": {"country": "2"}, "prices": {"cost": "1"}}
        if self.pick.random() < 0.5:
            self.db.update(name, change[name], self.pick.choice(["true", f"{KEYS[name][0]} % 2 = 0"]))


@pytest.fixture
def arrivals(tmp_path: Path) -> Iterator[Arrivals]:
    made = Arrivals(tmp_path, 5)
    yield made
    made.db.close()


def upkeep_of(arrivals: Arrivals, store: StateStore, text: str, user: str = "one") -> Upkeep:
    engine = arrivals.db._engine
    return Upkeep(engine, store, maintained(engine, text), user, StateBudget(1e9), Costs(), forced=CHANGE)


def waiting_of(upkeep: Upkeep) -> list[Plan]:
    """All waiting rows that could be kept."""
    joins = [node for node in upkeep.plan.walk() if isinstance(node, Join)]
    found = (
        waiting_rows(join, side, lambda name: upkeep.engine.catalog.table(name).key) for join in joins for side in (LEFT, RIGHT)
    )
    return [each for each in found if each is not None]


def parts_of(upkeep: Upkeep) -> list[Plan]:
    sizes = Sizes(lambda name: upkeep.engine.catalog.table(name).schema, {})
    return list(dict.fromkeys(each.plan for each in operators(upkeep.plan, sizes).walk()))


def judge(arrivals: Arrivals, upkeep: Upkeep) -> None:
    """The answer is that of the query asked anew, and what is kept are the rows of its plan."""
    expected = arrivals.db.sql(upkeep.query.text).exact().table
    assert upkeep.answer is not None
    assert bag(upkeep.answer) == bag(expected), upkeep.query.text
    with upkeep.store._native.cursor() as cursor:
        for plan, state in upkeep.held.items():
            kept = cursor.sql(f"SELECT * FROM {state.table}").to_arrow_table()
            if plan.columns:
                assert bag(kept) == bag(rows_of(upkeep.engine, plan, upkeep.tables)), plan
            assert kept.num_rows == state.rows


@pytest.mark.parametrize("grows", [True, False])
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("seed", first_quick(range(12), 1))
def test_law_any_states_give_the_same_answers(
    text: str, grows: bool, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether rows that wait are written anew, or those that found their partner are looked for."""
    arrivals, pick = Arrivals(tmp_path, seed), random.Random(f"{seed} {text}")
    if pick.random() < 0.5:
        monkeypatch.setattr(course, "is_soon_written", lambda *_: False)
    store = StateStore(arrivals.db._engine)
    upkeep = upkeep_of(arrivals, store, text)
    upkeep.fixed = [*waiting_of(upkeep), *(part for part in parts_of(upkeep) if pick.random() < 0.3)]
    begin(upkeep, present(upkeep.engine, upkeep.query), PREDICTION)
    judge(arrivals, upkeep)
    for _ in range(7):
        arrivals.come()
        if not grows and pick.random() < 0.5:
            arrivals.go()
        if pick.random() < 0.3:
            upkeep.fixed = [part for part in (*waiting_of(upkeep), *parts_of(upkeep)) if pick.random() < 0.6]
        (refresh,) = advance([upkeep], present(upkeep.engine, upkeep.query), [PREDICTION if pick.random() < 0.4 else None])
        assert "could not be computed" not in refresh.reason
        judge(arrivals, upkeep)
    upkeep.release()
    store.close()
    arrivals.db.close()


def chosen_of(upkeep: Upkeep, tables: dict[str, Table], prediction: Prediction) -> Planned:
    """What is worth keeping beside waiting rows where reading is dear, and lines are too many to be kept."""
    small = [part for part in parts_of(upkeep) if "lines" not in tables_of(part)]
    prices = Prices(Constants(scan=1e-3, stage=1e-6, fixed=1e-6), horizon=1000)
    return choose(upkeep.root(tables, prediction), prices, StateBudget(1e9), only=[*waiting_of(upkeep), *small])


def test_they_are_kept_instead_of_all_rows(arrivals: Arrivals) -> None:
    """As long as the other side is expected to grow; they are fewer from refresh to refresh, and in the end none."""
    store = StateStore(arrivals.db._engine)
    upkeep = upkeep_of(arrivals, store, TEXTS[3].replace("l.n", "l.n, l.item, l.shop"))
    waiting = waiting_of(upkeep)
    assert len(waiting) == 2
    tables = present(upkeep.engine, upkeep.query)
    assert {each.plan for each in chosen_of(upkeep, tables, FEW).keeps if each.waits} == {*waiting}
    for other in ({name: Expected(0.1, 0.1) for name in KEYS}, {"lines": Expected(0.1)}):
        assert not any(each.waits for each in chosen_of(upkeep, tables, other).keeps)
    upkeep.fixed = waiting
    begin(upkeep, tables, PREDICTION)
    while any(arrivals.coming.values()):
        arrivals.come()
        advance([upkeep], present(upkeep.engine, upkeep.query), [None])
        judge(arrivals, upkeep)
    assert sum(state.rows for state in upkeep.held.values()) == _without_reference(arrivals)
    store.close()


def test_files_that_appear_may_have_keys_that_were_there(arrivals: Arrivals, tmp_path: Path) -> None:
    """Nobody refuses them: rows that wait no more meet them, too."""
    db, day = arrivals.db, {"person": 1, "before": None, "day": 1}
    (tmp_path / "late").mkdir()
    pq.write_table(pa.Table.from_pylist([{"id": 1, **day}]), tmp_path / "late" / "a.parquet")
    db.drop("orders")
    db.register("orders", str(tmp_path / "late"), key=["id"])
    db.insert("lines", [{"line": 900 + each, "order": 1 + each % 2, "shop": 1, "item": 1, "n": each} for each in range(4)])
    store = StateStore(db._engine)
    upkeep = upkeep_of(arrivals, store, TEXTS[2])
    upkeep.fixed = [*waiting_of(upkeep), *(part for part in parts_of(upkeep) if isinstance(part, GroupBy))]
    begin(upkeep, present(upkeep.engine, upkeep.query), PREDICTION)
    for name, keys in (("b", [2]), ("c", [1, 2])):
        pq.write_table(pa.Table.from_pylist([{"id": key, **day} for key in keys]), tmp_path / "late" / f"{name}.parquet")
        db.refresh("orders")
        (refresh,) = advance([upkeep], present(upkeep.engine, upkeep.query), [PREDICTION])
        assert refresh.strategy == CHANGE
        assert refresh.reason == "asked for"
        judge(arrivals, upkeep)
    store.close()


@pytest.mark.parametrize("is_dropped", [True, False])
def test_files_that_a_registration_finds_may_have_known_keys(is_dropped: bool, arrivals: Arrivals, tmp_path: Path) -> None:
    """No commit tells of them, whatever is inserted after it."""
    db, day = arrivals.db, {"person": 1, "before": 2, "day": 1}
    late = tmp_path / "late"
    late.mkdir()
    pq.write_table(pa.Table.from_pylist([{"id": 1, **day}]), late / "a.parquet")
    db.register("late", str(late), key=["id"])
    db.insert("lines", [{"line": 900 + each, "order": 1 + each % 2, "shop": 1, "item": 1, "n": each} for each in range(4)])
    store = StateStore(db._engine)
    upkeep = upkeep_of(arrivals, store, TEXTS[0].replace("orders", "late"))
    upkeep.fixed = [*waiting_of(upkeep), *(part for part in parts_of(upkeep) if isinstance(part, Join))]
    begin(upkeep, present(upkeep.engine, upkeep.query), PREDICTION)
    for name, keys in (("b", [2]), ("c", [1, 2])):
        pq.write_table(pa.Table.from_pylist([{"id": key, **day} for key in keys]), late / f"{name}.parquet")
        if is_dropped:
            db.drop("late")
        db.register("late", str(late), key=["id"])
        if name == "c":
            db.insert("late", [{"id": 7, **day}])
            db.insert("late", [{"id": 8, **day}])
        (refresh,) = advance([upkeep], present(upkeep.engine, upkeep.query), [PREDICTION])
        assert refresh.reason == "asked for"
        judge(arrivals, upkeep)
    store.close()


def _without_reference(arrivals: Arrivals) -> int:
    """Rows that refer to nothing wait for ever."""
    lines = "select count(*) from lines where order is null"
    orders = "select count(*) from lines l join orders o on l.order = o.id where o.person is null and o.day > 1"
    return sum(arrivals.db.sql(text).exact().table[0][0].as_py() for text in (lines, orders))


def test_only_for_keys_of_one_table(arrivals: Arrivals) -> None:
    """Not for part of a key, for what is not passed on as it is, for values of other types, or for groups."""
    store = StateStore(arrivals.db._engine)
    for text in (
        "select l.n from lines l join prices c on l.shop = c.shop",
        "select l.n from lines l join (select id + 1 as id from orders) o on l.order = o.id",
        "select l.n from lines l join people p on cast(l.shop as int) = p.id",
        "select l.n from lines l join orders o on l.order < o.id",
        "select o.day from orders o join (select shop, max(cost) as cost from prices group by shop) q on o.day = q.shop",
        "select l.n from lines l cross join orders o",
        "select l.n from lines l left join orders o on l.order = o.id",
    ):
        assert waiting_of(upkeep_of(arrivals, store, text)) == [], text
    store.close()


def test_equal_ones_of_two_queries_are_one_state(arrivals: Arrivals) -> None:
    store = StateStore(arrivals.db._engine)
    pair = [
        upkeep_of(arrivals, store, text, text) for text in (TEXTS[0], f"select day, sum(n) as x from ({TEXTS[0]}) group by day")
    ]
    for each in pair:
        each.fixed = waiting_of(each)
        begin(each, present(each.engine, each.query), PREDICTION)
    (state,), (other,) = (each.held.values() for each in pair)
    assert state is other
    for _ in range(3):
        arrivals.come()
        advance(pair, present(pair[0].engine, pair[0].query), [None, None])
        for each in pair:
            judge(arrivals, each)
    store.close()


def test_it_is_told_what_waits_and_why(arrivals: Arrivals) -> None:
    store = StateStore(arrivals.db._engine)
    upkeep = upkeep_of(arrivals, store, TEXTS[0])
    begin(upkeep, present(upkeep.engine, upkeep.query), {})
    upkeep.planned = chosen_of(upkeep, upkeep.tables, FEW)
    arrivals.come()
    advance([upkeep], present(upkeep.engine, upkeep.query), [None])
    judge(arrivals, upkeep)
    told = drawn(upkeep, PREDICTION)
    assert "rows of the left side that wait    -- kept in memory" in told
    assert "since rows whose partner has not arrived: what comes meets no others" in told
    status = status_of("s", upkeep, RefreshPolicy(), Forecast(History(), Past({})), (), 0.0, False, None)
    assert sum(each.what.endswith("rows whose partner has not arrived") for each in status.states) == 1
    store.close()


def test_many_rows_are_written_anew_where_more_partners_are_looked_at(arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch) -> None:
    store = StateStore(arrivals.db._engine)
    upkeep = upkeep_of(arrivals, store, TEXTS[0])
    tables = present(upkeep.engine, upkeep.query)
    monkeypatch.setattr(course, "FEW", 0)
    for plan in waiting_of(upkeep):
        (partners,) = (tables[name].rows for name in tables_of(plan.children[1]))
        assert course.is_soon_written(plan, partners, tables)
        assert not course.is_soon_written(plan, partners + 1, tables)
    store.close()
