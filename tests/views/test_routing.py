"""Queries over tables that a view answers: exactly, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.errors import Unsupported
from nearly.views.catalogue import Views
from tests.fixtures.driver_only import driver_only

SALES = pa.table({
    "id": list(range(500)), "shop": [f"s{number % 7}" for number in range(500)],
    "day": pa.array([number % 20 for number in range(500)], pa.int32()), "price": pa.array([number % 13 for number in range(500)]),
})  # fmt: skip
SHOPS = pa.table({"shop": [f"s{number}" for number in range(6)], "city": ["Rome", "Oslo", "Rome", "Bern", "Oslo", "Bern"]})
VIEW = "select shop, day, sum(price) as total, count(*) as n from sales group by shop, day"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    pq.write_table(SALES, tmp_path / "sales.parquet")
    pq.write_table(SHOPS, tmp_path / "shops.parquet")
    with driver_only(tmp_path / "catalog") as session:
        session.register("sales", str(tmp_path / "sales.parquet"), key=["id"])
        session.register("shops", str(tmp_path / "shops.parquet"))
        session.create_view("daily", VIEW)
        yield session


COVERED = (
    "select shop, sum(price) as s, count(*) as n, avg(price) as a from sales where day > 3 group by shop order by shop",
    "select sum(price) as s from sales where shop = 's3'",
    "select city, sum(price) as s from sales s join shops t on s.shop = t.shop group by city having sum(price) > 3 order by city",
    "select max(day) as d, count(price) as c from sales",
)
OTHERS = ("select max(price) as m from sales", "select shop, sum(price) as s from sales where price > 3 group by shop")


@pytest.mark.parametrize("text", COVERED)
def test_a_covered_query_is_answered_from_the_view(db: nearly.Session, text: str) -> None:
    query = db.sql(text)
    assert "view daily: yes, fresh" in query.explain()
    found = query.exact()
    assert found.source == "view daily"
    assert found.table.equals(db.sql(text, kernel="native").exact().table)
    assert [answer.source for answer in db.sql(text)] == ["view daily"]


@pytest.mark.parametrize("text", OTHERS)
def test_any_other_is_not(db: nearly.Session, text: str) -> None:
    query = db.sql(text)
    assert "view daily: no, it does not hold what the query asks for" in query.explain()
    assert query.exact().source == "native"
    with pytest.raises(Unsupported, match="view 'daily' cannot answer"):
        db.sql(text, using="daily").exact()


@pytest.mark.parametrize("text", COVERED)
def test_a_stale_view_answers_with_what_changed(db: nearly.Session, text: str) -> None:
    query = db.sql(text)
    db.insert("sales", [{"id": 900, "shop": "s9", "day": 4, "price": 1}, {"id": 901, "shop": "s3", "day": 99, "price": None}])
    db.delete("sales", where="id in (3, 4, 10)")
    assert query.exact().source == "view daily + delta"
    assert query.exact().table.equals(db.sql(text, kernel="native").exact().table)
    db.delete("sales", where="day < 9")
    assert query.exact().source == "native"
    assert "rows changed since; refresh it" in query.explain()
    assert query.exact().table.equals(db.sql(text, kernel="native").exact().table)
    assert db.sql(text, using="daily").exact().table.equals(db.sql(text, kernel="native").exact().table)
    db.view("daily").refresh()
    assert query.exact().source == "view daily"
    assert query.exact().table.equals(db.sql(text, kernel="native").exact().table)


@pytest.mark.parametrize("text", [
    "select id from sales where day > 17 order by price, id desc",
    "select id from sales where day > 17 order by price, id desc limit 7",
    "select shop from (select shop, price, id from sales where day > 17 order by shop) order by price, id",
    "select price + 1 as p from sales where day > 17 order by id desc limit 5 offset 3",
    "select s.id from sales s join shops t on s.shop = t.shop where s.day > 17 order by t.city, s.price, s.id",
])  # fmt: skip
def test_the_order_by_what_is_not_shown_is_kept(db: nearly.Session, text: str) -> None:
    db.create_view("late", "select id, shop, day, price from sales where day > 17")
    found = db.sql(text, using="late").exact()
    assert found.source == "view late"
    assert found.table.equals(db.sql(text, kernel="native").exact().table)


def test_a_table_that_was_registered_anew_is_read_itself(db: nearly.Session, tmp_path: Path) -> None:
    """Its old file, which the view is of, may be gone."""
    text = "select city, count(*) as n from sales join shops on sales.shop = shops.shop group by city"
    db.create_view("cities", text)
    db.drop_view("daily")
    pq.write_table(SHOPS.slice(0, 3), tmp_path / "fewer.parquet")
    db.register("shops", str(tmp_path / "fewer.parquet"))
    (tmp_path / "shops.parquet").unlink()
    found = db.sql(text).exact()
    assert (found.source, sum(found.table["n"].to_pylist())) == ("native", 216)
    assert [answer.source for answer in db.sql(text)] == ["native"]
    with pytest.raises(Unsupported, match="what changed in 'shops' is not known; refresh it"):
        db.sql(text, using="cities").exact()
    db.view("cities").refresh()
    assert db.sql(text, using="cities").exact().table["n"].to_pylist() == found.table["n"].to_pylist()


def test_a_view_of_rows_that_are_not_null_lacks_the_others(db: nearly.Session) -> None:
    db.insert("sales", [{"id": 900 + number, "shop": "s1", "day": None, "price": 1} for number in range(50)])
    db.create_view("dated", "select shop, count(*) as n from sales where day = day group by shop")
    db.drop_view("daily")
    found = db.sql("select count(*) as n from sales").exact()
    assert (found.source, found.table["n"][0].as_py()) == ("native", 550)
    assert db.sql("select count(*) as n from sales where day = day").exact().source == "view dated"


@pytest.mark.parametrize("text", [
    "select 'a' as a, count(*) as n from sales where price > 99 group by 'a'",
    "select city, count(*) as n from sales cross join shops where price > 99 group by city",
    "select max('v') as m, count(*) as n from sales where price > 99",
    "select count(distinct day) as n from sales where 1 = 0",
])  # fmt: skip
def test_one_row_of_no_rows_is_no_group(db: nearly.Session, text: str) -> None:
    db.create_view("none", "select count(*) as n, sum(price) as s, count(distinct day) as d from sales where price > 99")
    db.create_view("days", "select count(distinct day) as d from sales")
    assert db.sql(text).exact().table.equals(db.sql(text, kernel="native").exact().table)
    for name in ("none", "days"):
        with pytest.raises(Unsupported, match="it does not hold what the query asks for"):
            db.sql(text, using=name).exact()
    assert db.sql("select count(*) as n from sales where price > 99", using="none").exact().table["n"].to_pylist() == [0]


def test_a_view_that_is_dropped_meanwhile_is_passed_over(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    db.create_view("cities", "select city, count(*) as n from shops group by city")
    names = db.views
    db.drop_view("daily")
    monkeypatch.setattr(Views, "names", property(lambda _: names))
    assert db.sql(COVERED[1]).exact().source == "native"


def test_a_table_joined_many_times_is_compared_soon(db: nearly.Session) -> None:
    """Leaves that are alike can be told apart in millions of ways."""
    db.create_view("cities", "select shop, city from shops")
    many = " ".join(f"join shops t{number} on t{number - 1}.shop = t{number}.shop" for number in range(1, 12))
    text = f"select count(*) as n from shops t0 {many}"
    assert db.sql(text).exact().table["n"].to_pylist() == [6]


def test_unions_of_which_no_column_is_read(db: nearly.Session) -> None:
    text = "select count(*) as n from (select shop from sales union all select shop from shops) where 1 = 1"
    db.create_view("rows_of_both", text)
    db.insert("shops", [{"shop": "s9", "city": "Rome"}])
    db.view("rows_of_both").refresh()
    assert db.sql("select n from rows_of_both").exact().table["n"].to_pylist() == [507]
