"""Views that only Spark can compute, and Spark's own reading of views."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.deltas import net_change, sites
from nearly.errors import Unsupported
from nearly.views import kept_groups
from nearly.views.moving import Move
from tests.fixtures.quick_spark import quick_session


@pytest.fixture
def db(spark: Any, tmp_path: Path) -> Iterator[nearly.Session]:
    pq.write_table(pa.table({"k": [1, 2, 3], "s": ["a", "b", "a"], "v": [1, 2, 3]}), tmp_path / "t.parquet")
    with nearly.connect(spark, path=tmp_path / "catalog") as session:
        session.register("t", str(tmp_path / "t.parquet"), key=["k"])
        yield session


def rows(db: nearly.Session, text: str, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = db.sql(text, **options).exact().table.to_pylist()
    return sorted(found, key=str)


def test_spark_computes_a_view_that_it_alone_knows(db: nearly.Session) -> None:
    text = "select soundex(s) as x, count(*) as n from t group by soundex(s)"
    with pytest.raises(Unsupported, match="SPARK_ONLY"):
        db.create_view("sounds", text, policy="incremental")
    view = db.create_view("sounds", text)
    nested = db.create_view("lists", "select s, sort_array(collect_list(k)) as ks from t group by s")
    db.insert("t", [{"k": 4, "s": "c", "v": 4}])
    for each, query in ((view, text), (nested, nested.text)):
        each.refresh()
        assert (each.history[0].strategy, each.stale) == ("whole", {})
        assert "SPARK_ONLY" in each.history[0].reason
        assert rows(db, f"select * from {each.name}") == rows(db, query, kernel="spark")
    assert "SPARK_ONLY" in db.explain_view(text)


def test_a_view_of_the_time_moves_though_its_tables_stand_still(db: nearly.Session) -> None:
    view = db.create_view("times", "select k, now() as asked, s from t")
    (before,) = {row["asked"] for row in rows(db, "select * from times")}
    view.refresh()
    (after,) = {row["asked"] for row in rows(db, "select * from times")}
    assert before < after
    assert view.history[0].strategy == "whole"


def test_groups_are_kept_on_several_sites(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (kept_groups, "FEWEST_READ", -1), (kept_groups, "MOST_SHARE", 10.0), (sites, "STATIC_ROWS", 0),
        (net_change, "STATIC_ROWS", 0), (Move, "_too_much", lambda *_: None),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    pq.write_table(pa.table({"k": list(range(60)), "v": [1] * 60}), tmp_path / "t.parquet", row_group_size=8)
    text = "select t.k, g.c from t join (select k % 7 as m, count(*) as c from t group by k % 7) g on t.k = g.m where g.c > 8"
    with nearly.connect(quick_session(spark), path=tmp_path / "catalog", executors=3, cores=1) as session:
        session.register("t", str(tmp_path / "t.parquet"))
        view = session.create_view("w", text)
        for turn in range(3):
            session.insert("t", [{"k": 70 + turn, "v": 1}, {"k": turn, "v": 1}])
            session.delete("t", where=f"k = {30 + turn}")
            assert view.refresh().history[0].strategy != "whole"
            assert len(session._engine.catalog.hidden("w")) == 1
            assert rows(session, "select * from w") == rows(session, text)


def test_both_kernels_read_a_view_alike(db: nearly.Session) -> None:
    view = db.create_view(
        "w", "select s, avg(v) as m, sum(v) as t, count(*) as n from t group by s having count(*) < 3 order by t desc"
    )
    for turn in range(2):
        assert rows(db, "select * from w", kernel="spark") == rows(db, "select * from w", kernel="native")
        assert rows(db, "select soundex(s) as x, m, n from w") == rows(
            db, "select soundex(s) as x, avg(v) as m, count(*) as n from t group by s having count(*) < 3"
        )
        db.insert("t", [{"k": 10 + turn, "s": "b", "v": 8}, {"k": 20 + turn, "s": "a", "v": 8}])
        view.refresh()
    assert db.create_view("named", "select count(*) from t").columns == ("count(1)",)
