"""Single values inside a view's query: kept beside its rows, in the same versions, and not computed from all rows again."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.rewrite.delta.changed import TableChange
from nearly.views.kept_values import known_values, values_now
from nearly.views.moving import Move
from nearly.views.view import View
from tests.engine.deltas.histories import Histories
from tests.fixtures.driver_only import driver_only
from tests.fixtures.long import first_quick
from tests.views.kept import planned, refreshed, tables_read

TEXTS = (
    "select a, b from t where n > (select avg(n) from u)",
    "select a, count(*) as c from t where b >= (select max(b) from t where s is not null) group by a",
    "select s, sum(n) as total from t group by s having sum(n) > (select sum(n) / 4 from t)",
    "select r.a, v.m, v.c from r left join (select max(d) as m, count(*) as c from u) v on r.d < v.m",
    "select a from t where b > (select min(b) from u where a > (select avg(a) from r))",
    "select v.c, t.s from (select count(a) as c, min(s) as m from u) v join t on t.s = v.m",
    "select a, (select count(*) from u) as c, (select bool_and(a > 0) from r) as p from t",
    "select (select max(d) from t) as x, (select sum(a) from u) as y",
    "select d from t where d = (select max(d) from t) union all select d from u where a < (select avg(b) from r)",
    "select b from t where a in (select a from u) and n < (select max(n) from (select s, sum(n) as n from r group by s))",
    "select a, b from t where not exists (select 1 from u where n > (select max(n) from r))",
)


def kept_and_expected(db: nearly.Session, view: View) -> tuple[Any, Any]:
    """What is kept of the view's values, and what they are in the versions that it is of."""
    move = planned(db, view)
    assert move.planned.stored is not None
    return view.state.values, values_now(db._engine, move.planned.stored.kept, move.planned.inputs, {})


@pytest.mark.parametrize("seed", first_quick(range(12), 3))
def test_oracle_of_random_histories(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Move, "_too_much", lambda *_: None)
    pick = random.Random(seed).choice
    world = Histories(tmp_path, pick)
    try:
        views = {f"v{place}": text for place, text in enumerate(TEXTS)}
        for name, text in views.items():
            world.db.create_view(name, text)
        for step in range(5):
            world.step()
            if step == 2:
                world.db.close()
                world.db = driver_only(tmp_path / "catalog")
            for name, text in views.items():
                if pick((True, True, False)):
                    _judge(world.db, name, text)
    finally:
        world.db.close()


def _judge(db: nearly.Session, name: str, text: str) -> None:
    view = refreshed(db, name, text)
    if view is not None:
        kept, values = kept_and_expected(db, view)
        assert kept == values, text
        assert values


def test_the_rows_below_a_value_are_not_read_again(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1, 2, 3, 4], "x": [10, 20, 30, 40]}), tmp_path / "t.parquet")
    pq.write_table(pa.table({"y": [10, 30]}), tmp_path / "u.parquet")
    with driver_only(tmp_path / "catalog") as db:
        for name in ("t", "u"):
            db.register(name, str(tmp_path / f"{name}.parquet"))
        view = db.create_view("above", "select k from t where x > (select avg(y) from u)", policy="incremental")
        plan = planned(db, view).planned.stored
        assert plan is not None
        known = known_values(plan.kept, view.state.values)
        changes = {name: TableChange.of(name) for name in ("t", "u")}
        assert {"u", "u@before"} & tables_read(plan.kept, changes, {})
        assert tables_read(plan.kept, changes, known) <= {"t", "t@before"}
        db.insert("u", [{"y": 35}])
        db.insert("t", [{"k": 5, "x": 50}])
        view.refresh()
        assert db.sql("select k from above order by k").exact().table["k"].to_pylist() == [3, 4, 5]
        db.delete("u", where="y = 10")
        view.refresh()
        assert db.sql("select k from above order by k").exact().table["k"].to_pylist() == [4, 5]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_moments_at_the_ends_of_time_are_kept(tmp_path: Path, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the session's zone they are in years that Python has no name for."""
    monkeypatch.setattr(Move, "_too_much", lambda *_: None)
    ends = [dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, 59, tzinfo=dt.UTC)]
    pq.write_table(pa.table({"k": [1, 2], "m": pa.array(ends, pa.timestamp("us", "UTC"))}), tmp_path / "t.parquet")
    text = "select k from t where m < (select max(m) from t) and m > (select min(m) from t)"
    with driver_only(tmp_path / "catalog", zone=zone) as db:
        db.register("t", str(tmp_path / "t.parquet"))
        view = db.create_view("w", text)
        db.insert("t", [{"k": 3, "m": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)}])
        assert len(view.state.values) == 2
        assert refreshed(db, "w", text) is not None
        assert view.history[0].strategy != "whole"
        kept, expected = kept_and_expected(db, view)
        assert kept == expected


def test_a_value_without_a_name_in_python_is_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Move, "_too_much", lambda *_: None)
    days = pa.array([18_000, 18_001], pa.date32())
    pq.write_table(pa.table({"k": [1, 2], "d": days}), tmp_path / "t.parquet")
    text = "select k from t where d < (select max(d) from t)"
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", str(tmp_path / "t.parquet"))
        view = db.create_view("w", text)
        for far, kept in ((4_000_000, 0), (5_000_000, 0), (None, 1)):
            if far is None:
                db.delete("t", where="k > 2")
            else:
                db.insert("t", pa.table({"k": [far], "d": pa.array([far], pa.date32())}))
            assert refreshed(db, "w", text) is not None
            assert len(view.state.values) == kept
