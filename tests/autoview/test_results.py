"""Whole results are kept: of queries that are no plain blocks, in their order, and only while tables are what they were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.autoview import rewriter, upkeep
from nearly.autoview.candidates import RESULT, result_of
from nearly.autoview.making import Intention, Making, Usual
from nearly.autoview.options import Occasion, Option
from nearly.autoview.policies.policy import ViewPolicy
from nearly.autoview.policies.simple import Lru
from tests.autoview.keen import both, held_still, keen
from tests.fixtures.driver_only import driver_only

ROWS = pa.table({
    "id": list(range(400)), "k": [f"k{number % 9}" for number in range(400)], "x": [(number * 37) % 101 for number in range(400)],
    "d": [number / 7 for number in range(400)],
})  # fmt: skip
KEPT = (
    "select k, sum(x) as s from t group by k order by s desc limit 3",
    "select k, s from (select k, sum(x) as s, max(id) as m from t group by k) order by m, k",
    "select id, x from t order by x desc, id limit 5 offset 2",
    "select id, k, row_number() over (partition by k order by x, id) as n from t order by id",
    "select k from t where x > 50 union select k from t where x < 3 order by k desc",
    "select k, id % 2 as odd, count(*) as n from t group by rollup(k, id % 2) order by k, odd, n",
    "select a.id, b.x from t a left join t b on a.id = b.id + 1 and b.x > 90 where a.id < 20 order by a.id",
    "select k, avg(d) as m from t group by k having avg(d) > 28 order by k",
    "with c as (select k, sum(x) as s from t group by k) select a.k, a.s - b.s as d from c a cross join c b order by a.k, d",
    "select x from (select x, id from t order by x limit 7) order by id",
)


class Results(Lru):
    """Makes whole results only."""

    def ranked(self, moment: Occasion) -> list[Option]:
        return [each for each in super().ranked(moment) if each.id in self.wanted]

    wanted: frozenset[str] = frozenset()


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[nearly.Session]:
    monkeypatch.setattr(rewriter, "CHEAPER", 1e9)  # of so small a table nothing is gained
    pq.write_table(ROWS, tmp_path / "t.parquet")
    with keen(), driver_only(tmp_path / "catalog") as session:
        session.register("t", str(tmp_path / "t.parquet"), key=["id"])
        yield session


def _only_results(db: nearly.Session, texts: tuple[str, ...]) -> nearly.autoview.autoview.AutoView:
    auto = held_still(db.autoview("10MB", policy="lru", slowdown=10))
    policy = Results(0)
    plans = [db._engine.prepare(text).query for text in texts]
    found = [result_of(each.plan, "") for each in plans if each is not None]
    policy.wanted = frozenset(each.id for each in found if each is not None)
    auto.keeping.policy = policy
    return auto


@pytest.mark.parametrize("text", KEPT)
def test_a_result_is_served_again_in_its_order(db: nearly.Session, text: str) -> None:
    auto = _only_results(db, (text,))
    first, expected, _ = both(db, text)
    again, _, source = both(db, text)
    assert first.equals(expected)
    assert again.equals(expected)
    assert "autoview" in source, auto.status()
    assert {each.kind for each in auto.status().views} == {RESULT}


@pytest.mark.parametrize("text", KEPT)
def test_a_changed_table_is_never_answered_from_an_old_result(db: nearly.Session, text: str) -> None:
    auto = _only_results(db, (text,))
    db.sql(text).exact()
    db.insert("t", [{"id": 1000, "k": "new", "x": 1000, "d": 1e6}, {"id": 1001, "k": "k1", "x": 0, "d": -5.0}])
    for _ in range(2):
        found, expected, _ = both(db, text)
        assert found.equals(expected)
        auto.settle()
    db.delete("t", where="x > 99")
    auto.settle()
    found, expected, _ = both(db, text)
    assert found.equals(expected)


def test_a_result_of_an_earlier_session_is_served_and_advised(tmp_path: Path, db: nearly.Session) -> None:
    text = KEPT[4]
    auto = _only_results(db, (text,))
    for _ in range(4):
        db.sql(text).exact()
    (statement,) = auto.advice()
    assert statement.endswith(text)
    name = statement.split()[3]
    db.execute(statement)
    assert db.sql(f"select * from {name}").exact().table.num_rows == db.sql(text).exact().table.num_rows
    db.drop_view(name)
    db.close()
    with driver_only(tmp_path / "catalog") as again:
        held_still(again.autoview("10MB", policy="lru"))
        assert "autoview" in again.sql(text).exact().source


def test_what_is_too_large_is_not_tried_again(db: nearly.Session) -> None:
    auto = _only_results(db, KEPT)
    auto._store.limit = 10
    auto.keeping.policy.ranked = lambda moment: [Option(each.id, each.shape, 1.0, 0, 1, 0) for each in moment.options]  # type: ignore[method-assign]
    for _ in range(3):
        found, expected, source = both(db, KEPT[3])
        assert found.equals(expected)
        assert "autoview" not in source
    assert len(auto.keeping.making._given_up)
    assert not auto.status().views


def test_what_took_too_long_is_tried_again_once_its_query_was_measured(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, both what the query takes and what making the view takes were guessed."""
    auto = held_still(db.autoview("10MB", policy="lru", slowdown=10))
    text = "select k, sum(x) as s from t where x > 10 group by k having sum(x) > 5"
    groups = [id_ for id_, each in auto.keeping.mining.mine(db._engine.prepare(text)).candidates.items() if each.kind != RESULT]
    ranked = auto.keeping.policy.ranked
    auto.keeping.policy.ranked = lambda moment: [each for each in ranked(moment) if each.id in groups]  # type: ignore[method-assign]
    limits: list[bool] = []

    def at_once(_: Making, intended: Intention, usual: Usual) -> float:
        limits.append(usual.measured is not None)
        return -1.0

    monkeypatch.setattr(Making, "_limit", at_once)
    for _ in range(3):
        found, expected, source = both(db, text)
        assert found.sort_by("k").equals(expected.sort_by("k"))
        assert "autoview" not in source
    assert limits == sorted(limits)
    assert limits[0] is False
    assert sum(limits) == len(auto.keeping.making._given_up) > 0


def test_how_large_a_result_is_becomes_known_when_it_is_shown(db: nearly.Session) -> None:
    text = "select id, k from t where x * x + id > 10 and id < 2 order by id"
    auto = _only_results(db, (text,))
    auto.keeping.policy = ViewPolicy()
    prepared = db._engine.prepare(text)
    mining = auto.keeping.mining
    (expected,) = [each for each in mining.mine(prepared).options if mining.mine(prepared).candidates[each.id].kind == RESULT]
    db.sql(text).exact()
    known, (rows, *_) = mining.current(expected), db.sql(text).exact().table.shape
    assert known.bytes == auto.keeping.estimates.bytes(mining.mine(prepared).candidates[known.id].stored.maintained, rows)
    assert known.bytes < expected.bytes


def test_how_large_a_result_is_becomes_known_when_a_view_served_it(db: nearly.Session) -> None:
    """Else a small result that is taken for a large one is never kept, once a lesser view serves its query."""
    text = "select k, sum(x) as s from t where x * x + id > 10 group by k having sum(x) > 1000000"
    auto = held_still(db.autoview("10MB", policy="lru", slowdown=10))
    mining, ranked = auto.keeping.mining, auto.keeping.policy.ranked
    mined = mining.mine(db._engine.prepare(text))
    (result,) = [each for each in mined.options if mined.candidates[each.id].kind == RESULT]
    auto.keeping.policy.ranked = lambda moment: [each for each in ranked(moment) if each.id != result.id]  # type: ignore[method-assign]
    assert db.sql(text).exact().table.num_rows == 0
    assert auto.status().views
    made = mining.current(result)
    assert made.bytes == auto.keeping.estimates.bytes(mined.candidates[result.id].stored.maintained, 0)
    assert made.bytes < result.bytes


NUMBERED = "select sum(x) as s from (select x, row_number() over (partition by k order by {}) as n from t) where n = 1"


@pytest.mark.parametrize(("order", "moved"), [("x % 3", 0), ("x % 3, id", 1)])
def test_a_result_that_hangs_on_ties_is_not_brought_up_to_date(
    db: nearly.Session, monkeypatch: pytest.MonkeyPatch, order: str, moved: int
) -> None:
    """Which of the rows that tie it has counted is not known: what another computation takes away may be another one."""
    monkeypatch.setattr(upkeep, "FEW", 1e9)
    monkeypatch.setattr(upkeep, "_expected", lambda *_: 0.0)
    text = NUMBERED.format(order)
    auto = _only_results(db, (text,))
    for _ in range(2):
        db.sql(text).exact()
    assert auto.status().views
    db.insert("t", [{"id": 1000, "k": "k3", "x": 3, "d": 1.0}])
    auto.settle()
    assert (auto.status().tally.moved, auto.status().tally.lost) == (moved, 1 - moved)
