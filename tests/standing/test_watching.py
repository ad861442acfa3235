"""Whoever is told of changes may block, fail or ask for more: it holds up neither the session nor other queries."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.errors import NearlyError
from nearly.standing import catalogue, watching
from nearly.standing.watching import difference
from tests.standing.test_standing import TEXT, expected, opened, orders, shown

COUNT = "select count(*) as n from orders"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    made = opened(tmp_path)
    yield made
    made.close()


def until(test: Any, seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not test() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(test())


def test_a_watcher_that_blocks_holds_up_nobody(db: nearly.Session) -> None:
    called, go_on = threading.Event(), threading.Event()

    def block(*_: object) -> None:
        called.set()
        go_on.wait(60)

    blocked = db.standing(TEXT, rows=1, on_change=block)
    other = db.standing(COUNT, rows=1)
    db.insert("orders", orders(1000, 3))
    assert called.wait(20)
    db.insert("orders", orders(1003, 3))
    assert until(lambda: other.answer.table.to_pylist() == [{"n": 1006}])
    assert until(lambda: shown(blocked.answer) == expected(db))
    began = time.monotonic()
    assert blocked.status().error is None
    db.standing("select max(id) as m from orders")
    blocked.stop()
    db.close()
    assert time.monotonic() - began < 15
    go_on.set()


def test_answers_are_told_in_their_order_and_none_after_the_end(db: nearly.Session) -> None:
    told: list[int] = []
    go_on = threading.Event()

    def note(answer: nearly.Answer, _: object) -> None:
        told.append(answer.table.to_pylist()[0]["n"])
        go_on.wait(20)

    s = db.standing(COUNT, rows=1, on_change=note)
    db.insert("orders", orders(1000, 1))
    assert until(lambda: told == [1001])
    for number in (1001, 1002):
        db.insert("orders", orders(number, 1))
        s.refresh()
    go_on.set()
    assert until(lambda: told == [1001, 1002, 1003])
    s.stop()
    db.insert("orders", orders(1003, 1))
    assert told == [1001, 1002, 1003]


@pytest.mark.parametrize("trouble", [ValueError("x"), SystemExit(3)], ids=repr)
def test_a_watcher_that_fails_ends_nothing(trouble: BaseException, db: nearly.Session) -> None:
    def fail(*_: object) -> None:
        raise trouble

    s = db.standing(TEXT, rows=1, on_change=fail)
    for first in (1000, 1010):
        db.insert("orders", orders(first, 10))
        assert until(lambda: shown(s.answer) == expected(db))
    db.insert("orders", orders(1020, 1))
    assert shown(s.refresh()) == expected(db)


def test_a_predictor_that_exits_ends_nothing(db: nearly.Session) -> None:
    calls: list[int] = []

    def predict(*_: object) -> dict[str, float]:
        calls.append(1)
        if len(calls) > 1:
            raise SystemExit(3)
        return {"orders": 5}

    pair = db.standing(TEXT, rows=1, arrivals=predict), db.standing(COUNT, rows=1)
    for first in (1000, 1010):
        db.insert("orders", orders(first, 10))
        assert until(lambda: shown(pair[0].answer) == expected(db))
        assert until(lambda first=first: pair[1].answer.table.to_pylist() == [{"n": first + 10}])
    assert len(calls) > 1


@pytest.mark.parametrize("trouble", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_what_would_end_a_thread_is_told_to_whoever_waits(
    trouble: BaseException, db: nearly.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise trouble

    s = db.standing(COUNT, rows=1)
    with monkeypatch.context() as patch:
        patch.setattr(catalogue, "refresh_all", refuse)
        db.insert("orders", orders(1000, 1))
        assert until(lambda: s.error is not None)
        answers = iter(s)
        next(answers)
        with pytest.raises(NearlyError, match=type(trouble).__name__):
            next(answers)
    assert until(lambda: s.answer.table.to_pylist() == [{"n": 1001}])


def test_a_look_that_fails_is_not_the_last_one(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = threading.Event()

    def refuse(_: object) -> None:
        failed.set()
        raise OSError

    s = db.standing(COUNT, rows=1)
    with monkeypatch.context() as patch:
        patch.setattr(catalogue.StandingQueries, "_leave_forgotten", refuse)
        assert failed.wait(20)
    db.insert("orders", orders(1000, 1))
    assert until(lambda: s.answer.table.to_pylist() == [{"n": 1001}])


def test_a_thread_that_ended_is_begun_again(db: nearly.Session) -> None:
    s = db.standing(COUNT, rows=1)
    queries = db._rooms.standing
    queries._closed = True  # the thread takes it for the end
    queries._wake.set()
    assert queries._thread is not None
    queries._thread.join(20)
    queries._closed = False
    db.insert("orders", orders(1000, 1))
    db.standing("select max(id) as m from orders", rows=1)
    assert until(lambda: s.answer.table.to_pylist() == [{"n": 1001}])


def test_a_watcher_may_ask_for_more(db: nearly.Session) -> None:
    """It starts, refreshes and stops queries, and at last closes the session that calls it."""
    done = threading.Event()

    def ask(answer: nearly.Answer, _: object) -> None:
        more = db.standing("select max(id) as m from orders")
        assert more.refresh().table.to_pylist() == [{"m": 1002}]
        more.stop()
        s.stop()
        assert answer.exact
        db.close()
        done.set()

    s = db.standing(TEXT, rows=1, on_change=ask)
    db.insert("orders", orders(1000, 3))
    assert done.wait(20)
    assert s.is_over


def test_what_is_sent_is_json_and_an_odd_reply_no_trouble(db: nearly.Session, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.0, 2.0]}), tmp_path / "numbers.parquet")
    db.register("numbers", str(tmp_path / "numbers.parquet"))
    told: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.wfile.write(b"no reply at all\r\n\r\n")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    s = db.standing("select x from numbers", on_change=f"http://127.0.0.1:{server.server_port}/")
    db.insert("numbers", pa.table({"x": [float("nan"), float("-inf"), 0.5]}))
    s.refresh()

    def refuse(name: str) -> None:
        raise AssertionError(f"JSON has no {name}")

    assert sorted(str(row["x"]) for row in json.loads(told[0], parse_constant=refuse)["came"]) == ["-Infinity", "0.5", "NaN"]
    server.shutdown()
    server.server_close()


def test_an_address_that_replies_a_little_at_a_time_holds_up_nobody(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "PATIENCE", 0.5)
    go_on, told = threading.Event(), list[str]()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(self.path)
            while not go_on.wait(0.1):
                self.wfile.write(b"HTTP/1.1 200 OK\r\n" if len(told) == 1 else b"Header: x\r\n")
                told.append("more")
            self.wfile.write(b"\r\n")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    s = db.standing(COUNT, on_change=f"http://127.0.0.1:{server.server_port}/")
    began = time.monotonic()
    for step in range(2):
        db.insert("orders", orders(1000 + step, 1))
        s.refresh()
    assert time.monotonic() - began < 5
    assert told.count("/") == 1
    go_on.set()
    assert until(lambda: not any(each.name == "nearly-standing-sends" for each in threading.enumerate()))
    db.insert("orders", orders(1002, 1))
    s.refresh()
    assert told.count("/") == 2
    server.shutdown()
    server.server_close()


def test_answers_with_other_columns_differ_in_all_rows() -> None:
    before, after = pa.table({"a": [1, 2]}), pa.table({"a": [1, 2], "b": ["x", "y"]})
    found = difference(before, after)
    assert (found.came.num_rows, found.went.num_rows) == (2, 2)
