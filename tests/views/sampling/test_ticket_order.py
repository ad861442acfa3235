"""Views that are stored by tickets: the same rows, of which a sample reads few files, through refreshes and compactions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.storage.clustering import TICKETS as BY_TICKETS
from nearly.engine.storage.ticket_order import BUCKETS, files_below
from nearly.plan.functions.tickets import TICKETS
from nearly.views import storing
from nearly.views.sampling.cleaning import cleaned, drawn_stored, tickets_of, untouched
from tests.fixtures.driver_only import driver_only

ROWS = 20_000
GROUPED = "select item, shop, count(*) as n, sum(price) as total, avg(price) as mean from sales group by item, shop"
PLAIN = "select id, item, price from sales where price > 100"


def sales(first: int, rows: int, seed: int) -> pa.Table:
    make = np.random.default_rng(seed)
    return pa.table({
        "id": pa.array(np.arange(first, first + rows)), "item": pa.array(make.integers(0, 3_000, rows)),
        "shop": pa.array([f"s{number}" for number in make.integers(0, 4, rows)]), "price": pa.array(make.integers(0, 1_000, rows)),
    })  # fmt: skip


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[nearly.Session]:
    monkeypatch.setattr(storing, "FEWEST_ROWS", 1_000)
    pq.write_table(sales(0, ROWS, 0), tmp_path / "sales.parquet")
    with driver_only(tmp_path / "catalog") as session:
        session.register("sales", str(tmp_path / "sales.parquet"), key=["id"])
        session.create_view("grouped", GROUPED, sample=0.1)
        session.create_view("plain", PLAIN, sample=0.1)
        session.create_view("other", GROUPED)
        yield session


def same_rows(db: nearly.Session, name: str, text: str) -> bool:
    mine, expected = (db.sql(each, kernel="native").exact().table for each in (f"select * from {name}", text))
    order = [(column, "ascending") for column in mine.column_names]
    return bool(mine.sort_by(order).equals(expected.sort_by(order)))


def change(db: nearly.Session, seed: int) -> None:
    db.insert("sales", sales(seed * 10 * ROWS, ROWS // 5, seed))
    db.delete("sales", where=f"id % 17 = {seed}")
    db.update("sales", {"price": "price + 7"}, where=f"id % 11 = {seed}")


def test_only_views_that_are_sampled_are_stored_so(db: nearly.Session) -> None:
    for name in ("grouped", "plain"):
        order = db.view(name).table.base.clustering
        assert order is not None
        assert (order.kind, order.buckets) == (BY_TICKETS, BUCKETS)
        assert {block.bucket for block in db.view(name).table.base.blocks} == set(range(BUCKETS))
    other = db.view("other").table.base.clustering
    assert other is None or other.kind != BY_TICKETS


def test_rows_stay_right(db: nearly.Session) -> None:
    for seed in (1, 2):
        change(db, seed)
        for name, text in (("grouped", GROUPED), ("plain", PLAIN)):
            db.view(name).refresh()
            assert same_rows(db, name, text)
            if seed == 2:
                db.compact(name)
                table = db.view(name).table
                assert not table.base.vectors
                assert {block.bucket for block in table.base.blocks} == set(range(BUCKETS))
                assert same_rows(db, name, text)


@pytest.mark.parametrize("name", ["grouped", "plain"])
@pytest.mark.parametrize("refreshed", [False, True])
def test_a_sample_reads_few_files_and_all_its_rows(db: nearly.Session, name: str, refreshed: bool) -> None:
    change(db, 1)
    if refreshed:
        db.view(name).refresh()
        change(db, 2)
    samples = db._views.samples
    assert samples.clean(name, 0.1) is not None
    view = samples._held[name].view
    table = view.table
    files = files_below(table.base, view.ticket_columns, TICKETS // 10)
    assert files is not None
    assert len(files) <= len(table.base.manifest.paths) // 4
    sample = samples._held[name].sample
    found = drawn_stored(db._engine, view, sample, view.key)
    stored = db._engine.at([table]).native.reader.text(table, table.column_names)
    with db._engine.native.local.cursor() as cursor:
        whole = cursor.sql(stored).to_arrow_table()
    drawn = whole.filter(pa.array(tickets_of(db._engine, whole, view) < 0.1 * TICKETS)).select(list(view.key))
    order = [(column, "ascending") for column in view.key]
    assert found.table.select(list(view.key)).sort_by(order).equals(drawn.sort_by(order))


def test_a_cleaned_sample_is_that_of_the_fresh_view(db: nearly.Session) -> None:
    change(db, 1)
    samples = db._views.samples
    sample = samples.clean("grouped", 0.25)
    assert sample is not None
    held = samples._held["grouped"]
    again = cleaned(db._engine, held.view, 0.25, cleaned(db._engine, held.view, 0.1, untouched(held.view)))
    assert sorted(again.changed.to_pylist(), key=str) == sorted(sample.changed.to_pylist(), key=str)
    old = {tuple(row[name] for name in held.view.key): row for row in sample.old.table.to_pylist()}
    new = {tuple(row[name] for name in held.view.key): row for row in sample.new.table.to_pylist()}
    db.view("grouped").refresh()
    truth = {(row["item"], row["shop"]): row for row in db.sql("select * from grouped").exact().table.to_pylist()}
    assert old
    for key, row in new.items():
        assert (truth[key]["n"], truth[key]["total"]) == (row["n"], row["total"])
    assert all(key in new or key not in truth for key in old)
