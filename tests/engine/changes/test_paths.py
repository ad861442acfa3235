"""Changed tables on every path: both kernels, layouts, several executors, progressive runs, synopses, ranges of missing rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.stream.task import Pace
from nearly.engine.stream.units import units_of
from nearly.progressive.run import Request, Run
from nearly.rewrite.passes import for_units

ROWS = 60_000
TEXTS = (
    "select count(*) as n, sum(v) as v, min(k) as low, max(k) as high from t",
    "select g, count(*) as n, sum(v) as v from t group by g order by g",
    "select count(*) as n from t join u on t.k = u.k where u.v > 100",
    "select k from t where v < 3 order by k limit 20",
    "select s, count(distinct k) as n from t group by s order by s nulls last",
)


def rows(first: int, count: int, step: int = 1) -> pa.Table:
    k = np.arange(first, first + count * step, step)
    texts = [None if n % 11 == 0 else f"größe {n % 5}" for n in k.tolist()]
    return pa.table({"k": k, "g": k % 7, "v": (k * 7919) % 1000, "s": texts})


def change(db: nearly.Session, name: str) -> None:
    """Rows gone all over the table, some of them that came before; rows come behind, between and again."""
    db.delete(name, where="(k * 31) % 97 < 5")
    db.insert(name, rows(ROWS * 2, 500))
    db.update(name, {"v": "v + 5000", "k": "k"}, where="k % 1000 = 17")
    db.delete(name, where=f"k >= {ROWS * 2} and k % 2 = 0")
    db.delete(name, where="k between 10000 and 13000")


def plain(db: nearly.Session, text: str) -> list[dict[str, Any]]:
    return db.sql(text).exact().table.to_pylist()


@pytest.fixture(scope="module")
def changed(
    spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[nearly.Session, dict[str, list[dict[str, Any]]]]]:
    """Two changed tables, one of the user's files with odd names, one of nearly's own in three layouts; and what DuckDB says."""
    home = tmp_path_factory.mktemp("changed")
    odd = home / "it's [a] 100% größe #1?"
    odd.mkdir()
    for number in range(3):
        part = rows(number * ROWS // 3, ROWS // 3)
        pq.write_table(part, odd / f"part {number}.parquet", row_group_size=5_000)
    with nearly.connect(spark, path=home / "catalog", eager=True) as db:
        db.register("t", str(odd), key=["k"])
        db.register("u", spark.createDataFrame(rows(0, ROWS)), key=["k"])
        db.prepare("u", by="k", buckets=8)
        db.prepare("u")
        change(db, "t")
        for where in ("(k * 31) % 97 < 5", "k between 20000 and 23000"):  # layouts take deletes at once
            db.delete("u", where=where)
        yield db, oracle(db)


def oracle(db: nearly.Session) -> dict[str, list[dict[str, Any]]]:
    """The answers over plain rows, computed by DuckDB alone from the change feed of both tables."""
    import duckdb

    plainly = duckdb.connect()
    for name, first in (("t", rows(0, ROWS)), ("u", rows(0, ROWS))):
        plainly.register("first_rows", first)
        plainly.register("changes", db.changes(name, 1))
        plainly.execute(f"""CREATE TABLE {name} AS SELECT k, g, v, s FROM (
            SELECT k, g, v, s, 1 AS w FROM first_rows UNION ALL
            SELECT k, g, v, s, CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 END FROM changes)
            GROUP BY ALL HAVING sum(w) = 1""")
    return {text: plainly.sql(text).to_arrow_table().to_pylist() for text in TEXTS}


@pytest.mark.parametrize("text", TEXTS)
def test_both_kernels(changed: tuple[nearly.Session, dict[str, Any]], text: str) -> None:
    db, right = changed
    assert plain(db, text) == right[text]
    assert db.sql(text, kernel="spark").exact().table.to_pylist() == right[text]


def by_units(db: nearly.Session, text: str) -> list[nearly.Answer]:
    """The answers of a run that reads a few units at a time, however near the exact answer is."""
    run = Run(db._engine, db._engine.prepare(text), Request(pace=Pace(sizes=(2, 3, 3, 4))), uuid.uuid4().hex[:8])
    return list(run.answers())


@pytest.mark.parametrize("text", TEXTS)
def test_progressive_runs_end_exactly(changed: tuple[nearly.Session, dict[str, Any]], text: str) -> None:
    db, right = changed
    *_, last = by_units(db, text)
    assert last.exact
    assert last.table.to_pylist() == right[text]


def test_the_layouts_of_a_table_stay_in_use_after_deletes(changed: tuple[nearly.Session, dict[str, Any]]) -> None:
    db, _ = changed
    table = db.table("u").info
    assert [layout.name for layout in table.layouts] == ["base", "by_k", "shuffled"]
    assert all(layout.rows == table.rows for layout in table.layouts)
    assert all(layout.gone == ROWS - table.rows for layout in table.layouts[1:])
    *_, last = by_units(db, "select count(*) as n, sum(v) as v, sum(k) as k from u")
    assert last.table.to_pylist() == plain(db, "select count(*) as n, sum(v) as v, sum(k) as k from u")


def test_units_hold_exactly_the_rows_that_are_there(changed: tuple[nearly.Session, dict[str, Any]]) -> None:
    db, _ = changed
    engine = db._engine
    for name in ("t", "u"):
        prepared = engine.prepare(f"select g, sum(v) from {name} group by g")
        assert prepared.query is not None
        cut = for_units(prepared.query.plan, prepared.schema)
        units = units_of(cut, [engine.catalog.table(scan.table) for scan in cut.scans], 0)
        queries = units.queries(engine.native.reader, cut.scans[0])
        counts = [engine.native.local.run(f"SELECT count(*) AS n FROM ({query})", (), {})["n"][0].as_py() for query in queries]
        assert sum(counts) == units.total_rows == engine.catalog.table(name).rows
        if not cut.ranged:
            assert counts == [unit.rows for unit in units.order]


def test_several_executors(changed: tuple[nearly.Session, dict[str, Any]], spark: Any) -> None:
    db, right = changed
    with nearly.connect(spark, path=db._engine.catalog.path, executors=3, cores=1) as several:
        for text in TEXTS:
            assert plain(several, text) == right[text]


def test_a_synopsis_of_a_changed_table(changed: tuple[nearly.Session, dict[str, Any]]) -> None:
    db, right = changed
    synopsis = db.create_synopsis("y", "t", "v", ["k"], leaves=8, sample=0.2)
    row = right[TEXTS[0]][0]
    assert round(synopsis.query("rows").table["rows"][0].as_py()) == row["n"]
    assert round(synopsis.query("sum").table["sum"][0].as_py()) == row["v"]
    db.drop_synopsis("y")


def test_certain_bounds_hold_over_changed_blocks(changed: tuple[nearly.Session, dict[str, Any]]) -> None:
    db, right = changed
    exact = right[TEXTS[0]][0]
    *early, _ = by_units(db, TEXTS[0])
    assert early
    assert not any(answer.exact for answer in early)
    for answer in early:
        assert answer.hard_low["n"][0].as_py() == answer.hard_high["n"][0].as_py() == exact["n"]  # blocks know what is left in them
        for name in ("n", "v", "low", "high"):
            low, high = answer.hard_low[name][0].as_py(), answer.hard_high[name][0].as_py()
            assert low is None or low <= exact[name]
            assert high is None or high >= exact[name]


def test_compaction_restores_all_layouts(spark: Any, tmp_path: Path) -> None:
    with nearly.connect(spark, path=tmp_path / "catalog") as db:
        db.register("u", spark.createDataFrame(rows(0, 5_000)), key=["k"])
        db.prepare("u", by="k", buckets=4)
        db.insert("u", rows(5_000, 10))
        db.delete("u", where="k < 100")
        before = db.table("u").info
        assert [layout.name for layout in before.behind] == ["by_k"]
        after = db.compact("u")
        assert (after.version, after.rows, after.base.gone, len(after.base.vectors)) == (before.version, before.rows, 0, 0)
        assert [layout.name for layout in after.layouts] == ["base", "by_k"]
        assert plain(db, "select count(*) as n, sum(v) as v from u") == plain(
            db, f"select count(*) as n, sum(v) as v from u version as of {before.version}"
        )
        assert plain(db, "select count(*) as n from u version as of 1") == [{"n": 5_000}]
