"""Progressive queries read prepared layouts: hash buckets where rows must meet, shuffled blocks where better samples help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.native.reading import NativeReader
from nearly.engine.stream.result_log import ResultLog
from nearly.engine.stream.task import Pace
from nearly.engine.stream.units import Units, units_of
from nearly.plan.nodes import Scan
from nearly.plan.schema import HashedLayout, TableSchema
from nearly.progressive.reading import UnitsRead
from nearly.progressive.run import Request, Run, query_directory, resumed
from nearly.rewrite.passes import for_units
from nearly.rewrite.stream.cut import Cut
from nearly.rewrite.stream.layouts import arrangements

OFTEN = 400
"""Counts from here on are scaled by N/n; keys that are seen in few units are scaled by what that tells."""
BUYERS, SALES = 100_000, 600_000
HISTOGRAM = """
select n, count(*) as buyers
from (select b.id, count(s.buyer) as n from buyers b left join sales s on b.id = s.buyer and s.price < 90 group by b.id) as counted
group by n order by n
"""
"""How many buyers bought how often: only a sample of buyers with all they bought tells."""
SILENT = "select count(*) as n, avg(balance) as mean from buyers where not exists (select 1 from sales where buyer = id)"
MEAN = "select avg(price) as mean, count(*) as n from sales where day > 20"


@pytest.fixture(scope="module")
def db(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    random = np.random.default_rng(3)
    directory = tmp_path_factory.mktemp("market")
    buyers = pa.table({"id": np.arange(BUYERS), "balance": random.normal(10_000, 3_000, BUYERS).astype(np.int64)})
    day = np.sort(random.integers(0, 60, SALES))
    sales = pa.table({
        "number": np.arange(SALES), "buyer": (random.random(SALES) ** 1.5 * BUYERS * 0.8).astype(np.int64), "day": day,
        "price": (random.gamma(2.0, 10.0, SALES) + day).astype(np.int64),
    })  # fmt: skip
    for name, table in (("buyers", buyers), ("sales", sales)):
        (directory / name).mkdir()
        pq.write_table(table, directory / name / "all.parquet", row_group_size=table.num_rows // 40)
    with nearly.connect(spark, path=directory / "catalog", eager=True) as session:
        for name in ("buyers", "sales"):
            session.register(name, directory / name)
        session.prepare("buyers", by="id", buckets=32)
        session.prepare("sales", by="buyer", buckets=64)
        yield session


def cut_of(db: nearly.Session, text: str) -> Cut:
    engine = db._engine
    query = engine.prepare(text).query
    assert query is not None
    cut = for_units(query.plan, engine.catalog.schema)
    assert cut is not None
    return cut


def units_for(db: nearly.Session, cut: Cut, seed: int) -> Units:
    return units_of(cut, [db._engine.catalog.table(scan.table) for scan in cut.scans], seed)


@pytest.mark.parametrize("seed", [0, 1])
def test_law_buckets_of_two_tables_are_the_tables_and_keep_keys_together(db: nearly.Session, seed: int) -> None:
    cut = cut_of(db, HISTOGRAM)
    assert {scan.layout for scan in cut.scans} == {"by_id", "by_buyer"}
    units = units_for(db, cut, seed)
    parts = [
        f"select {place} as place, '{scan.table}' as name, {'id' if scan.table == 'buyers' else 'buyer'} as k from ({query})"
        for scan in cut.scans
        for place, query in enumerate(units.queries(NativeReader(), scan))
    ]
    with duckdb.connect() as connection:
        connection.execute(f"create table found as {' union all '.join(parts)}")
        rows = connection.sql("select name, count(*) from found group by name").fetchall()
        apart = connection.sql("select k from found group by k having count(distinct place) > 1").fetchall()
    assert dict(rows) == {"buyers": BUYERS, "sales": SALES}
    assert apart == []


@pytest.mark.parametrize("text", [HISTOGRAM, SILENT])
def test_law_a_join_of_prepared_tables_is_answered_from_buckets(db: nearly.Session, text: str) -> None:
    """An early answer is the query over some buckets of both tables, counts scaled; the last one is Spark's."""
    sizes = (12, 8)
    run = Run(db._engine, db._engine.prepare(text), Request(pace=Pace(sizes=sizes)))
    answers = [*run.answers()]
    assert len(answers) > len(sizes)
    assert answers[-1].table == db.sql(text, kernel="spark").exact().table
    cut = cut_of(db, text)
    units = units_for(db, cut, 0)
    for answer, end in zip(answers, accumulate(sizes), strict=False):
        connection = duckdb.connect()
        for scan in cut.scans:
            connection.execute(f"create view {scan.table} as {' union all '.join(units.queries(NativeReader(), scan, end))}")
        weight = UnitsRead.of(units, range(end)).weight
        wanted = connection.sql(text).to_arrow_table().to_pylist()
        name = "buyers" if text == HISTOGRAM else "n"
        (other,) = {*answer.table.column_names} - {name}
        assert answer.table[other].to_pylist() == pytest.approx([row[other] for row in wanted])
        for found, row in zip(answer.table[name].to_pylist(), wanted, strict=True):
            if row[name] >= OFTEN:
                assert found == pytest.approx(row[name] * weight, abs=0.51)


def test_a_shuffled_layout_gives_better_samples(db: nearly.Session) -> None:
    """In data ordered by time blocks differ, and shuffled ones do not, so intervals are shorter. The last answer is the same."""
    before = [*Run(db._engine, db._engine.prepare(MEAN), Request(pace=Pace(sizes=(12,)))).answers()]
    assert cut_of(db, MEAN).scans[0].layout == "base"
    db.prepare("sales")
    try:
        assert cut_of(db, MEAN).scans[0].layout == "shuffled"
        assert {scan.layout for scan in cut_of(db, HISTOGRAM).scans} == {"by_id", "by_buyer"}
        after = [*Run(db._engine, db._engine.prepare(MEAN), Request(pace=Pace(sizes=(12,)))).answers()]
    finally:
        drop_layout(db, "sales", "shuffled")
    assert before[-1].table == after[-1].table
    widths = [answers[0].high["mean"][0].as_py() - answers[0].low["mean"][0].as_py() for answers in (before, after)]
    assert widths[1] < widths[0] / 2
    truth = after[-1].table["mean"][0].as_py()
    assert after[0].low["mean"][0].as_py() <= truth <= after[0].high["mean"][0].as_py()


def test_a_query_does_not_go_on_in_another_layout(db: nearly.Session) -> None:
    run = Run(db._engine, db._engine.prepare(MEAN), Request(pace=Pace(sizes=(8, 8, 8))))
    answers = run.answers()
    next(answers)
    log = ResultLog(query_directory(db._engine, run.id))
    known = log.description()
    answers.close()
    assert known is not None
    ResultLog.create(query_directory(db._engine, "moved")).describe(known | {"units": "others"})
    with pytest.raises(nearly.EngineError, match="layout of a table has changed since query moved began"):
        [*resumed(db._engine, "moved").answers()]


def drop_layout(db: nearly.Session, table: str, layout: str) -> None:
    """Take a layout out of the catalog again."""
    catalog = db._engine.catalog
    known = catalog.table(table)
    catalog.save(replace(known, layouts=tuple(each for each in known.layouts if each.name != layout)))


@pytest.mark.parametrize(("tables", "together"), [("abc", {"a": 48, "b": 64, "c": 16}), ("ab", {"a": 48})])
def test_only_bucket_counts_that_divide_each_other_are_read_together(tables: str, together: dict[str, int]) -> None:
    def schema(name: str) -> TableSchema:
        one = HashedLayout(f"by_{name}", (name,), {"a": 48, "b": 64, "c": 16}[name])
        return TableSchema(name, (), hashed=(one, HashedLayout("by_two", (name, "d"), 8)))

    found = arrangements({Scan(name, ()) for name in tables}, schema)
    assert [{name: each.buckets for name, each in layouts.items()} for layouts in found] == [{}, together]
