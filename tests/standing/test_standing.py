"""Standing queries as users have them: answers that come by themselves, status, ends, restarts, and bad input. Without Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.engine import Engine
from nearly.engine.planner import Prepared
from nearly.engine.storage.layouts import Table
from nearly.errors import NearlyError, SchemaError, UnknownName
from nearly.standing import maintained, refresh, standing
from nearly.standing.arrivals import Geometric, Lateness
from nearly.standing.watching import Difference
from tests.fixtures.driver_only import driver_only

TEXT = "select c.region, count(*) as n, sum(o.price) as total from orders o join customers c on o.customer = c.id group by c.region"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    made = opened(tmp_path)
    yield made
    made.close()


def opened(path: Path) -> nearly.Session:
    made = driver_only(path / "catalog")
    if not made.tables:
        pq.write_table(customers(), path / "customers.parquet")
        pq.write_table(orders(0, 1000), path / "orders.parquet")
        made.register("customers", str(path / "customers.parquet"), key=["id"])
        made.register("orders", str(path / "orders.parquet"), key=["id"])
    return made


def customers() -> pa.Table:
    return pa.table({"id": range(100), "region": [f"r{each % 5}" for each in range(100)]})


def orders(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": ids, "customer": [each % 100 for each in ids], "price": [each % 7 for each in ids]})


def expected(db: nearly.Session) -> list[Any]:
    return sorted(map(str, db.sql(TEXT).exact().table.to_pylist()))


def shown(answer: nearly.Answer) -> list[Any]:
    return sorted(map(str, answer.table.to_pylist()))


def test_answers_are_exact_for_the_versions_they_name(db: nearly.Session) -> None:
    s = db.standing(TEXT)
    assert s.answer.exact
    assert shown(s.answer) == expected(db)
    before = shown(s.answer)
    db.insert("orders", orders(1000, 50))
    assert shown(s.answer) == before
    found = s.refresh()
    assert shown(found) == expected(db)
    assert found.stats["versions"] == {"orders": db.table("orders").info.version, "customers": db.table("customers").info.version}
    db.delete("orders", where="id < 100")
    db.update("customers", {"region": "'r9'"}, "id = 3")
    assert shown(s.refresh()) == expected(db)
    assert "refreshed" in str(s.status())
    assert "rows" in s.explain()
    assert s.refresh() is s.answer


def test_answers_come_after_so_many_rows(db: nearly.Session) -> None:
    s = db.standing(TEXT, rows=20)
    answers = iter(s)
    next(answers)
    db.insert("orders", orders(1000, 10))
    db.insert("orders", orders(1010, 10))
    assert shown(next(answers)) == expected(db)
    s.stop()
    assert list(answers) == []
    assert db.standings == ()


def test_answers_come_every_so_often(db: nearly.Session) -> None:
    seen: list[nearly.Answer] = []
    done = threading.Event()

    def notice(answer: nearly.Answer, changed: Difference) -> None:
        assert changed.came.num_rows
        seen.append(answer)
        done.set()

    s = db.standing(TEXT, every="100ms", on_change=notice)
    db.insert("orders", orders(1000, 1))
    assert done.wait(20)
    assert shown(seen[-1]) == expected(db)
    s.stop()


def test_it_ends_when_all_is_complete(db: nearly.Session) -> None:
    s = db.standing(TEXT, every="50ms")
    s.complete("customers")
    db.insert("orders", orders(1000, 5))
    s.complete("orders")
    answers = list(s)
    assert shown(answers[-1]) == expected(db)
    assert s.is_over
    with pytest.raises(NearlyError, match="over"):
        s.refresh()
    assert db.standings == ()


def test_it_ends_when_the_predictor_says_so(db: nearly.Session) -> None:
    s = db.standing(TEXT, every="50ms", arrivals=Geometric({"orders": 1010}, p=0.9))
    assert not s.is_over
    db.insert("orders", orders(1000, 10))
    assert shown(list(s)[-1]) == expected(db)
    assert s.is_over


def test_it_goes_on_in_another_session(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        first.standing(TEXT, name="regions", every="1 hour", memory="64MB", arrivals={"orders": 5})
        first.insert("orders", orders(1000, 5))
    with opened(tmp_path) as second:
        assert second.standings == ("regions",)
        s = second.standing(name="regions")
        assert s.policy.every == 3600
        assert s.budget.memory == 64 << 20
        assert shown(s.answer) == expected(second)
        assert {name: each.rows for name, each in s.status().prediction.items()} == {"orders": 5 * 3600}
        second.insert("orders", orders(1005, 5))
        assert shown(s.refresh()) == expected(second)
        assert second.standing(name="REGIONS") is s
        second.drop_standing("regions")
        assert s.is_over


def test_an_address_is_told_what_changed(db: nearly.Session) -> None:
    told: list[bytes] = []
    done = threading.Event()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            done.set()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    s = db.standing(TEXT, on_change=f"http://127.0.0.1:{server.server_port}/")
    db.insert("orders", orders(1000, 1))
    s.refresh()
    assert done.wait(10)
    assert b'"came"' in told[0]
    server.shutdown()
    server.server_close()


def test_two_queries_stand_side_by_side(db: nearly.Session) -> None:
    pair = [db.standing(TEXT, rows=5), db.standing(TEXT.replace("count(*)", "max(o.price)"), rows=5)]
    iterators = [iter(each) for each in pair]
    for each in iterators:
        next(each)
    db.insert("orders", orders(1000, 10))
    for one, answers in zip(pair, iterators, strict=True):
        next(answers)
        assert shown(one.answer) == sorted(map(str, db.sql(one.text).exact().table.to_pylist()))


def test_predictors_of_numpy_numbers_are_kept(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        first.standing(TEXT, name="late", arrivals=Lateness(np.array([1.0, 2.0]), {"orders": np.int64(5000)}))
    with opened(tmp_path) as second:
        assert second.standing(name="late").forecast.predictor == Lateness([1.0, 2.0], {"orders": 5000.0})


def test_a_predictor_that_fails_costs_no_answer(db: nearly.Session) -> None:
    calls: list[int] = []

    def predict(*_: object) -> dict[str, float]:
        calls.append(1)
        if len(calls) > 1:
            raise ZeroDivisionError
        return {"orders": 5}

    s = db.standing(TEXT, arrivals=predict)
    db.insert("orders", orders(1000, 5))
    assert shown(s.refresh()) == expected(db)
    with pytest.raises(ZeroDivisionError):
        db.standing("select count(*) as n from orders", arrivals=predict)
    assert len(db.standings) == 1


def test_a_query_that_cannot_be_kept_does_not_run(db: nearly.Session, tmp_path: Path) -> None:
    (tmp_path / "catalog" / "standing").write_text("no directory")
    with pytest.raises(NearlyError):
        db.standing(TEXT, name="kept")
    (tmp_path / "catalog" / "standing").unlink()
    assert shown(db.standing(TEXT, name="kept").answer) == expected(db)


def test_stopping_it_in_one_session_stops_it_in_all(tmp_path: Path) -> None:
    with opened(tmp_path) as first, opened(tmp_path) as second:
        s = first.standing(TEXT, name="regions", rows=1)
        second.drop_standing("regions")
        assert len(list(s)) == 1
        assert s.is_over
        second.insert("orders", orders(1000, 5))
        assert first.standings == second.standings == ()


def test_a_dropped_table_is_told(db: nearly.Session) -> None:
    s = db.standing(TEXT)
    db.drop("orders")
    with pytest.raises(UnknownName):
        s.refresh()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"every": "soon"}, SchemaError),
        ({"rows": 0}, SchemaError),
        ({"memory": "much"}, SchemaError),
        ({"disk": "-1GB"}, SchemaError),
        ({"memory": "9" * 400}, SchemaError),
        ({"disk": "9" * 400 + "GB"}, SchemaError),
        ({"arrivals": {"nowhere": 1}}, SchemaError),
        ({"arrivals": Geometric({"nowhere": 1})}, SchemaError),
        ({"on_change": "ftp://x"}, SchemaError),
        ({"on_change": 3}, SchemaError),
        ({"name": "no name"}, SchemaError),
        ({"name": 5}, SchemaError),
    ],
)
def test_bad_options(options: dict[str, Any], error: type[NearlyError], db: nearly.Session) -> None:
    with pytest.raises(error):
        db.standing(TEXT, **options)
    assert db.standings == ()


def test_bad_requests(db: nearly.Session) -> None:
    with pytest.raises(SchemaError):
        db.standing()
    with pytest.raises(UnknownName):
        db.standing(name="nobody")
    with pytest.raises(NearlyError):
        db.standing("select * from nowhere")
    s = db.standing(TEXT, name="one")
    with pytest.raises(SchemaError, match="already"):
        db.standing(TEXT, name="one")
    for table in ("nowhere", None, 5):
        with pytest.raises(UnknownName):
            s.complete(table)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="more than any machine has"):
        db.autoview("9" * 400)
    with pytest.raises(UnknownName):
        db.drop_standing("two")


def test_an_answer_that_hangs_on_the_time_is_computed_again(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though nothing came: Spark is what answers it, here another query in its place."""
    prepared, asked = maintained.prepared_over, list[int]()

    def instead(engine: Engine, text: str, tables: Iterable[Table]) -> Prepared:
        if "now()" in text:
            asked.append(1)
            text = f"select {len(asked)} as n from customers limit 1"
        return prepared(engine, text, tables)

    for module in (maintained, refresh, standing):
        monkeypatch.setattr(module, "prepared_over", instead)
    s, other = db.standing("select now() as n from customers limit 1", every="50ms"), db.standing(TEXT, every="50ms")
    answers = iter(s)
    found = [next(answers).table["n"].to_pylist()[0] for _ in range(3)]
    assert found == sorted(set(found))
    assert s.refresh().table["n"].to_pylist()[0] > found[-1]
    assert len(other.history) == 1
    s.stop()


def test_a_closed_session_ends_it(tmp_path: Path) -> None:
    db = opened(tmp_path)
    s = db.standing(TEXT, every="50ms")
    answers = iter(s)
    next(answers)
    db.close()
    assert list(answers) == []
    with pytest.raises(NearlyError, match="closed"):
        s.refresh()
