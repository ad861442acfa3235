"""Tables under a standing query that become others: other types, no key any more, another time zone, gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.errors import UnknownName
from nearly.plan.nodes import Scan
from nearly.standing.upkeep import CHANGE, WHOLE, Upkeep
from tests.fixtures.agreement import difference
from tests.standing.test_standing import TEXT, opened, orders


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    made = opened(tmp_path)
    yield made
    made.close()


def again(db: nearly.Session, path: Path, rows: pa.Table, key: tuple[str, ...] = ("id",)) -> None:
    """Other rows under the same name."""
    db.drop("orders")
    pq.write_table(rows, path / "again.parquet")
    db.register("orders", str(path / "again.parquet"), key=key)


def judge(db: nearly.Session, s: nearly.standing.standing.Standing) -> None:
    expected = db.sql(s.text, kernel="native").exact().table
    assert difference(expected, s.refresh().table, s.text) is None


@pytest.mark.parametrize("prices", [
    pa.array([number / 4 for number in range(300)]),
    pa.array(list(range(300)), pa.decimal128(9, 3)),
    pa.array([None] * 300, pa.int64()),
], ids=["double", "decimal", "null"])  # fmt: skip
def test_other_types_are_bound_again(prices: pa.Array, db: nearly.Session, tmp_path: Path) -> None:
    """A plan of whole numbers would round fractions."""
    s = db.standing(TEXT)
    again(db, tmp_path, orders(0, 300).set_column(2, "price", prices))
    judge(db, s)
    db.delete("orders", where="id < 20")
    judge(db, s)


def test_a_key_that_is_none_any_more_proves_nothing(db: nearly.Session, tmp_path: Path) -> None:
    s = db.standing("select distinct id from orders")
    again(db, tmp_path, orders(0, 1000), key=())
    s.refresh()
    db.insert("orders", orders(0, 5))
    judge(db, s)


def test_columns_come_and_go(db: nearly.Session, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    note = lambda _, changed: told.append((changed.came.num_rows, changed.went.num_rows))  # noqa: E731
    s = db.standing("select * from orders", on_change=note)
    again(db, tmp_path, orders(0, 10).append_column("more", pa.array(range(10))))
    judge(db, s)
    assert told == [(10, 1000)]
    named = db.standing("select sum(price) as total from orders")
    again(db, tmp_path, orders(0, 10).drop_columns(["price"]))
    for _ in range(2):
        with pytest.raises(UnknownName, match="price"):
            named.refresh()
    again(db, tmp_path, orders(0, 20))
    judge(db, named)


def test_rows_of_another_time_zone_are_not_moved(db: nearly.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = pa.array([1_577_836_800_000_000 + 3_600_000_000 * hour for hour in range(100)], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"id": range(100), "at": times}), tmp_path / "times.parquet")
    db.register("times", str(tmp_path / "times.parquet"))
    s = db.standing("select cast(at as date) as day, count(*) as n from times group by cast(at as date)")
    s._upkeep.forced = CHANGE
    cluster = type(db._engine.cluster)
    monkeypatch.setattr(cluster, "time_zone", property(lambda _: "Asia/Tokyo"))
    judge(db, s)
    db.delete("times", where="id = 15")
    judge(db, s)


def test_whoever_waits_is_told_that_a_table_is_gone(db: nearly.Session, tmp_path: Path) -> None:
    s = db.standing(TEXT, rows=1)
    answers = iter(s)
    next(answers)
    found: list[BaseException] = []

    def wait() -> None:
        try:
            next(answers)
        except UnknownName as trouble:
            found.append(trouble)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    db.drop("orders")
    waiting.join(20)
    assert "unknown table 'orders'" in str(found[0])
    assert "unknown table" in (s.status().error or "")
    pq.write_table(orders(0, 50), tmp_path / "again.parquet")
    db.register("orders", str(tmp_path / "again.parquet"), key=["id"])
    judge(db, s)
    assert s.status().error is None


def test_names_in_another_case_are_the_same_table(db: nearly.Session) -> None:
    s = db.standing(TEXT.replace("orders", "ORDERS"))
    assert s._upkeep.bind({name: replace(table) for name, table in s._upkeep.tables.items()}) is False
    db.insert("Orders", orders(1000, 5))
    judge(db, s)


@pytest.mark.parametrize("how", ["in place", "refreshed", "copied"])
def test_a_table_whose_files_are_others_is_read_as_it_is(
    how: str, db: nearly.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What changed cannot be told where the files as they were are gone; the answer can."""
    monkeypatch.setattr(Upkeep, "pays", lambda *_: (True, 0.0))
    path, few = tmp_path / "customers.parquet", pa.table({"id": range(100), "region": [f"r{each % 3}" for each in range(100)]})
    if how == "copied":
        db.drop("customers")
        db.register("customers", pq.read_table(path), key=["id"])
    s = db.standing(TEXT, name="held", arrivals={"orders": 5})
    s._upkeep.fixed = [node for node in s._upkeep.plan.walk() if isinstance(node, Scan)]
    for step in range(2):
        db.insert("orders", orders(1000 + 5 * step, 5))
        judge(db, s)
        s._upkeep.planned = None
    assert s.history[-1].strategy == CHANGE
    assert len(s.states) == 2
    if how != "copied":
        pq.write_table(few, path)
    if how == "refreshed":
        db.refresh("customers")
    else:
        db.drop("customers")
        db.register("customers", few if how == "copied" else str(path), key=["id"])
    judge(db, s)
    assert s.history[-1].strategy == WHOLE
    db.insert("orders", orders(1010, 5))
    judge(db, s)
    assert s.history[-1].strategy == CHANGE


def test_a_column_that_is_called_as_changes_are_told_is_no_weight(db: nearly.Session) -> None:
    db.register("weights", pa.table({"id": [1, 2], "Nearly_Weight": [3, 4]}))
    s = db.standing("select * from weights")
    s._upkeep.forced = CHANGE
    assert "'nearly_weight'" in s.explain()
    db.insert("weights", pa.table({"id": [3], "Nearly_Weight": [5]}))
    judge(db, s)
    db.delete("weights", where="id = 1")
    judge(db, s)


@pytest.mark.parametrize("text", [
    "select null as k, count(*) as n from orders where id < 0 group by null",
    "select n, count(*) as m from (select distinct null as n, customer from orders where id < 0) group by n",
])  # fmt: skip
def test_groups_of_nothing_but_nulls_may_be_empty(text: str, db: nearly.Session) -> None:
    s = db.standing(text)
    s._upkeep.forced = CHANGE
    for first in (1000, -5, -10):
        db.insert("orders", orders(first, 3))
        judge(db, s)
    db.delete("orders", where="id < 0")
    judge(db, s)
