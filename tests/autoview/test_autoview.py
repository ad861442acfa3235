"""Automatic views are made, used, evicted and followed, and no answer changes by it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.autoview import upkeep
from nearly.autoview.course import QueryCourse
from nearly.autoview.policies.known import NAMES
from nearly.autoview.policies.policy import ViewPolicy
from nearly.autoview.statements import ADVISED
from nearly.errors import EngineError, SchemaError, Unsupported
from tests.autoview.keen import both, held_still, keen, rows_on_disk
from tests.fixtures.driver_only import driver_only

SALES = pa.table({
    "id": list(range(3000)), "shop": [f"s{number % 7}" for number in range(3000)],
    "day": pa.array([number % 20 for number in range(3000)], pa.int32()),
    "price": pa.array([number % 13 for number in range(3000)]),
})  # fmt: skip
SHOPS = pa.table({"shop": [f"s{number}" for number in range(6)], "city": ["Rome", "Oslo", "Rome", "Bern", "Oslo", "Bern"]})
BY_CITY = (
    "select city, sum(price) as s, count(*) as n from sales s join shops t on s.shop = t.shop where day > {} "
    "group by city order by city"
)
NESTED = (
    "select a.city, count(*) as n from (select shop, sum(price) as p from sales group by shop) x join shops a on a.shop = x.shop "
    "where x.p > 10 group by a.city order by a.city"
)
QUESTIONS = (
    BY_CITY.format(3), BY_CITY.format(5),
    "select shop, avg(price) as a from sales where day = 4 group by shop order by shop",
    "select shop, avg(price) as a from sales where day = 9 group by shop order by shop",
    "select s.id, t.city from sales s join shops t on s.shop = t.shop where s.day = 3 and s.price > 8 order by s.id",
    "select max(price) as m, count(distinct shop) as n from sales where day < 7",
    NESTED,
)  # fmt: skip


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    pq.write_table(SALES, tmp_path / "sales.parquet")
    pq.write_table(SHOPS, tmp_path / "shops.parquet")
    return tmp_path / "catalog"


@pytest.fixture
def db(catalog: Path) -> Iterator[nearly.Session]:
    with keen(), driver_only(catalog) as session:
        session.register("sales", str(catalog.parent / "sales.parquet"), key=["id"])
        session.register("shops", str(catalog.parent / "shops.parquet"))
        yield session


LONG = ("lfu", "fifo", "hawc", "recycler")


@pytest.mark.parametrize("policy", [name if name not in LONG else pytest.param(name, marks=pytest.mark.long) for name in NAMES])
def test_answers_are_the_same_and_storage_is_a_limit(db: nearly.Session, catalog: Path, policy: str) -> None:
    auto = held_still(db.autoview("12kb", policy=policy, slowdown=10))
    served = 0
    for turn in range(3):
        for text in QUESTIONS:
            found, expected, source = both(db, text)
            assert found.equals(expected), text
            assert rows_on_disk(catalog) <= 12 * 1024
            served += source != "native"
        if turn == 0:
            db.insert(
                "sales", [{"id": 9000, "shop": "s3", "day": 4, "price": 100}, {"id": 9001, "shop": None, "day": 4, "price": None}]
            )
            db.delete("sales", where="id in (3, 4, 10)")
        auto.settle()
        assert rows_on_disk(catalog) == auto.status().bytes
    assert served or policy in ("off", "learned"), "what the learner makes hangs on what experiments measure"
    assert not served or policy != "off"
    assert "policy " + policy in str(auto.status())


def test_a_general_view_serves_other_constants(db: nearly.Session) -> None:
    auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    for day in (*range(6), *range(6)):
        found, expected, _ = both(db, BY_CITY.format(day))
        assert found.equals(expected)
        auto.settle()
    kinds = {view.kind for view in auto.status().views}
    assert "aggregate" in kinds
    assert "autoview: yes, autoview" in db.sql(BY_CITY.format(15)).explain()


def test_every_kind_of_part_serves_the_query_it_was_found_in(db: nearly.Session) -> None:
    auto = held_still(db.autoview("1MB", policy="off"))
    mined = auto.keeping.mining.mine(db._engine.prepare(BY_CITY.format(3)))
    assert {mined.candidates[each.id].kind for each in mined.options} == {"result", "aggregate", "join", "filter"}
    assert len(mined.options) == len(mined.candidates)


def test_views_follow_their_tables_or_go(db: nearly.Session) -> None:
    auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    for text in QUESTIONS * 2:
        db.sql(text).exact()
    assert auto.status().views
    db.insert("sales", [{"id": 9000, "shop": "s3", "day": 4, "price": 100}])
    for text in QUESTIONS:
        found, expected, _ = both(db, text)
        assert found.equals(expected)
    auto.settle()
    assert auto.status().tally.moved + auto.status().tally.lost > 0
    for text in QUESTIONS:
        found, expected, _ = both(db, text)
        assert found.equals(expected)
    db.drop("shops")
    auto.settle()
    assert all("shops" not in view.tables for view in auto.status().views)


def test_views_are_brought_up_to_date(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_expected", lambda *_: 0.0)
    auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    for text in QUESTIONS * 2:
        db.sql(text).exact()
    kept = {view.kind for view in auto.status().views}
    for turn in range(3):
        db.insert("sales", [{"id": 9000 + turn, "shop": "s3", "day": 4, "price": 100}])
        db.delete("sales", where=f"id = {turn}")
        auto.settle()
    tally = auto.status().tally
    assert tally.moved > tally.lost
    assert kept == {view.kind for view in auto.status().views}
    sources = set()
    for text in QUESTIONS:
        found, expected, source = both(db, text)
        assert found.equals(expected)
        sources.add(source)
    assert sources - {"native"}


def test_what_was_kept_and_learned_survives(catalog: Path, db: nearly.Session) -> None:
    auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    for text in QUESTIONS * 3:
        db.sql(text).exact()
    kept = {view.name for view in auto.status().views}
    assert kept
    db.close()
    with driver_only(catalog) as again:
        auto = held_still(again.autoview("1MB", policy="lru"))
        assert {view.name for view in auto.status().views} == kept
        sources = set()
        for text in QUESTIONS:
            found, expected, source = both(again, text)
            assert found.equals(expected)
            sources.add(source)
        assert sources & kept


def test_a_smaller_storage_keeps_less(db: nearly.Session, catalog: Path) -> None:
    auto = held_still(db.autoview("1MB", policy="fifo", slowdown=10))
    for text in QUESTIONS * 2:
        db.sql(text).exact()
    assert auto.status().bytes > 3000
    held_still(db.autoview("3kb"))
    assert rows_on_disk(catalog) <= 3 * 1024
    assert db.autoview().settings.policy == "fifo"


def test_files_that_someone_changed_are_not_read(db: nearly.Session, catalog: Path) -> None:
    auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    for text in QUESTIONS * 2:
        db.sql(text).exact()
    assert auto.status().views
    for place, each in enumerate((catalog / "autoview" / "rows").rglob("*.parquet")):
        size, times = each.stat().st_size, (each.stat().st_atime_ns, each.stat().st_mtime_ns)
        each.write_bytes(b"no rows" if place % 2 else bytes(size))
        os.utime(each, ns=times)
    for text in QUESTIONS:
        found, expected, _ = both(db, text)
        assert found.equals(expected)


def test_a_tables_file_that_vanishes_is_not_blamed_on_views(db: nearly.Session, catalog: Path) -> None:
    held_still(db.autoview("1MB", policy="lru", slowdown=10))
    for _ in range(3):
        db.sql(BY_CITY.format(3)).exact()
    auto = held_still(db.autoview("1MB", policy="off"))  # nothing is made, so that it is the reading that fails
    expected = db.sql(BY_CITY.format(3)).exact()
    assert expected.source != "native"
    kept = set(auto.keeping.store.kept)
    away = (catalog.parent / "sales.parquet").rename(catalog.parent / "away.parquet")
    with pytest.raises(EngineError, match=r"sales\.parquet"):
        db.sql(BY_CITY.format(3)).exact()
    assert set(auto.keeping.store.kept) == kept
    away.rename(catalog.parent / "sales.parquet")
    found = db.sql(BY_CITY.format(3)).exact()
    assert found.table.equals(expected.table)
    assert found.source != "native"


def test_a_view_that_serves_what_only_spark_can_judge_saves_nothing(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    for _ in range(3):
        expected = db.sql(BY_CITY.format(3)).exact()
    assert expected.source != "native"
    served, auto.keeping.policy = auto.status().tally.served, ViewPolicy()
    monkeypatch.setattr(QueryCourse, "_rows", lambda *_: None)
    found = db.sql(BY_CITY.format(3)).exact()
    assert found.table.equals(expected.table)
    assert found.source == "native"
    assert auto.status().tally.served == served


def test_off_takes_effect_at_once(db: nearly.Session, catalog: Path) -> None:
    auto = db.autoview("1MB", policy="lru", slowdown=10)
    query = db.sql(QUESTIONS[0])
    for _ in range(3):
        query.exact()
    auto.off()
    auto.off()
    assert rows_on_disk(catalog) == 0
    assert query.exact().source == "native"
    assert not db.autoview().is_on
    with pytest.raises(SchemaError, match="automatic views are off"):
        auto.settle()
    with pytest.raises(Unsupported, match="automatic views are off"):
        db.sql(QUESTIONS[0], using="autoview").exact()
    db.autoview("1MB", policy="lru")
    assert query.exact().table.equals(db.sql(QUESTIONS[0], kernel="native").exact().table)


def test_advice_can_be_executed(db: nearly.Session) -> None:
    auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    for text in QUESTIONS * 4:
        db.sql(text).exact()
    advice = auto.advice()
    assert advice
    for statement in advice:
        db.execute(statement)
    assert len(db.views) == len(advice)


AWKWARD = (
    "select s.shop, t.shop, s.shop as `shop_2` from sales s join shops t on s.shop = t.shop where s.price > 11",
    "with w as (select shop as a, city as A from shops) select * from w order by 2 limit 3",
    "select sum(days) as d, max(mean) as m from by_shop where days > 3",
    "select shop, mean from by_shop where shop > 's2'",
)


def test_advice_about_awkward_columns_can_be_executed(db: nearly.Session) -> None:
    """Two of one name, and those that only nearly sees: a view of averages keeps sums and counts."""
    db.execute("create materialized view by_shop as select shop, avg(price) as mean, count(*) as days from sales group by shop")
    auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    for text in AWKWARD * 6:
        db.sql(text).exact()
    for view in auto.keeping.store.kept.values():
        view.holding.uses = ADVISED
    kept = [each.candidate for each in auto.keeping.store.kept.values()]
    assert {each.text.startswith("SELECT * FROM (") for each in kept if each.kind == "result"} == {True, False}
    assert any(each.hidden for each in kept)
    advice = auto.advice()
    assert 0 < len(advice) < len(kept)
    for statement in advice:
        db.execute(statement)
    assert len(db.views) == len(advice) + 1


def test_bad_input_is_refused(db: nearly.Session) -> None:
    with pytest.raises(SchemaError, match="say how much they may keep"):
        db.autoview()
    with pytest.raises(SchemaError, match="is no size"):
        db.autoview("much")
    with pytest.raises(SchemaError, match="is more than any machine has"):
        db.autoview("9" * 400)
    with pytest.raises(SchemaError, match="must be more than nothing"):
        db.autoview("0")
    with pytest.raises(SchemaError, match="policy='best' must be one of 'learned'"):
        db.autoview("1MB", policy="best")
    with pytest.raises(SchemaError, match="slowdown=-1 must lie between"):
        db.autoview("1MB", slowdown=-1)
    with pytest.raises(SchemaError, match="seed=-1 must be a whole number"):
        db.autoview("1MB", seed=-1)


def test_one_session_has_a_catalogs_views(db: nearly.Session, catalog: Path) -> None:
    db.autoview("1MB")
    with driver_only(catalog) as other, pytest.raises(EngineError, match="on in another session"):
        other.autoview("1MB")
