"""The log of a query: whatever is retried, a unit counts once."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from nearly.engine.costs import Costs
from nearly.engine.native.durations import Durations
from nearly.engine.stream.result_log import DRIVER, TASK, ResultLog, UnitBatch
from nearly.engine.stream.task import BatchTime, Pace, fixed_cost
from nearly.plan.nodes import Field, Scan
from nearly.plan.schema import TableSchema
from nearly.plan.types import LONG


def _batch(start: int, end: int, value: int = 0) -> UnitBatch:
    return UnitBatch(0, start, end, 0.1, 0, {"stage_1": pa.table({"v": [value]})})


def test_law_what_is_written_is_read(tmp_path: Path) -> None:
    log = ResultLog.create(tmp_path / "q")
    assert log.read(0, 0) is None
    assert log.write(_batch(0, 3, 7))
    found = log.read(0, 0)
    assert found is not None
    assert (found.start, found.end, found.tables["stage_1"]["v"].to_pylist()) == (0, 3, [7])


def test_a_second_attempt_at_a_position_changes_nothing(tmp_path: Path) -> None:
    log = ResultLog.create(tmp_path / "q")
    assert log.write(_batch(0, 3, 1))
    assert not log.write(_batch(0, 5, 2))
    assert log.end(0) == 3
    found = log.read(0, 0)
    assert found is not None
    assert found.tables["stage_1"]["v"].to_pylist() == [1]
    assert [path.name for path in log.path.iterdir()] == ["0-000000.part"]


def test_racing_attempts_make_one_chain(tmp_path: Path) -> None:
    log = ResultLog.create(tmp_path / "q")

    def attempt(step: int) -> None:
        at = 0
        while at < 60:
            log.write(_batch(at, min(at + step, 60)))
            at = log.end(0, at)

    threads = [threading.Thread(target=attempt, args=(step,)) for step in (1, 2, 3, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    at, units = 0, []
    while (batch := log.read(0, at)) is not None:
        units += range(batch.start, batch.end)
        at = batch.end
    assert units == list(range(60))


def test_batches_decided_under_broken_ranges_are_taken_back(tmp_path: Path) -> None:
    log = ResultLog.create(tmp_path / "q")
    for start, version in ((0, 0), (3, 1), (6, 2), (9, 1)):
        log.write(UnitBatch(0, start, start + 3, 0.1, version, {"stage_1": pa.table({"v": [start]})}))
    assert log.forget_after(0, 2) == 0
    assert log.forget_after(0, 1) == 6
    assert log.end(0) == 6
    assert log.read(0, 6) is log.read(0, 9) is None


def test_a_position_is_read_by_one(tmp_path: Path) -> None:
    log = ResultLog.create(tmp_path / "q")
    assert log.claim(0, 0, DRIVER)
    assert not log.claim(0, 0, TASK)
    assert log.claim(0, 0, DRIVER)
    assert log.claim(0, 12, TASK)
    assert not log.claim(0, 12, DRIVER)
    assert not log.ready
    log.say_ready()
    assert log.ready
    log.allow()
    assert not log.ready
    assert log.claim(0, 12, DRIVER)


def test_stop_and_removal(tmp_path: Path) -> None:
    log = ResultLog.create(tmp_path / "q")
    log.ask_to_stop()
    assert log.stopped
    log.allow()
    assert not log.stopped
    log.remove()
    assert log.stopped
    log.ask_to_stop()


def test_pace_grows_until_it_fills_the_cadence() -> None:
    pace = Pace(first=4, growth=2.0, cadence=1.0)
    rows = [100] * 64
    assert pace.end(0, rows, ()) == 4
    assert pace.end(4, rows, [BatchTime(400, 0.1)]) == 12
    assert pace.end(12, rows, [BatchTime(400, 0.5), BatchTime(800, 1.0)]) == 20
    assert Pace(sizes=(5, 1)).end(5, rows, ()) == 6
    assert Pace(sizes=(5, 1)).end(3, rows, ()) == 5
    assert Pace().is_due(1.0, 0.1)
    assert not Pace().is_due(0.1, 1.0)
    assert Pace(sizes=(5, 1)).is_due(0.1, 1.0)


@pytest.mark.parametrize("start", [0, 10, 63])
def test_pace_ends_with_the_units(start: int) -> None:
    rows = [100] * 64
    assert start < Pace().end(start, rows, [BatchTime(10_000, 0.01)] * 2) <= 64


def test_fixed_cost_is_the_intercept() -> None:
    assert fixed_cost([BatchTime(100, 0.6), BatchTime(200, 0.7)]) == pytest.approx(0.5)
    assert fixed_cost([BatchTime(100, 0.6)]) == 0.0


def test_pace_hurries_to_what_is_near() -> None:
    assert Pace(patience=2.0).hurries(1.9)
    assert not Pace(patience=2.0).hurries(2.1)
    assert not Pace(patience=2.0, sizes=(3,)).hurries(0.1)


def test_durations_are_guessed_then_remembered() -> None:
    durations = Durations()
    table = TableSchema("t", (), (), 120_000_000, 10, None, ())
    scan = Scan("t", (Field("a_1", "a", LONG),))
    assert durations.expected("q", scan, lambda _: table, 2) == pytest.approx(Costs().seconds(scan, lambda _: table, 2))
    durations.record("q", 3.0)
    durations.record("q", 5.0)
    assert durations.expected("q", scan, lambda _: table, 2) == 3.0
