"""Views as a user holds them: made, read like tables, refreshed, dropped, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.deltas.versions import versions_of
from nearly.errors import Conflict, EngineError, NearlyError, SchemaError, UnknownName, Unsupported
from nearly.views.maintenance import Maintenance
from nearly.views.moving import Move
from tests.fixtures.driver_only import driver_only

SALES = pa.table({
    "id": [1, 2, 3, 4, 5], "shop": ["a", "b", "a", None, "b"], "price": pa.array([10, 20, 30, 40, 50], pa.int64()),
})  # fmt: skip
SHOPS = pa.table({"shop": ["a", "b", "c"], "city": ["Rome", "Oslo", "Bern"]})
TOTALS = "select shop, sum(price) as total, avg(price) as mean, count(*) as n from sales group by shop"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    pq.write_table(SALES, tmp_path / "sales.parquet")
    pq.write_table(SHOPS, tmp_path / "shops.parquet")
    with driver_only(tmp_path / "catalog") as session:
        session.register("sales", str(tmp_path / "sales.parquet"), key=["id"])
        session.register("shops", str(tmp_path / "shops.parquet"), key=["shop"])
        yield session


def rows(db: nearly.Session, text: str, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = db.sql(text, **options).exact().table.to_pylist()
    return sorted(found, key=str)


def test_a_view_is_read_like_a_table(db: nearly.Session) -> None:
    view = db.create_view("totals", TOTALS)
    assert view.columns == ("shop", "total", "mean", "n")
    assert rows(db, "select * from totals") == rows(db, TOTALS, kernel="native")
    assert rows(db, "select city, total from totals join shops using (shop) where n > 1") == [
        {"city": "Oslo", "total": 70}, {"city": "Rome", "total": 40},
    ]  # fmt: skip
    assert rows(db, "select a.total, b.n from totals a join totals b on a.shop = b.shop where a.shop = 'a'") == [
        {"total": 40, "n": 2}
    ]
    assert db.table("totals").columns == ("shop", "total", "mean", "n")
    assert db.views == ("totals",)
    assert db.tables == ("sales", "shops")
    last = list(db.sql("select sum(total) as t from totals"))[-1]
    assert last.exact
    assert last.table["t"].to_pylist() == [150]


def test_a_refresh_plans_nothing_that_was_planned_when_the_view_was_made(
    db: nearly.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = db.create_view("totals", TOTALS)
    db.insert("sales", [{"id": 6, "shop": "c", "price": 7}])
    monkeypatch.setattr("nearly.views.definition.planned_again", None)
    view.refresh()
    assert {"shop": "c", "total": 7} in rows(db, "select shop, total from totals")


def test_who_reads_a_change_first_reads_it_for_all_views(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deleted row lies among others: it is not looked for again for another column."""
    cheapest, shops = (
        db.create_view(name, f"select {column} from sales group by shop", policy="incremental")
        for name, column in (("cheapest", "min(id) as id"), ("shops_seen", "shop, sum(price) as total"))
    )
    monkeypatch.setattr("nearly.engine.changes.batch_files.READ_AGAIN", 2.0)  # else rows that go lie in a file of their own
    db.delete("sales", where="id = 3")
    cheapest.refresh()
    monkeypatch.setattr("nearly.engine.native.reading.NativeReader.part", None)
    shops.refresh()
    assert {"shop": "a", "total": 10} in rows(db, "select * from shops_seen")


def test_who_reads_a_change_first_reads_it_for_views_of_other_sessions(
    db: nearly.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, column in (("cheapest", "min(id) as id"), ("shops_seen", "shop, sum(price) as total")):
        db.create_view(name, f"select {column} from sales group by shop", policy="incremental")
    monkeypatch.setattr("nearly.engine.changes.batch_files.READ_AGAIN", 2.0)
    for gone in (3, 2):  # what is read is noted when a view is made, and when it is refreshed
        db.delete("sales", where=f"id = {gone}")
        with driver_only(tmp_path / "catalog") as other, monkeypatch.context() as patch:
            other.view("cheapest").refresh()
            patch.setattr("nearly.engine.native.reading.NativeReader.part", None)
            other.view("shops_seen").refresh()
    assert rows(db, "select * from shops_seen where shop = 'b'") == [{"shop": "b", "total": 50}]


def test_reading_a_change_is_expected_to_cost_less_where_views_share_it(db: nearly.Session) -> None:
    text = "select city, sum(price) as total from sales join shops on sales.shop = shops.shop group by city"
    db.create_view("first", text)
    db.delete("sales", where="id = 3")
    alone = expected(db, "first")
    for number in range(3):
        db.create_view(f"other_{number}", text)
    together = expected(db, "first")
    assert together["whole"] == alone["whole"]
    assert together["delta"] < alone["delta"]


def test_making_a_view_was_expected_to_take_what_computing_it_anew_is(db: nearly.Session) -> None:
    """Else what it took would correct later estimates by how far its rows were guessed before it was made."""
    text = "select a.id, count(*) as n from sales a, sales b, sales c where a.id = b.id and b.id = c.id group by a.id"
    made = db.create_view("pairs", text).history[0].estimates["whole"]
    db.delete("sales", where="id = 3")
    assert expected(db, "pairs")["whole"] == pytest.approx(made, rel=0.01)


def test_touching_most_groups_is_expected_to_cost_more(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    db.create_view("medians", "select shop, median(price) as m from sales group by shop")
    db.delete("sales", where="id = 3")
    few = expected(db, "medians")
    monkeypatch.setattr(Move, "_different", lambda *_: 1e9)
    many = expected(db, "medians")
    assert many["whole"] == few["whole"]
    assert many["touched keys"] < few["touched keys"]


def test_columns_without_values_and_tables_without_rows_have_costs(db: nearly.Session) -> None:
    for name, kinds in (("bare", []), ("unknown", [None, None])):
        db.register(
            name, pa.table({"id": pa.array(range(len(kinds)), pa.int64()), "kind": pa.array(kinds, pa.string())}), key=["id"]
        )
        view = db.create_view(f"kinds_of_{name}", f"select kind, median(id) as m from {name} group by kind")
        db.insert(name, [{"id": 10 + each, "kind": None} for each in range(4)])
        assert expected(db, view.name)["touched keys"] > 0
        view.refresh()
        assert rows(db, f"select kind from {view.name}") == [{"kind": None}]


def test_a_file_that_is_gone_is_named_by_a_refresh(db: nearly.Session, tmp_path: Path) -> None:
    view = db.create_view("medians", "select shop, median(price) as m from sales group by shop")
    db.insert("sales", [{"id": 6, "shop": "c", "price": 7}])
    (tmp_path / "sales.parquet").unlink()
    with pytest.raises(EngineError, match=r"sales\.parquet"):
        view.refresh()


def expected(db: nearly.Session, name: str) -> dict[str, float]:
    """What each way to refresh a view is expected to take."""
    move = db._views.maintenance.ahead(name)
    assert move is not None
    stored = move.planned.stored
    assert stored is not None
    return move.estimates(stored, versions_of(db._engine, stored.kept, move.present(move.before), move.after))


def test_changes_reach_a_view_when_it_is_refreshed(db: nearly.Session) -> None:
    view = db.create_view("totals", TOTALS)
    db.insert("sales", [{"id": 6, "shop": "c", "price": 7}])
    db.delete("sales", [{"id": 3}])
    assert view.stale == {"sales": 2}
    assert rows(db, "select total from totals where shop = 'a'") == [{"total": 40}]
    view.refresh()
    assert view.stale == {}
    assert rows(db, "select * from totals") == rows(db, TOTALS, kernel="native")
    assert (view.history[0].inserted, view.history[0].updated, view.history[0].deleted) == (1, 1, 0)
    assert view.history[-1].reason == "made"
    assert rows(db, "select total from totals version as of 1 where shop = 'a'") == [{"total": 40}]
    changed = db.changes("totals", 1).to_pylist()
    assert [(each["shop"], each["total"], each["n"], each["_change_type"]) for each in changed] == [
        ("a", 40, 2, "update_preimage"), ("a", 10, 1, "update_postimage"), ("c", 7, 1, "insert"),
    ]  # fmt: skip
    assert [each.operation for each in db.history("totals")] == ["refresh", "create view"]


def test_a_refresh_without_net_change_commits_no_rows(db: nearly.Session) -> None:
    view = db.create_view("totals", TOTALS)
    db.insert("sales", [{"id": 9, "shop": "a", "price": 1}])
    db.delete("sales", [{"id": 9}])
    assert view.stale == {"sales": 2}
    version = view.table.version
    view.refresh()
    assert view.stale == {}
    assert view.table.version == version
    assert view.versions == {"sales": 3}
    view.refresh()
    assert len(view.history) == 2


def test_having_order_and_limit_are_read(db: nearly.Session) -> None:
    text = "select shop, sum(price) as s from sales group by shop having count(*) > 1 order by s desc limit 1"
    view = db.create_view("best", text, policy="incremental")
    assert db.sql("select * from best").exact().table.to_pylist() == [{"shop": "b", "s": 70}]
    db.merge("sales", [{"id": 1, "shop": "a", "price": 100}])
    view.refresh()
    assert view.history[0].strategy == "delta"
    assert db.sql("select * from best").exact().table.to_pylist() == [{"shop": "a", "s": 130}]
    assert [(each["s"], each["_change_type"]) for each in db.changes("best", 1).to_pylist()] == [(70, "delete"), (130, "insert")]
    assert view.table.rows == 3


def test_changes_of_hidden_groups_are_no_changes(db: nearly.Session) -> None:
    view = db.create_view("many", "select shop, count(*) as n from sales group by shop having count(*) > 5")
    db.insert("sales", [{"id": 6, "shop": "c", "price": 7}])
    view.refresh()
    assert view.table.version == 2
    found = db.changes("many", 1)
    assert found.num_rows == 0
    assert found.column_names[:2] == ["shop", "n"]


def test_views_on_views_move_together(db: nearly.Session) -> None:
    db.create_view("totals", TOTALS)
    top = db.create_view("top", "select max(total) as most, count(*) as n from totals where total > 30")
    both = db.create_view("both", "select t.total, s.price from totals t join sales s on t.shop = s.shop where s.price > t.mean")
    db.insert("sales", [{"id": 7, "shop": "c", "price": 500}, {"id": 8, "shop": "c", "price": 100}])
    assert top.stale == {"sales": 2}
    both.refresh()
    assert db.view("totals").stale == {}
    assert rows(db, "select * from both") == [{"total": 40, "price": 30}, {"total": 600, "price": 500}, {"total": 70, "price": 50}]
    assert top.stale == {"sales": 2}
    top.refresh()
    assert rows(db, "select * from top") == [{"most": 600, "n": 4}]
    with pytest.raises(SchemaError, match="needed by view 'both', 'top'"):
        db.drop_view("totals")
    for name in ("both", "top", "totals"):
        db.drop_view(name)
    db.drop("sales")


def test_a_view_on_views_is_made_while_their_table_changes(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one moment: nobody waits for one in which the table rests."""
    db.create_view("totals", TOTALS)
    db.create_view("dearest", "select shop, max(price) as most from sales group by shop")
    text = "select t.shop, t.n, d.most, s.id from {} t join {} d on t.shop = d.shop join sales s on s.shop = t.shop"
    refresh, numbers = Maintenance._refresh, iter(range(100, 110))

    def refreshed(*given: Any) -> Any:
        db.insert("sales", [{"id": next(numbers), "shop": "c", "price": 7}])
        return refresh(*given)

    monkeypatch.setattr(Maintenance, "_refresh", refreshed)
    view = db.create_view("both", text.format("totals", "dearest"))
    assert view.stale == {"sales": 2}
    monkeypatch.undo()
    for _ in range(2):
        below = (f"(select * from {name} version as of {db.view(name).table.version})" for name in ("totals", "dearest"))
        then = text.format(*below).replace("sales s", f"sales version as of {view.versions['sales']} s")
        assert rows(db, "select * from both") == rows(db, then, kernel="native")
        view.refresh()
    assert rows(db, "select count(*) as n from both") == rows(db, "select count(shop) as n from sales")


def test_a_view_is_there_after_reopening(db: nearly.Session, tmp_path: Path) -> None:
    db.create_view("totals", TOTALS, policy="incremental", key="shop", sample=0.5)
    db.create_view("joined", "select city, price from sales join shops on sales.shop = shops.shop")
    db.insert("sales", [{"id": 6, "shop": "c", "price": 7}])
    with driver_only(tmp_path / "catalog") as other:
        assert other.views == ("joined", "totals")
        view = other.view("TOTALS")
        assert (view.policy, view.stale) == ("incremental", {"sales": 1})
        view.refresh()
        assert rows(other, "select * from totals") == rows(other, TOTALS, kernel="native")
    assert db.view("totals").stale == {}
    assert rows(db, "select n from totals where shop = 'c'") == [{"n": 1}]


def test_statements(db: nearly.Session) -> None:
    made = db.execute("CREATE MATERIALIZED VIEW totals AS " + TOTALS)
    assert str(made) == "create view: 3 inserted, 0 updated, 0 deleted; totals is at version 1"
    kept = db.execute("create materialized view if not exists totals as select 1 as x")
    assert str(kept) == "create view: 0 inserted, 0 updated, 0 deleted; totals is at version 1"
    with pytest.raises(SchemaError, match="already"):
        db.execute("create materialized view totals as select 1 as x")
    db.execute("insert into sales values (6, 'c', 7)")
    assert str(db.execute("REFRESH MATERIALIZED VIEW totals;")) == (
        "refresh view: 1 inserted, 0 updated, 0 deleted; totals is at version 2"
    )
    db.execute("create or replace materialized view totals as select 'x' as a from sales")
    assert db.view("totals").columns == ("a",)
    assert rows(db, "select n from totals version as of 2 where shop = 'c'") == [{"n": 1}]
    db.execute("drop materialized view totals")
    db.execute("drop materialized view if exists totals")
    assert db.views == ()


def test_a_view_of_what_it_was_can_be_dropped(db: nearly.Session) -> None:
    db.create_view("totals", TOTALS)
    db.execute("create or replace materialized view totals as select shop, n from totals version as of 1 where n > 1")
    db.view("totals").refresh()
    assert rows(db, "select shop from totals") == [{"shop": "a"}, {"shop": "b"}]
    db.drop_view("totals")
    assert db.views == ()


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("text", [None, "select shop from shops"])
def test_a_view_that_is_dropped_while_it_is_refreshed(
    db: nearly.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: bool, text: str | None
) -> None:
    """It does not come back, nor what was made under its name meanwhile take its rows or its versions."""
    view = db.create_view("totals", TOTALS)
    if typed:  # all rows are written anew
        pq.write_table(SALES.set_column(2, "price", SALES["price"].cast(pa.decimal128(21, 2))), tmp_path / "typed.parquet")
        db.register("sales", str(tmp_path / "typed.parquet"), key=["id"])
    else:  # no row changes
        db.insert("sales", [{"id": 9, "shop": "a", "price": 1}])
        db.delete("sales", [{"id": 9}])
    record = Move._record
    with driver_only(tmp_path / "catalog") as other:

        def recorded(*given: Any) -> Any:
            other.drop_view("totals")
            if text is not None:
                other.create_view("totals", text)
            return record(*given)

        monkeypatch.setattr(Move, "_record", recorded)
        with pytest.raises(Conflict, match="dropped or replaced by someone else meanwhile"):
            view.refresh()
    assert db.views == (() if text is None else ("totals",))
    if text is not None:
        assert (view.columns, view.versions) == (("shop",), {"shops": 1})


def test_a_function_that_is_replaced_changes_a_view(db: nearly.Session) -> None:
    functions, text = db._engine.functions, "select id, plus(id) as more from sales"
    for more in (1, 100):
        functions.add("plus", lambda given, more=more: pc.add(given, more), "bigint")
        view = db.create_view("w", text, there="keep").refresh()
        assert rows(db, "select * from w") == rows(db, text, kernel="native")
    assert view.table.version == 2


def test_policies(db: nearly.Session) -> None:
    with pytest.raises(Unsupported, match="WINDOW_WITHOUT_PARTITION"):
        db.create_view("w", "select id, row_number() over (order by price) as r from sales", policy="incremental")
    auto = db.create_view("w", "select id, row_number() over (order by price) as r from sales")
    full = db.create_view("f", TOTALS, policy="full")
    db.insert("sales", [{"id": 6, "shop": "c", "price": 7}])
    auto.refresh()
    full.refresh()
    assert full.history[0].strategy == "whole"
    assert "POLICY_FULL" in full.history[0].reason
    assert rows(db, "select * from w") == rows(db, "select id, row_number() over (order by price) as r from sales", kernel="native")
    assert rows(db, "select * from f") == rows(db, TOTALS, kernel="native")


def test_tables_that_are_registered_anew(db: nearly.Session, tmp_path: Path) -> None:
    view = db.create_view("totals", TOTALS)
    pq.write_table(SALES.slice(0, 2), tmp_path / "other.parquet")
    db.register("sales", str(tmp_path / "other.parquet"), key=["id"])
    view.refresh()
    assert "SOURCE_HAS_NO_HISTORY" in view.history[0].reason
    assert rows(db, "select * from totals") == rows(db, TOTALS, kernel="native")
    pq.write_table(SALES.select(["id", "shop"]), tmp_path / "fewer.parquet")
    db.register("sales", str(tmp_path / "fewer.parquet"), key=["id"])
    with pytest.raises(UnknownName, match="view 'totals' does not fit its tables any more"):
        view.refresh()
    assert rows(db, "select n from totals where shop = 'a'") == [{"n": 1}]
    pq.write_table(SALES.set_column(2, "price", SALES["price"].cast(pa.decimal128(21, 2))), tmp_path / "typed.parquet")
    db.register("sales", str(tmp_path / "typed.parquet"), key=["id"])
    view.refresh()
    assert rows(db, "select * from totals") == rows(db, TOTALS, kernel="native")


@pytest.mark.parametrize("whole", [False, True])
def test_a_key_that_is_none(db: nearly.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """Nobody looks whether the files of a table have a key twice."""
    if not whole:
        monkeypatch.setattr(Move, "_too_much", lambda *_: None)
    pq.write_table(pa.table({"id": [1, 1, 2], "v": [1, 1, 3]}), tmp_path / "twice.parquet")
    db.register("twice", str(tmp_path / "twice.parquet"), key=["id"])
    view = db.create_view("w", "select id, v from twice")
    for condition in ("true", "id = 1"):
        db.update("twice", {"v": "v + 1"}, condition)
        view.refresh()
        assert rows(db, "select * from w") == rows(db, "select id, v from twice", kernel="native")


def test_nulls_that_come_later(db: nearly.Session) -> None:
    view = db.create_view("totals", TOTALS)
    db.insert("sales", [{"id": 6, "shop": "a", "price": None}, {"id": 7, "shop": "z", "price": None}])
    view.refresh()
    assert rows(db, "select * from totals") == rows(db, TOTALS, kernel="native")
    db.delete("sales", where="shop = 'a' and price is not null")
    view.refresh()
    assert rows(db, "select * from totals") == rows(db, TOTALS, kernel="native")


def test_tables_that_are_emptied_and_filled(db: nearly.Session) -> None:
    texts = [TOTALS, "select count(*) as n, sum(price) as s from sales", "select distinct shop from sales", "select id from sales"]
    views = [db.create_view(f"v{place}", text) for place, text in enumerate(texts)]
    for change in (lambda: db.delete("sales", where="true"), lambda: db.insert("sales", SALES)):
        change()
        for view, text in zip(views, texts, strict=True):
            view.refresh()
            assert rows(db, f"select * from {view.name}") == rows(db, text, kernel="native")


@pytest.mark.parametrize(("code", "kind", "message"), [
    ("db.create_view('sales', 'select 1 as x')", SchemaError, "there is a table 'sales' already"),
    ("db.create_view('v', 'select 1 as x, 2 as X')", SchemaError, "two columns of the view are called 'x'"),
    ("db.create_view('v', 'select id as Nearly_Row from sales')", Unsupported, "no view can have a column 'Nearly_Row'"),
    ("db.create_view('v', 'select nothing from sales')", UnknownName, "unknown column 'nothing'"),
    ("db.create_view('v', 'delete from sales')", NearlyError, "only a query"),
    ("db.create_view('a b', 'select 1 as x')", SchemaError, "cannot name a table"),
    ("db.create_view('x' * 200, 'select 1 as x')", SchemaError, "cannot name a table"),
    ("db.create_view(7, 'select 1 as x')", SchemaError, "named by text"),
    ("db.create_view('v', 'select 1 as x', policy='sometimes')", SchemaError, "must be one of 'auto'"),
    ("db.create_view('v', 'select 1 as x', sample=0)", SchemaError, "share of the view"),
    ("db.create_view('v', 'select 1 as x', sample=True)", SchemaError, "share of the view"),
    ("db.create_view('v', 'select 1 as x', every='often')", SchemaError, "no time between refreshes"),
    ("db.create_view('v', 'select 1 as x', every=1e-9)", SchemaError, "no time between refreshes"),
    ("db.create_view('v', 'select 1 as x', key='y')", UnknownName, "unknown column 'y'"),
    ("db.create_view('v', 'select 1 as x', key=['x', 'X'])", SchemaError, "names a column twice"),
    ("db.create_view('v', 'select shop from sales', key='shop')", SchemaError, "no key"),
    ("db.create_view('v', 'select 1 as x', there='maybe')", SchemaError, "must be 'error'"),
    ("db.view('sales')", UnknownName, "unknown view 'sales'"),
    ("db.view(None)", UnknownName, "unknown view"),
    ("db.drop_view('nothing')", UnknownName, "unknown view 'nothing'"),
    ("db.explain_view('select')", NearlyError, "nothing to select"),
    ("db.insert('totals', [{'shop': 'a'}])", SchemaError, "is a view"),
    ("db.delete('totals', where='true')", SchemaError, "is a view"),
    ("db.execute('update totals set total = 1')", SchemaError, "is a view"),
    ("db.register('totals', path)", SchemaError, "is a view"),
    ("db.drop('totals')", SchemaError, "is a view"),
    ("db.drop('sales')", SchemaError, "needed by view 'totals'"),
    ("db.execute('create view v as select 1 as x')", NearlyError, "CREATE MATERIALIZED VIEW"),
    ("db.execute('refresh materialized view')", NearlyError, "needs the name"),
    ("db.execute('drop materialized view totals cascade')", NearlyError, "was not expected"),
    ("db.execute('create materialized view v select 1 as x')", NearlyError, "AS and a query"),
    ("db.create_view('totals', 'select * from totals', there='replace')", SchemaError, "made of itself"),
    ("db.sql('select count(*) as n from shops', using='totals').exact()", Unsupported, "made of other tables"),
    ("db.create_synopsis('y', table='totals', measure='total', on=['n'])", Unsupported, "keeps more than it shows"),
])  # fmt: skip
def test_bad_input(db: nearly.Session, tmp_path: Path, code: str, kind: type[NearlyError], message: str) -> None:
    db.create_view("totals", TOTALS)
    with pytest.raises(kind, match=message.replace("(", r"\(")):
        eval(code, {"db": db, "path": str(tmp_path / "sales.parquet")})
    assert db.views == ("totals",)
    assert rows(db, "select * from totals") == rows(db, TOTALS, kernel="native")


def test_a_closed_session_refuses(db: nearly.Session) -> None:
    view = db.create_view("totals", TOTALS)
    db.close()
    for use in (view.refresh, lambda: view.stale, lambda: db.views, lambda: db.create_view("w", TOTALS)):
        with pytest.raises(EngineError, match="closed"):
            use()


def test_names_of_any_script_and_odd_columns(db: nearly.Session) -> None:
    text = "select shop as `_count`, count(*) as `größe`, sum(price) as `a b` from sales group by shop having count(*) > 1"
    view = db.create_view("größen_日本", text)
    db.insert("sales", [{"id": 6, "shop": None, "price": 7}])
    view.refresh()
    assert rows(db, "select `_count`, `größe`, `a b` from `größen_日本`") == rows(db, text, kernel="native")


def test_explanations(db: nearly.Session) -> None:
    told = db.explain_view("select shop, median(price) as m from sales group by shop order by m limit 2")
    assert "touched keys" in told
    assert "NOT_MERGEABLE" in told
    assert "LIMIT" not in told.partition("read by:")[0]
    view = db.create_view("totals", TOTALS)
    assert view.explain().startswith("maintained: from the rows that changed\nstored: shop, total, n, _count; key shop")


def test_export_writes_what_is_seen(db: nearly.Session, tmp_path: Path) -> None:
    db.create_view("best", "select shop, avg(price) as m from sales group by shop having count(*) > 1")
    found = pq.read_table(db.export("best", tmp_path / "out"), partitioning=None)
    assert sorted(found.to_pylist(), key=str) == rows(db, "select * from best")


def test_a_transaction_refuses_views(db: nearly.Session) -> None:
    view = db.create_view("totals", TOTALS)
    with pytest.raises(EngineError, match="transaction is open"), db.transaction():
        view.refresh()


def test_rows_that_tie_in_a_window_are_numbered_once(tmp_path: Path) -> None:
    """Of so many rows engines read some in another order each time; a changed partition must not be a mixture of two orders."""
    count, make = 200_000, np.random.default_rng(1)
    table = pa.table({"id": make.permutation(count), "g": make.integers(0, 500, count), "x": make.integers(0, 3, count)})
    pq.write_table(table, tmp_path / "rows.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", str(tmp_path / "rows.parquet"), key=["id"])
        view = db.create_view(
            "numbered", "select id, g, row_number() over (partition by g order by x) as n from t", policy="incremental"
        )
        db.delete("t", where="id % 1000 = 7")
        view.refresh()
        assert view.history[0].strategy == "touched keys"
        wrong = "select g from numbered group by g having count(*) <> count(distinct n) or count(*) <> max(n)"
        assert rows(db, wrong) == []


def test_sums_of_doubles_that_tell_rows_apart_leave_no_old_rows_behind(tmp_path: Path) -> None:
    """The last digits of so many doubles hang on the order of addition: old sums, computed again, are not those stored."""
    count, make = 300_000, np.random.default_rng(1)
    table = pa.table({"id": make.permutation(count), "g": make.integers(0, 500, count), "x": make.random(count)})
    pq.write_table(table, tmp_path / "rows.parquet")
    text = "select g, sum(x) as s from t group by g"
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", str(tmp_path / "rows.parquet"), key=["id"])
        united = db.create_view("united", f"select s from ({text}) union select 0.0D")
        highest = db.create_view("highest", f"select g % 7 as h, max(s) as m, count(*) as n from ({text}) group by g % 7")
        for number in range(2):
            db.delete("t", where=f"id % 1000 = {number}")
            united.refresh()
            highest.refresh()
            assert rows(db, "select count(*) as n from united") == [{"n": 501}]
            expected = rows(db, f"select max(s) as m from ({text})", kernel="native")
            assert rows(db, "select max(m) as m from highest")[0]["m"] == pytest.approx(expected[0]["m"], rel=1e-9)
        assert "DOUBLES_AS_KEYS" in united.history[0].reason
        assert "DOUBLES_AS_KEYS" in db.explain_view(highest.text)


def test_names_that_changes_need(db: nearly.Session, tmp_path: Path) -> None:
    odd = pa.table({"id": [1, 2], "Nearly_Weight": [3, 4], "_weight": [5, 6], "_change_type": ["a", "b"]})
    pq.write_table(odd, tmp_path / "odd.parquet")
    db.register("odd", str(tmp_path / "odd.parquet"), key=["id"])
    with pytest.raises(Unsupported, match="'nearly_weight'"):
        db.create_view("weights", "select id from odd")
    with pytest.raises(Unsupported, match="'nearly_weight'"):
        db.create_view("weights", "select id as nearly_weight from sales")
    with pytest.raises(Unsupported, match="'_change_type'"):
        db.changes("odd", 1)
    view = db.create_view("weights", "select shop, sum(price) as _weight from sales group by shop", sample=0.5)
    db.insert("sales", [{"id": 6, "shop": "c", "price": 7}])
    assert list(view.query("select sum(_weight) as w from weights"))[-1].table["w"].to_pylist() == [157]
    assert rows(db, "select _weight from weights where shop = 'c'") == [{"_weight": 7}]


def test_columns_of_large_tables_have_any_names(tmp_path: Path) -> None:
    """Of a large table rows are read by their keys, in SQL whose own names must not be those of columns."""
    count = 120_000
    numbers = np.arange(count)
    table = pa.table({"w": numbers % 7 - 3, "k": numbers // 6, "s": numbers % 6, "n": numbers % 2, "o": numbers % 4})
    pq.write_table(table, tmp_path / "rows.parquet")
    inner = "select k, s, n, o, count(distinct w) as m from t group by k, s, n, o"
    text = f"select k, count(*) as c, sum(m) as total from ({inner}) group by k"
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", str(tmp_path / "rows.parquet"))
        view = db.create_view("v", text, policy="incremental")
        db.delete("t", where="k in (5, 700) and s > 2")
        db.insert("t", [{"w": 50, "k": 5, "s": 1, "n": 1, "o": 1}])
        view.refresh()
        assert rows(db, "select * from v where k in (5, 700)") == rows(db, f"{text} having k in (5, 700)", kernel="native")


def test_averages_of_whole_numbers_whose_sum_passes_their_range(db: nearly.Session) -> None:
    huge = 9_000_000_000_000_000_000
    text = "select shop, avg(price) as mean, avg(price) filter (where id > 2) as late from sales group by shop"
    view = db.create_view("means", text, policy="incremental")
    both = db.create_view("both", "select shop, avg(price) as mean, sum(id) as ids from sales group by shop", policy="incremental")
    kept = [{"id": 10 + place, "shop": shop, "price": huge - place} for place, shop in enumerate("aaabb")]
    steps = (
        lambda: db.insert("sales", kept),
        lambda: db.insert("sales", [{"id": 20, "shop": "c", "price": -huge}, {"id": 21, "shop": "c", "price": -huge}]),
        lambda: db.execute("update sales set price = -price where id in (11, 12)"),
        lambda: db.delete("sales", where="id between 10 and 14"),
    )
    for step in steps:
        step()
        for each, asked in ((view, text), (both, "select shop, avg(price) as mean, sum(id) as ids from sales group by shop")):
            each.refresh()
            assert each.history[0].strategy != "whole"
            name = each.table.name
            for mine, right in zip(rows(db, f"select * from {name}"), rows(db, asked, kernel="native"), strict=True):
                assert mine.keys() == right.keys()
                assert [pytest.approx(value, rel=1e-12) if isinstance(value, float) else value for value in right.values()] == [
                    *mine.values()
                ]
    db.insert("sales", kept)
    view.refresh()
    whole = db.sql("select avg(price) as mean from sales", using="means").exact()
    assert whole.source == "view means"
    assert whole.table["mean"][0].as_py() == pytest.approx((150 + 5 * huge - 10 - 2 * huge) / 12, rel=1e-12)


def test_sums_from_averages_and_averages_from_sums(db: nearly.Session) -> None:
    db.create_view("means", "select shop, avg(price) as mean from sales group by shop")
    found = db.sql("select sum(price) as s from sales", using="means").exact()
    assert (found.source, found.table["s"].to_pylist()) == ("view means", [150])
    db.drop_view("means")
    db.create_view("sums", "select shop, sum(price) as s, count(price) as n from sales group by shop")
    found = db.sql("select avg(price) as m from sales", using="sums").exact()
    assert (found.source, found.table["m"].to_pylist()) == ("view sums", [30.0])
