"""Views of tables that become others, and of other time zones, are not used; what could be kept of a text is found out again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.autoview import making
from nearly.autoview.autoview import AutoView
from nearly.autoview.course import QueryCourse
from tests.autoview.keen import both, held_still, keen, rows_on_disk
from tests.fixtures.driver_only import driver_only

BY_DAY = "select cast(at as date) as day, count(*) as n, sum(x) as s from events group by cast(at as date) order by 1"
BY_GROUP = "select g, sum(x) as s, max(x) as m from events where id > 10 group by g order by g"


def events(values: pa.Array | None = None) -> pa.Table:
    hours = pa.array([1_577_836_800_000_000 + 3_600_000_000 * (number % 24) for number in range(3000)], pa.timestamp("us", "UTC"))
    numbers = pa.array(list(range(3000)))
    given = numbers if values is None else values
    return pa.table({"id": numbers, "at": hours, "g": [number % 5 for number in range(3000)], "x": given})


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    with keen(), driver_only(tmp_path / "catalog") as session:
        pq.write_table(events(), tmp_path / "events.parquet")
        session.register("events", str(tmp_path / "events.parquet"))
        yield session


def opened(db: nearly.Session) -> AutoView:
    return held_still(db.autoview("1MB", policy="lru", slowdown=10))


def test_a_view_serves_in_its_own_time_zone_only(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    auto = opened(db)
    for _ in range(2):
        db.sql(BY_DAY).exact()
    assert db.sql(BY_DAY).exact().source != "native"
    cluster = type(db._engine.cluster)
    for zone, days in (("Asia/Tokyo", 2), ("UTC", 1), ("America/New_York", 2)):
        monkeypatch.setattr(cluster, "time_zone", property(lambda _, zone=zone: zone))
        for _ in range(3):
            found, expected, _ = both(db, BY_DAY)
            assert found == expected
            assert expected.num_rows == days  # type: ignore[attr-defined]
        db.delete("events", where=f"id = {days}")
        auto.settle()
        assert {each.zone for each in auto.keeping.store.kept.values()} <= {zone}
        found, expected, _ = both(db, BY_DAY)
        assert found == expected


def test_another_session_in_another_time_zone(db: nearly.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(db)
    db.sql(BY_DAY).exact()
    db.close()
    with driver_only(tmp_path / "catalog") as other:
        monkeypatch.setattr(type(other._engine.cluster), "time_zone", property(lambda _: "Asia/Tokyo"))
        auto = held_still(other.autoview("1MB", policy="off"))
        assert auto.status().views
        found, expected, source = both(other, BY_DAY)
        assert found == expected
        assert source == "native"


@pytest.mark.parametrize("values", [
    pa.array([number / 4 for number in range(3000)]), pa.array([str(number) for number in range(3000)]),
    pa.array([number % 100 for number in range(3000)], pa.decimal128(9, 2)),
], ids=["double", "text", "decimal"])  # fmt: skip
def test_a_text_over_other_types_is_looked_at_again(values: pa.Array, db: nearly.Session, tmp_path: Path) -> None:
    auto = opened(db)
    for _ in range(2):
        db.sql(BY_GROUP).exact()
    db.drop("events")
    pq.write_table(events(values), tmp_path / "again.parquet")
    db.register("events", str(tmp_path / "again.parquet"))
    auto.settle()
    sources = set()
    for _ in range(3):
        found, expected, source = both(db, BY_GROUP)
        assert found == expected
        sources.add(source)
    assert sources - {"native"}, "it makes views again"


def test_off_while_a_query_makes_a_view(db: nearly.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    auto = opened(db)
    made, is_off = threading.Event(), threading.Event()
    encoded = making.encoded

    def slowly(*given: object) -> object:
        found = encoded(*given)  # type: ignore[arg-type]
        made.set()
        is_off.wait(20)
        return found

    monkeypatch.setattr(making, "encoded", slowly)
    answers: list[nearly.Answer] = []
    asking = threading.Thread(target=lambda: answers.append(db.sql(BY_GROUP).exact()))
    asking.start()
    assert made.wait(20)
    ending = threading.Thread(target=auto.off)
    ending.start()
    while not auto._store._is_closed:
        is_off.wait(0.01)
    is_off.set()
    asking.join()
    ending.join()
    assert rows_on_disk(tmp_path / "catalog") == 0
    assert answers[0].source == "native"
    assert answers[0].table == db.sql(BY_GROUP, kernel="native").exact().table


def test_advice_about_odd_names_can_be_executed(db: nearly.Session, tmp_path: Path) -> None:
    odd = {"select": list(range(20_000)), "a b": [number % 3 for number in range(20_000)], "q`q": ["x'1", "é"] * 10_000}
    pq.write_table(pa.table(odd), tmp_path / "odd.parquet")
    db.register("order", str(tmp_path / "odd.parquet"))
    auto = opened(db)
    for _ in range(4):
        db.sql("select `a b`, sum(`select`) as s from `order` where `q``q` = 'x''1' group by `a b`").exact()
        db.sql("select `select`, `a b` from `order` where `q``q` like 'x''%' and `select` < 50").exact()
    advice = auto.advice()
    assert advice
    for statement in advice:
        db.execute(statement)
    assert len(db.views) == len(advice)


@pytest.mark.parametrize("asked", ["exact", "iterated"])
def test_tables_that_are_replaced_while_a_query_begins(
    db: nearly.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """It is answered over the new ones, as without automatic views."""
    opened(db)
    for _ in range(2):
        db.sql(BY_GROUP).exact()
    replaced, run = threading.Event(), QueryCourse.run

    def late(self: QueryCourse, *given: Any) -> Any:
        if not replaced.is_set():
            replaced.set()
            pq.write_table(events(pa.array(list(range(5, 3005)))), tmp_path / "events.parquet")
            db.refresh("events")
        return run(self, *given)

    monkeypatch.setattr(QueryCourse, "run", late)
    query = db.sql(BY_GROUP)
    answer = query.exact() if asked == "exact" else list(query)[-1]
    assert replaced.is_set()
    assert answer.table == db.sql(BY_GROUP, kernel="native").exact().table
    assert answer.table["m"].to_pylist() == [3000, 3001, 3002, 3003, 3004]
