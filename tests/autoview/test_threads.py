"""Queries of several threads, the worker, and whoever asks for the status or saves the list, at once."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.autoview import listing
from nearly.autoview.experiments import Experiment, Experiments, Outcome, Side
from nearly.autoview.mining import Fact
from nearly.plan.nodes import Scan
from tests.autoview.keen import held_still, keen
from tests.fixtures.driver_only import driver_only

SECONDS = 0.7


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    pq.write_table(pa.table({"g": [number % 9 for number in range(3000)], "v": list(range(3000))}), tmp_path / "t.parquet")
    with keen(), driver_only(tmp_path / "catalog") as session:
        session.register("t", str(tmp_path / "t.parquet"))
        yield session


def at_once(*works: Callable[[int], object]) -> list[BaseException]:
    """Do several things over and over for a while, each in a thread; what went wrong."""
    troubles: list[BaseException] = []
    until = time.monotonic() + SECONDS

    def go(work: Callable[[int], object]) -> None:
        number = 0
        try:
            while time.monotonic() < until:
                work(number := number + 1)
        except Exception as trouble:  # noqa: BLE001  it is what is looked for
            troubles.append(trouble)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=go, args=(work,)) for work in works]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(before)
    return troubles


def _experiment(number: int) -> Experiment:
    side = Side(Scan("t", ()), ())
    return Experiment(f"q{number % 300}", f"v{number % 40}", side, side, frozenset({f"v{number % 40}"}))


def test_experiments_are_queued_flushed_and_taken_at_once(db: nearly.Session) -> None:
    queue = Experiments(db._engine)
    for number in range(256):
        queue.add(_experiment(number))
    works = (lambda n: queue.add(_experiment(n)), lambda n: queue.flush(f"v{n % 40}"), lambda _: queue.next())
    assert at_once(*works, *works) == []


def test_the_list_is_saved_and_told_of_while_things_are_learned(db: nearly.Session) -> None:
    auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    for _ in range(3):
        db.sql("select g, sum(v) as s from t where v > 9 group by g").exact()
    keeping = auto.keeping
    assert auto.status().views

    def learn(number: int) -> None:
        keeping.mining.facts[f"view {number}"] = Fact(1, 1, 0.1)
        keeping.learn(Outcome(_experiment(number), 0.1, 0.2))

    assert at_once(learn, lambda _: listing.save(keeping), lambda _: str(auto.status())) == []


def test_a_worker_that_meets_trouble_goes_on(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    auto = db.autoview("1MB", policy="lru", slowdown=10)
    met = threading.Event()
    again = threading.Event()

    def fail() -> bool:
        (again if met.is_set() else met).set()
        raise ZeroDivisionError

    monkeypatch.setattr(auto._worker, "work", fail)
    assert met.wait(20)
    assert again.wait(20)
