"""What Python users see and give: rows of other libraries, short forms of things, and imports that take no time."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.looking import look
from tests.fixtures.answers import by_city
from tests.fixtures.driver_only import driver_only
from tests.processes import environment

ROWS = pa.table({"city": ["Oslo", "Rome", "Oslo"], "fare": [1.5, 2.0, 3.25], "year": [2020, 2021, 2022]})


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    with driver_only(tmp_path / "catalog") as session:
        session.register("rides", ROWS)
        yield session


@pytest.mark.parametrize(
    "given",
    [ROWS, ROWS.to_pandas(), pl.from_arrow(ROWS), ROWS.to_batches()[0], ROWS.to_pylist(), ROWS.to_pydict()],
    ids=["arrow", "pandas", "polars", "batch", "mappings", "columns"],
)
def test_rows_of_other_libraries_are_tables(db: nearly.Session, given: Any) -> None:
    db.register("given", given)
    assert db.sql("select city, fare, year from given order by fare").exact().table.to_pylist() == ROWS.to_pylist()


def test_types_that_spark_lacks_become_those_that_hold_all_values(db: nearly.Session) -> None:
    odd = pa.table({
        "u": pa.array([2**64 - 1], pa.uint64()), "d": pa.array(["a"]).dictionary_encode(), "n": pa.nulls(1),
        "t": pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("ns")), "l": pa.array(["x"], pa.large_string()),  # noqa: DTZ001
    })  # fmt: skip
    db.register("odd", odd)
    (row,) = db.sql("select * from odd").exact().table.to_pylist()
    assert (row["u"], row["d"], row["n"], row["l"]) == (2**64 - 1, "a", None, "x")
    for wrong, said in (
        (pa.table({"t": pa.array([1], pa.timestamp("ns"))}), "does not fit"),
        (pa.table({"t": pa.array([1], pa.duration("s"))}), "no type for"),
        (pa.table([[1], [2]], names=["a", "A"]), "two columns"),
        (pa.table({}), "no column"),
        (5, "not int"),
    ):
        with pytest.raises(nearly.SchemaError, match=said):
            db.register("wrong", wrong)
    assert "wrong" not in db.tables


def test_lists_of_paths_and_files_read_without_spark(db: nearly.Session, tmp_path: Path) -> None:
    for place in range(2):
        (tmp_path / f"{place}.csv").write_text(f"a,b\n{place},x\n")
    db.register("several", [tmp_path / "0.csv", tmp_path / "1.csv"])
    assert db.sql("select sum(a) as s, count(*) as n from several").exact().table.to_pylist() == [{"s": 1, "n": 2}]
    (tmp_path / "1.csv").write_text("a,b\n5,x\n6,y\n")
    assert db.refresh("several").rows == 3
    pq.write_table(ROWS, tmp_path / "r.parquet")
    with pytest.raises(nearly.Unsupported, match="of one format"):
        db.register("mixed", [tmp_path / "0.csv", tmp_path / "r.parquet"])


def test_an_answer_is_a_table_elsewhere(db: nearly.Session) -> None:
    answer = db.sql("select city, sum(fare) as s from rides group by city order by city").exact()
    assert pl.DataFrame(answer).to_dicts() == pa.table(answer).to_pylist() == answer.to_pandas().to_dict("records")
    assert duckdb.sql("select sum(s) from answer").fetchall() == [(6.75,)]
    assert answer.to_polars(bounds=True).columns == ["city", "city_low", "city_high", "s", "s_low", "s_high"]
    assert isinstance(answer.to_pandas(), pd.DataFrame)


def test_an_answer_becomes_a_frame_of_spark(db: nearly.Session, spark: Any) -> None:
    answer = db.sql("select city, fare from rides").exact()
    assert [tuple(row) for row in answer.to_spark(spark).collect()] == [("Oslo", 1.5), ("Rome", 2.0), ("Oslo", 3.25)]


def test_short_forms_are_short_and_safe(db: nearly.Session) -> None:
    query = db.sql("select city,\n sum(fare) as s from rides group by city")
    things = [query.exact(), query, db, db.table("rides"), db.table("rides").info, by_city()]
    for thing in things:
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 220
        assert thing._repr_html_().startswith("<div>")
    db.register("hostile", pa.table({"<script>alert(1)</script>": ["<img src=x onerror=alert(2)>"]}))
    hostile = db.sql("select * from hostile")
    for thing in (hostile.exact(), hostile, db, db.table("hostile"), db.table("hostile").info):
        assert "<script" not in thing._repr_html_()
        assert "<img src=x" not in thing._repr_html_()
    db.close()
    assert "closed" in repr(db)
    assert "closed" in db._repr_html_()


def test_charts_are_chosen_by_shape() -> None:
    bars = by_city().plot()
    assert bars.title == "s by city"
    assert bars.svg.count("<rect") == 3
    assert bars.svg.count("<path") == 3
    lines = nearly.Answer.exactly(pa.table({"day": [dt.date(2020, 1, day) for day in (3, 1, 2)], "n": [1, 2, 3]}), "native").plot()
    assert "<polyline" in lines.svg
    assert bars._repr_html_().startswith('<img alt="s by city" src="data:image/svg+xml;base64,')
    for columns, options, said in (
        ({"a": ["x"]}, {}, "no column of numbers"),
        ({"a": [1]}, {"y": "b"}, "unknown column 'b'"),
        ({"a": [1], "t": ["x"]}, {"y": "t"}, "must be a column of numbers"),
        ({"a": pa.array([], pa.int64())}, {}, "no value to draw"),
    ):
        with pytest.raises(nearly.NearlyError, match=said):
            nearly.Answer.exactly(pa.table(columns), "native").plot(**options)


def test_looking_at_what_there_is(db: nearly.Session) -> None:
    def shown(text: str) -> list[Any]:
        table = look(db, text)
        assert table is not None
        return table.to_pylist()

    assert [row["name"] for row in shown("SHOW TABLES;")] == ["rides"]
    assert shown("show tables like 'x%'") == shown("show views") == []
    assert [row["type"] for row in shown("describe rides")] == ["string", "double", "bigint"]
    assert shown("show columns from `rides`") == shown("desc table rides") == shown("describe rides;")
    assert [row["column"] for row in shown("describe select city, year + 1 as next from rides")] == ["city", "next"]
    assert "native" in shown("explain select count(*) as n from rides")[0]["plan"]
    assert look(db, "select 1") is None
    for wrong in ("show databases", "describe", "explain"):
        with pytest.raises(nearly.ParseError, match="SHOW TABLES"):
            look(db, wrong)
    with pytest.raises(nearly.UnknownName, match="did you mean 'rides'"):
        look(db, "describe rids")


def test_views_of_a_given_spark_are_seen_without_registering(spark: Any, tmp_path: Path) -> None:
    spark.range(7).selectExpr("id", "id * 2 AS twice").createOrReplaceTempView("of_spark")
    with nearly.connect(spark, path=tmp_path / "catalog") as db:
        answer = db.sql("select sum(twice) as s, count(*) as n from of_spark where id > ?", args=[2]).exact()
        assert answer.table.to_pylist() == [{"s": 36, "n": 4}]
        assert answer.source == "spark"
        assert [each.exact for each in db.sql("select max(id) as m from of_spark")] == [True]
        db.register("own", ROWS)
        with pytest.raises(nearly.UnknownName, match="register it"):
            db.sql("select * from own, of_spark").exact()
        with pytest.raises(nearly.UnknownName, match="unknown table 'nowhere'"):
            db.sql("select * from nowhere").exact()
        with pytest.raises(nearly.NearlyError):
            db.sql("select '${env:HOME}' as a from of_spark").exact()
    spark.catalog.dropTempView("of_spark")


def test_import_loads_nothing_and_a_small_query_no_spark(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,y\n")
    code = f"""
import sys, nearly
assert not {{"pyarrow", "sqlglot", "pyspark", "numpy"}} & set(sys.modules)
with nearly.connect(path={str(tmp_path / "catalog")!r}, lazy=True) as db:
    db.register("t", {str(tmp_path / "t.csv")!r})
    print(db.sql("select sum(a) as s from t").exact().table.to_pylist())
assert not {{"pyspark", "pandas", "scipy"}} & set(sys.modules), sorted(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "[{'s': 3}]\n", done.stderr
