"""Planning needs no Spark: mistakes are told and plans are explained where starting one would be an error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.planner import Planner
from nearly.engine.spark.process import SparkProcess
from nearly.errors import NearlyError, ParseError, SchemaError, UnknownName
from tests.fixtures.driver_only import driver_only


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[nearly.Session]:
    def refuse(_: SparkProcess) -> None:
        raise AssertionError("Spark is started")

    monkeypatch.setattr(SparkProcess, "begin", refuse)
    pq.write_table(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}), tmp_path / "t.parquet")
    with driver_only(tmp_path / "catalog") as session:
        session.register("t", tmp_path / "t.parquet")
        yield session


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("select a frm t where", ParseError, "not a query"),
        ("select , a from t", ParseError, "comma"),
        ("drop table t", ParseError, "only a query"),
        ("create materialized view v as select a from t", ParseError, "use db.execute"),
        ("select a from u", UnknownName, "'u'"),
        ("select c from t", UnknownName, "'c'"),
        ("select t.c from t", UnknownName, "c"),
        ("select summ(a) from t", UnknownName, "summ"),
        ("select a from t where b", SchemaError, "boolean"),
        ("select a, count(*) from t", SchemaError, "a"),
        ("select a from t group by b", SchemaError, "a"),
        ("select sum(sum(a)) from t", SchemaError, "aggregate inside"),
        ("select a from t union select a, b from t", SchemaError, "columns"),
        ("select (select a, b from t) from t", SchemaError, "column"),
        ("select a from t order by 7", SchemaError, "7"),
    ],
)
def test_mistakes_are_told(db: nearly.Session, text: str, error: type[NearlyError], said: str) -> None:
    for use in (lambda query: query.explain(), lambda query: query.exact(), lambda query: query.run(error=0.1)):
        with pytest.raises(error, match=said):
            use(db.sql(text))


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("select sum(a) as s from t where a > 1", "native"),
        ("select upper(b), a + 1, case when a > 1 then b end from t", "native"),
        ("select b, count(*) from t group by rollup(b) order by 2 desc limit 1", "native"),
        ("select a, row_number() over (order by a) from t", "native"),
        ("select xxhash64(a) as h from t", "spark"),
        ("select a from t tablesample (10 percent)", "spark"),
    ],
)
def test_plans_are_explained(db: nearly.Session, text: str, kernel: str) -> None:
    assert db.sql(text).explain().startswith(f"kernel: {kernel}\n")


def test_a_query_is_planned_once_for_a_version(db: nearly.Session, tmp_path: Path) -> None:
    planner = db._engine.planner
    prepared = planner.prepare("select count(*) as n from t")
    assert planner.is_current(prepared)
    assert [table.version for table in prepared.snapshot] == [1]
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "t.parquet")
    db.refresh("t")
    assert not planner.is_current(prepared)
    assert [table.version for table in planner.prepare("select count(*) as n from t").snapshot] == [2]
    assert prepared.schema("T").rows == 3


def test_a_text_that_was_asked_before_is_planned_once(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "select sum(a) as s from t where a > 1"
    planned: list[str] = []
    real = Planner._prepared
    monkeypatch.setattr(Planner, "_prepared", lambda self, *asked: planned.append(asked[0]) or real(self, *asked))
    for _ in range(3):
        assert db.sql(text).exact().table.to_pylist() == [{"s": 5}]
    assert planned == [text]
    db.sql(text, kernel="native").exact()
    assert planned == [text, text]


def test_a_remembered_plan_is_of_the_tables_as_they_are(db: nearly.Session, tmp_path: Path) -> None:
    text = "select * from t order by a desc limit 1"
    assert db.sql(text).exact().table.to_pylist() == [{"a": 3, "b": "z"}]
    db.insert("t", [{"a": 9, "b": "w"}])
    assert db.sql(text).exact().table.to_pylist() == [{"a": 9, "b": "w"}]
    db.drop("t")
    with pytest.raises(UnknownName, match="'t'"):
        db.sql(text).exact()
    pq.write_table(pa.table({"a": [1.5], "more": [True]}), tmp_path / "other.parquet")
    db.register("t", tmp_path / "other.parquet")
    assert db.sql(text).exact().table.to_pylist() == [{"a": 1.5, "more": True}]


def test_a_remembered_plan_is_of_the_version_that_is_the_last_at_a_time(db: nearly.Session) -> None:
    text = "select count(*) as n from t timestamp as of '2999-01-01 00:00:00'"
    assert db.sql(text).exact().table.to_pylist() == [{"n": 3}]
    db.insert("t", [{"a": 9, "b": "w"}])
    assert db.sql(text).exact().table.to_pylist() == [{"n": 4}]


def test_a_remembered_plan_is_of_what_another_session_left(db: nearly.Session, tmp_path: Path) -> None:
    text = "select count(*) as n from t"
    assert db.sql(text).exact().table.to_pylist() == [{"n": 3}]
    with driver_only(tmp_path / "catalog") as other:
        other.insert("t", [{"a": 9, "b": "w"}])
        assert db.sql(text).exact().table.to_pylist() == [{"n": 4}]


def test_a_remembered_plan_is_of_the_settings_as_they_are(db: nearly.Session) -> None:
    settings = ["one"]
    planner = replace(db._engine.planner, settings=lambda: settings[0])
    before = planner.prepare("select a from t")
    assert planner.prepare("select a from t") is before
    settings[0] = "another"
    assert planner.prepare("select a from t") is not before


def test_what_is_no_text_is_refused_each_time(db: nearly.Session) -> None:
    db.sql("select 1 as one").exact()
    for wrong in (Path("select 1 as one"), ["select 1 as one"], None):
        with pytest.raises(NearlyError):
            db.sql(wrong).exact()  # type: ignore[arg-type]
