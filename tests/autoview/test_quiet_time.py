"""What is done when it is quiet: without Spark, and only as long as nobody asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.autoview import upkeep, worker
from nearly.autoview.autoview import AutoView
from nearly.autoview.estimates import ViewEstimates
from nearly.autoview.experiments import Experiment, Experiments, Side
from nearly.autoview.store import MadeView, NoRoom, ViewStore
from nearly.engine.deltas.stages import StageRunner
from nearly.engine.native.failures import NativeFailure
from nearly.engine.spark.spark_kernel import SparkKernel
from nearly.plan.nodes import Scan
from tests.autoview.keen import held_still, keen
from tests.fixtures.driver_only import driver_only

LOUD = "select upper(s) as u, count(*) as n, sum(v) as t from t group by upper(s)"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    rows = {"id": list(range(3000)), "s": ["ab", "cd", "ef"] * 1000, "v": [number % 7 for number in range(3000)]}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet")
    with keen(), driver_only(tmp_path / "catalog") as session:
        session.register("t", str(tmp_path / "t.parquet"), key=["id"])
        yield session


@pytest.fixture
def auto(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> AutoView:
    """Automatic views of which some are there, and follow their tables whatever that takes."""
    monkeypatch.setattr(upkeep, "_expected", lambda *_: 0.0)
    found = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    for _ in range(2):
        db.sql(LOUD).exact()
    found.settle()
    assert found.status().views
    return found


def test_following_a_table_asks_spark_for_nothing(db: nearly.Session, auto: AutoView, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("Spark was asked")

    monkeypatch.setattr(SparkKernel, "run", refuse)
    db.insert("t", [{"id": 3001, "s": "ä", "v": 1}])  # what Spark makes of its capital is for Spark to say
    auto.settle()
    assert not db._engine.cluster.is_up
    assert auto.status().tally.lost
    assert all(each.fits({"t": db._engine.catalog.table("t")}, each.zone) for each in auto.keeping.store.kept.values())


def test_a_query_breaks_off_the_following_of_a_table(db: nearly.Session, auto: AutoView, monkeypatch: pytest.MonkeyPatch) -> None:
    """The view stays, and follows later."""
    kept, run, held = set(auto.keeping.store.kept), StageRunner.run, []

    def broken_off(self: StageRunner, *given: object) -> None:
        held.append(bool(auto._worker._running))
        if len(held) == 1:
            raise NativeFailure("Interrupted!", "InterruptException")
        run(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(StageRunner, "run", broken_off)
    db.insert("t", [{"id": 3001, "s": "ab", "v": 1}])
    auto.settle()
    assert held[0], "whoever interrupts what runs in the background reaches it"
    assert len(held) > 1
    assert set(auto.keeping.store.kept) == kept
    assert auto.status().tally.moved
    assert not auto.status().tally.lost


def test_a_view_that_goes_while_it_follows_a_table_can_be_read_so_long(
    db: nearly.Session, auto: AutoView, monkeypatch: pytest.MonkeyPatch
) -> None:
    following, sound = worker.moved, list[bool]()

    def moved(estimates: ViewEstimates, view: MadeView, *given: Any) -> Any:
        auto.keeping.evict(view.id)
        sound.append(view.is_sound)
        return following(estimates, view, *given)

    monkeypatch.setattr(worker, "moved", moved)
    db.insert("t", [{"id": 3001, "s": "ab", "v": 1}])
    auto.settle()
    assert sound
    assert all(sound)
    assert auto.status().bytes == 0


def test_the_policy_is_told_of_a_view_that_finds_no_room_again(
    db: nearly.Session, auto: AutoView, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise NoRoom

    kept, gone = {each.id for each in auto.keeping.store.kept.values()}, set[str]()
    monkeypatch.setattr(ViewStore, "add", refuse)
    monkeypatch.setattr(auto.keeping.policy, "lost", gone.add)
    db.insert("t", [{"id": 3001, "s": "ab", "v": 1}])
    auto.settle()
    assert gone == kept
    assert auto.status().tally.lost == len(kept)


def test_an_experiment_that_is_broken_off_ends_the_turn(auto: AutoView, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that waits to be made would be made beside the query that broke it off."""
    worker, side, begun = auto._worker, Side(Scan("t", ()), ()), list[str]()
    auto.keeping.experiments.add(Experiment("question", "view", side, side))
    monkeypatch.setattr(Experiments, "run", lambda *_: begun.append("experiment"))
    monkeypatch.setattr(worker, "_make", lambda: begun.append("make"))
    assert worker._turn(lambda: True)
    assert begun == ["experiment"]


def test_an_experiment_that_fails_is_given_up(db: nearly.Session, auto: AutoView) -> None:
    """As the native engine fails on what only Spark can judge."""
    prepared = db._engine.prepare("select 1 div (v - 3) as q from t")
    assert prepared.query is not None
    side = Side(prepared.query.plan, prepared.snapshot)
    auto.keeping.experiments.add(Experiment("question", "view", side, side))
    auto.settle()
    assert not len(auto.keeping.experiments)
    assert ("question", "view") not in auto.keeping.gains


def test_work_ends_between_two_pieces(db: nearly.Session, auto: AutoView, monkeypatch: pytest.MonkeyPatch) -> None:
    worker, begun = auto._worker, list[str]()

    def mine() -> bool:
        begun.append("mine")
        worker._stopping.set()
        return False

    monkeypatch.setattr(worker, "_mine", mine)
    monkeypatch.setattr(worker, "_experiment", lambda: begun.append("experiment"))
    worker._stopping.clear()
    with db._engine.activity.reading():
        assert not worker.work(), "somebody asks"
    assert not begun
    monkeypatch.setattr(db._engine.activity, "_last", -1e9)
    assert not worker.work()
    assert begun == ["mine"]
