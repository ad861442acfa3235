"""Before a refresh that takes long, whoever iterates is given an estimate, and then the exact answer of the same versions."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.progressive.run import Run
from nearly.standing import refresh
from nearly.standing.standing import Standing
from tests.fixtures.driver_only import driver_only

ROWS = 300_000


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> nearly.Session:
    monkeypatch.setattr(refresh, "LONG", 0.0)
    random = np.random.default_rng(3)
    values = pa.table({"id": np.arange(ROWS), "g": random.integers(0, 4, ROWS), "x": random.integers(0, 1000, ROWS)})
    pq.write_table(values, tmp_path / "t.parquet", row_group_size=10_000)
    session = driver_only(tmp_path / "catalog", eager=True)
    session.register("t", str(tmp_path / "t.parquet"), key=["id"])
    return session


def _held_up(made: Standing) -> threading.Event:
    """Refreshes wait after their estimate until this is set."""
    gate, early = threading.Event(), made._upkeep.early
    assert early is not None

    def shown(tables: dict[str, object]) -> None:
        early(tables)  # type: ignore[arg-type]
        gate.wait(60)

    made._upkeep.early = shown  # type: ignore[assignment]
    return gate


def test_an_estimate_comes_before_the_exact_answer(db: nearly.Session) -> None:
    with db:
        made = db.standing("select g, sum(x) as s, count(*) as n from t group by g order by g", memory="0B")
        answers = iter(made)
        first = next(answers)
        assert first.exact
        gate = _held_up(made)
        db.insert("t", [{"id": ROWS + number, "g": number % 4, "x": 10_000} for number in range(2_000)])
        worker = threading.Thread(target=made.refresh)
        worker.start()
        estimate = next(answers)
        assert made.answer is first
        gate.set()
        exact = next(answers)
        worker.join()
    assert (estimate.exact, estimate.source, estimate.stats["refresh"]) == (False, "standing", "early")
    assert estimate.stats["versions"] == exact.stats["versions"] != first.stats["versions"]
    assert exact.exact
    assert 0 < estimate.progress < 1
    assert estimate.error > 0
    assert estimate.table.num_rows == exact.table.num_rows
    assert None not in estimate.hard_low.column("n").to_pylist()
    for name in ("s", "n"):
        sides = zip(estimate.hard_low.column(name).to_pylist(), exact.table.column(name).to_pylist(), strict=True)
        assert all(low is None or low <= value for low, value in sides)


def test_nobody_who_iterates_no_estimate(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("an estimate that nobody looks at")

    monkeypatch.setattr(Run, "early", refuse)
    with db:
        made = db.standing("select sum(x) as s from t", memory="0B")
        db.insert("t", [{"id": ROWS, "g": 1, "x": 5}])
        before = made.answer
        assert made.refresh() is not before


def test_an_estimate_that_fails_leaves_the_refresh_alone(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise nearly.NearlyError("no")

    monkeypatch.setattr(Run, "early", fail)
    with db:
        made = db.standing("select sum(x) as s from t", memory="0B")
        answers = iter(made)
        next(answers)
        db.insert("t", [{"id": ROWS, "g": 1, "x": 5}])
        made.refresh()
        assert next(answers).exact


def test_stopping_waits_for_no_refresh(db: nearly.Session) -> None:
    with db:
        made = db.standing("select sum(x) as s from t", memory="0B")
        answers = iter(made)
        next(answers)
        gate = _held_up(made)
        db.insert("t", [{"id": ROWS, "g": 1, "x": 5}])
        worker = threading.Thread(target=made.refresh)
        worker.start()
        next(answers)
        made.stop()
        assert worker.is_alive()
        assert list(answers) == []
        gate.set()
        worker.join()
        assert made.is_over
        assert db.standings == ()


def test_a_refresh_that_fails_takes_its_estimate_back(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise nearly.EngineError("the disk is gone")

    with db:
        made = db.standing("select sum(x) as s from t", memory="0B")
        answers = iter(made)
        first = next(answers)
        db.insert("t", [{"id": ROWS, "g": 1, "x": 5}])
        monkeypatch.setattr(refresh, "_as_a_whole", fail)
        with pytest.raises(nearly.EngineError, match="the disk"):
            made.refresh()
        assert next(iter(made)) is first
        assert made.answer is first
