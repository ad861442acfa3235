"""Groups inside a view's query: kept beside its rows, in the same versions, in tables that nobody sees."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.plan.nodes import Plan
from nearly.rewrite.delta.changed import TableChange
from nearly.rewrite.delta.with_partials import groupings_of
from nearly.views import kept_groups
from nearly.views.kept_groups import KeptGroups, known_groups, scans
from nearly.views.moving import Move
from nearly.views.reasons import POLICY_FULL, REPLACED
from nearly.views.view import View
from tests.engine.deltas.histories import Histories
from tests.fixtures.agreement import difference
from tests.fixtures.driver_only import driver_only
from tests.fixtures.long import first_quick
from tests.views.kept import planned, refreshed, tables_read

TEXTS = (
    "select c, count(*) as n from (select a, count(*) as c from t group by a) group by c",
    "select c, count(*) as n from (select t.a, count(u.b) as c from t left join u on t.a = u.a group by t.a) group by c",
    "select r.d, v.n from r join (select a, sum(n) as n from t group by a) v on r.a = v.a",
    "select r.d, v.n from r left join (select a, s, max(b) as n from t group by a, s) v on r.a = v.a and r.s = v.s",
    "with x as (select a, count(*) as c from t group by a) select a, c from x where c = (select max(c) from x)",
    "select a from r where a in (select a from t group by a having count(*) > 1)",
    "select a, b from r where not exists (select 1 from (select a, min(b) as m from t group by a) v where v.a = r.a and v.m < r.b)",
    "select sum(m) as s from (select a, max(c) as m from (select a, s, count(*) as c from t group by a, s) group by a)",
    "select a, avg(c) as c from (select a, d, sum(b) as c from t group by a, d) group by a",
    "select t.a, t.b from t where t.b > (select avg(u.b) from u where u.a = t.a)",
    "select v.a, w.c from (select distinct a from t) v join (select a, count(*) as c from u group by a) w on v.a = w.a",
    "select a, n from (select a, sum(n) as n from t group by a) union all select a, n from r",
)
NESTED = "select c, count(*) as n from (select k % 3 as g, count(*) as c from t group by k % 3) group by c"


@pytest.fixture(autouse=True)
def _of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of small tables are kept as well."""
    monkeypatch.setattr(kept_groups, "FEWEST_READ", -1)
    monkeypatch.setattr(kept_groups, "MOST_SHARE", 10.0)


def _planned(db: nearly.Session, view: View) -> Plan:
    stored = planned(db, view).planned.stored
    assert stored is not None
    return stored.kept


def _kept(db: nearly.Session, view: View) -> tuple[KeptGroups, ...]:
    return known_groups(db._engine, _planned(db, view), view.state.groups)


def _refuse_other_groups(db: nearly.Session, view: View) -> None:
    """What is kept of groups must be their rows over the tables in the versions that the view is of."""
    for each in _kept(db, view):
        tables = [db._engine.catalog.table(name) for name in view.state.inputs]
        expected, found = (db._engine.at((*tables, each.table)).native.run_here(plan) for plan in (each.plan, each.scan))
        assert difference(expected, found, "select 1") is None, view.text


@pytest.mark.parametrize("seed", first_quick(range(12), 3))
def test_oracle_of_random_histories(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pick = random.Random(seed).choice
    world = Histories(tmp_path, pick)
    try:
        for place, text in enumerate(TEXTS):
            view = world.db.create_view(f"v{place}", text)
            assert len(_kept(world.db, view)) == len(groupings_of(_planned(world.db, view))) > 0, text
        for step in range(5):
            with monkeypatch.context() as forced:
                if step != 3:  # by deltas, also where these small tables would be read again in less time
                    forced.setattr(Move, "_too_much", lambda *_: None)
                world.step()
                if step == 2:
                    world.db.close()
                    world.db = driver_only(tmp_path / "catalog")
                for place, text in enumerate(TEXTS):
                    if pick((True, True, False)):
                        _judge(world.db, f"v{place}", text)
    finally:
        world.db.close()


def _judge(db: nearly.Session, name: str, text: str) -> None:
    view = refreshed(db, name, text)
    if view is not None:
        assert _kept(db, view), text
        _refuse_other_groups(db, view)


@pytest.fixture
def db(tmp_path: Path) -> nearly.Session:
    pq.write_table(pa.table({"k": list(range(12)), "v": [1] * 12}), tmp_path / "t.parquet")
    found = driver_only(tmp_path / "catalog")
    found.register("t", str(tmp_path / "t.parquet"))
    return found


def test_the_rows_below_groups_are_not_read_again(db: nearly.Session) -> None:
    with db:
        view = db.create_view("counts", NESTED, policy="incremental")
        plan = _planned(db, view)
        changes = {"t": TableChange.of("t")}
        assert tables_read(plan, changes, {}) == {"t@before"}
        assert "t" not in {name.partition("@")[0] for name in tables_read(plan, changes, scans(_kept(db, view)))}
        db.insert("t", [{"k": 12, "v": 1}])
        assert db.view("counts").refresh().history[0].strategy == "delta"
        assert db.sql("select * from counts order by c").exact().table.to_pylist() == [{"c": 4, "n": 2}, {"c": 5, "n": 1}]


def test_nobody_sees_the_tables_of_groups(db: nearly.Session) -> None:
    with db:
        view = db.create_view("counts", NESTED)
        catalog = db._engine.catalog
        assert len(catalog.hidden("COUNTS")) == 1
        assert (db.tables, db.views) == (("t",), ("counts",))
        db.create_view("counts", NESTED.replace("% 3", "% 4"), there="replace")
        assert len(catalog.hidden("counts")) == 1
        _refuse_other_groups(db, view)
        db.drop_view("counts")
        assert not catalog.hidden("counts")


def test_too_many_groups_are_not_kept(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    with db:
        monkeypatch.setattr(kept_groups, "MOST_ROWS", 2)
        view = db.create_view("counts", NESTED, policy="incremental")
        assert not db._engine.catalog.hidden("counts")
        db.insert("t", [{"k": 12, "v": 1}])
        assert not _kept(db, view.refresh())
        assert len(view.state.groups) == 1  # so that they are not computed in vain again
        assert sum(db.sql("select n from counts").exact().table["n"].to_pylist()) == 3


def test_groups_that_someone_changed_are_not_looked_at(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    with db:
        view = db.create_view("counts", NESTED)
        (hidden,) = db._engine.catalog.hidden("counts")
        db.delete(hidden, where="c0 = 1")
        db.insert("t", [{"k": 13, "v": 1}])
        with monkeypatch.context() as forced:
            forced.setattr(Move, "_too_much", lambda *_: None)
            view.refresh()
        assert not _kept(db, view)
        assert db.sql("select * from counts order by c").exact().table.to_pylist() == [{"c": 4, "n": 2}, {"c": 5, "n": 1}]
        db.insert("t", [{"k": 14, "v": 1}])
        monkeypatch.setattr(Move, "_too_much", lambda *_: POLICY_FULL)
        assert view.refresh().history[0].strategy == "whole"
        assert len(_kept(db, view)) == 1
        _refuse_other_groups(db, view)


def test_groups_that_are_no_longer_asked_for_are_dropped(db: nearly.Session, tmp_path: Path) -> None:
    with db:
        view = db.create_view("counts", NESTED)
        before = db._engine.catalog.hidden("counts")
        pq.write_table(pa.table({"k": pa.array(range(12), pa.int32()), "v": [1] * 12}), tmp_path / "other.parquet")
        db.register("t", str(tmp_path / "other.parquet"))
        view.refresh()
        assert len(db._engine.catalog.hidden("counts")) == 1
        assert db._engine.catalog.hidden("counts") != before
        _refuse_other_groups(db, view)


def test_a_view_that_fails_leaves_no_groups(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    with db:
        monkeypatch.setattr("nearly.views.catalogue.commit_whole", _fail)
        with pytest.raises(RuntimeError, match="on the way"):
            db.create_view("counts", NESTED)
        assert not db._engine.catalog.hidden("counts")


def _fail(*_: object) -> None:
    raise RuntimeError("on the way")


def test_groups_of_a_view_that_was_never_finished_are_swept(db: nearly.Session, tmp_path: Path) -> None:
    with db:
        db.create_view("counts", NESTED)
        catalog = db._engine.catalog
        (head,) = (catalog.path / "tables" / "counts").glob("table.json")
        head.unlink()  # as if the process had been killed before it was written
        assert catalog.hidden("counts")
    with driver_only(tmp_path / "catalog") as again:
        assert not again._engine.catalog.hidden("counts")
        assert again.tables == ("t",)


def test_a_kill_between_groups_and_view_costs_the_groups_alone(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    with db:
        view = db.create_view("counts", NESTED)
        db.insert("t", [{"k": 12, "v": 1}])
        with monkeypatch.context() as broken:
            broken.setattr("nearly.views.moving.commit_changes", _fail)
            broken.setattr(Move, "obstacle", lambda *_: REPLACED)
            with pytest.raises(RuntimeError, match="on the way"):
                view.refresh()
        assert not _kept(db, view)
        view.refresh()
        assert db.sql("select * from counts order by c").exact().table.to_pylist() == [{"c": 4, "n": 2}, {"c": 5, "n": 1}]


def test_groups_of_a_view_that_a_query_made_fresh_are_dropped(tmp_path: Path) -> None:
    """A sample of the view's rows tells nothing of them."""
    pq.write_table(pa.table({"k": range(90)}), tmp_path / "t.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", str(tmp_path / "t.parquet"), key=["k"])
        view = db.create_view("v", NESTED)
        assert db._engine.catalog.hidden("v")
        db.insert("t", [{"k": 90}])
        assert [*view.query("select sum(n) as n from v")][-1].exact
        assert not view.stale
        assert not db._engine.catalog.hidden("v")
        db.insert("t", [{"k": 91}])
        view.refresh()
        assert db.sql("select c, n from v order by c").exact().table.to_pylist() == [{"c": 30, "n": 1}, {"c": 31, "n": 2}]
