"""Queries with automatic views on can be stopped like any other, whatever they are doing, and lose no view by it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.autoview import listing
from nearly.autoview.making import Making
from nearly.engine.native.running import Stopped
from nearly.errors import EngineError
from tests.autoview.keen import held_still, keen
from tests.fixtures.driver_only import driver_only

LONG = "select count(*) as n from t a, t b, t c where a.v + b.v > c.v"
SECONDS = 20.0


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    pq.write_table(pa.table({"g": [number % 9 for number in range(6000)], "v": list(range(6000))}), tmp_path / "t.parquet")
    with keen(), driver_only(tmp_path / "catalog") as session:
        session.register("t", str(tmp_path / "t.parquet"))
        yield session


def stopped(query: nearly.Query, ask: Callable[[], object], began: threading.Event) -> tuple[object, float]:
    """What comes of a query that is stopped soon after it began, and the seconds until it was over."""
    found: list[object] = []

    def work() -> None:
        try:
            found.append(ask())
        except EngineError as trouble:
            found.append(trouble)

    thread = threading.Thread(target=work)
    thread.start()
    began.wait(SECONDS)
    time.sleep(0.3)
    wished = time.monotonic()
    query.stop()
    thread.join(60)
    assert not thread.is_alive()
    return found[0], time.monotonic() - wished


def event_of_making(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set as soon as a view is being made."""
    began, made = threading.Event(), Making.made

    def told(self: Making, *given: object) -> object:
        began.set()
        return made(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Making, "made", told)
    return began


@pytest.mark.parametrize("making", [False, True])
def test_an_exact_query_is_stopped(db: nearly.Session, monkeypatch: pytest.MonkeyPatch, making: bool) -> None:
    auto = held_still(db.autoview("1MB", policy="lru" if making else "off", slowdown=10))
    began = event_of_making(monkeypatch)
    if not making:
        began.set()
    query = db.sql(LONG)
    outcome, seconds = stopped(query, query.exact, began)
    assert isinstance(outcome, Stopped)
    assert seconds < SECONDS
    assert began.is_set()
    assert not auto.status().views


def test_an_iteration_ends(db: nearly.Session) -> None:
    held_still(db.autoview("1MB", policy="off"))
    db._engine.native.durations.record(db._engine.prepare(LONG).question, 0.001)  # as if no early answer were worth having
    query, began = db.sql(LONG), threading.Event()
    began.set()
    outcome, seconds = stopped(query, lambda: list(query), began)
    assert outcome == []
    assert seconds < SECONDS


def test_a_stop_takes_no_view_away(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    text = "select g, sum(v) as s from t group by g order by g"
    for _ in range(6):
        db.sql(text).exact()
    kept = {each.name for each in auto.status().views}
    query = db.sql(text)
    assert "autoview" in query.exact().source

    def stop(*_: object) -> None:
        query.stop()
        query._ending.refuse()  # type: ignore[union-attr]

    monkeypatch.setattr(type(db._engine.native), "run", stop)
    with pytest.raises(Stopped):
        query.exact()
    assert {each.name for each in auto.status().views} == kept


@pytest.mark.parametrize("end", ["off", "again", "close"])
def test_nobody_waits_for_a_view_that_is_made_for_long(db: nearly.Session, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    """Its query goes on without, if the session does."""
    auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    ends: dict[str, Callable[[], object]] = {"off": auto.off, "again": lambda: db.autoview("2MB", policy="off"), "close": db.close}
    began, query = event_of_making(monkeypatch), db.sql(LONG)

    def ask() -> None:
        with suppress(EngineError):
            query.exact()

    asking = threading.Thread(target=ask)
    asking.start()
    assert began.wait(SECONDS)
    time.sleep(0.3)
    wished = time.monotonic()
    ends[end]()
    seconds = time.monotonic() - wished
    assert asking.is_alive() or end == "close"
    query.stop()
    asking.join(60)
    assert not asking.is_alive()
    assert seconds < SECONDS / 2


def test_what_waits_to_be_made_ends_with_automatic_views(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever settles meanwhile is not kept busy with it for ever, and writes no list of views that may be another session's."""
    auto, text = held_still(db.autoview("1MB", policy="lru", slowdown=10)), "select g, sum(v) as s from t group by g"
    monkeypatch.setattr(Making, "fits", lambda *_: False)
    db.sql(text).exact()
    assert auto.keeping.deferred
    turn, saved = auto._worker._turn, list[object]()

    def after_the_end(may_work: Callable[[], bool]) -> bool:
        auto.close()
        monkeypatch.setattr(listing, "save", saved.append)
        return turn(may_work)

    monkeypatch.setattr(auto._worker, "_turn", after_the_end)
    settling = threading.Thread(target=auto.settle, daemon=True)
    settling.start()
    settling.join(SECONDS)
    assert not settling.is_alive()
    assert not saved
