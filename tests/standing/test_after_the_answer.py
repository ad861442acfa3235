"""Whatever ends a query between its answer and what is kept after it: answers that come later are right, and nothing stays."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import nearly
from nearly.engine.native.failures import NativeFailure
from nearly.plan.nodes import GroupBy
from nearly.standing import refresh
from nearly.standing import upkeep as upkeeps
from nearly.standing.actions import DISK, Kept
from nearly.standing.standing import Standing
from nearly.standing.states import StateStore
from nearly.standing.upkeep import CHANGE, WHOLE, Upkeep
from tests.processes import environment
from tests.standing.test_standing import TEXT, expected, opened, orders, shown

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def changes_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are small: without this, all would be computed again."""
    monkeypatch.setattr(Upkeep, "expected", lambda *_: 0.0)


@contextmanager
def _answered(s: Standing) -> Iterator[Callable[[], None]]:
    """A refresh in a thread that has its answer, and goes on when the function that is given is called."""
    there, go_on = threading.Event(), threading.Event()
    keep_up = refresh._keep_up

    def wait(*given: object) -> None:
        there.set()
        assert go_on.wait(30)
        keep_up(*given)  # type: ignore[arg-type]

    def run() -> None:
        with pytest.MonkeyPatch.context() as quiet:
            quiet.setattr(refresh, "_keep_up", wait)
            try:
                s.refresh()
            except nearly.NearlyError:  # the session has ended
                assert s.is_over

    worker = threading.Thread(target=run)
    worker.start()

    def end() -> None:
        go_on.set()
        worker.join(30)
        assert not worker.is_alive()

    assert there.wait(30)
    try:
        yield end
    finally:
        end()


def _kept(db: nearly.Session, count: int = 1000) -> Standing:
    """A query with states, whose tables have changed since."""
    s = db.standing(TEXT, name="held", arrivals={"orders": 5})
    for first in (count, count + 5):
        db.insert("orders", orders(first, 5))
        if first == count:
            s.refresh()
    assert s.states
    assert s.history[-1].strategy == CHANGE
    return s


def test_law_it_goes_on_after_a_kill_between_the_answer_and_what_is_kept(tmp_path: Path) -> None:
    opened(tmp_path).close()
    command = [sys.executable, str(Path(__file__).with_name("answered_session.py")), str(tmp_path / "catalog"), TEXT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment()) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "answered"
        process.send_signal(signal.SIGKILL)
    db = opened(tmp_path)
    assert db.table("orders").info.rows == 1010
    s = db.standing(name="held")
    assert shown(s.answer) == expected(db)
    db.insert("orders", orders(1010, 5))
    assert shown(s.refresh()) == expected(db)
    assert s.history[-1].strategy == CHANGE
    db.close()


def test_stop_waits_for_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    db = opened(tmp_path)
    s = _kept(db)
    store = s._upkeep.store
    with _answered(s) as end:
        assert shown(s.answer) == expected(db)
        s.stop()
        assert s.is_over
        assert db.standings == ()
        end()
    for thread in [each for each in threading.enumerate() if each.name == "nearly-standing-lets-go"]:
        thread.join(30)
    assert not s.states
    assert not store._states
    again = db.standing(TEXT, name="held", arrivals={"orders": 5})
    db.insert("orders", orders(1010, 5))
    assert shown(again.refresh()) == expected(db)
    assert again.history[-1].strategy == CHANGE
    db.close()


def test_a_session_may_end_before_all_is_kept(tmp_path: Path) -> None:
    db = opened(tmp_path)
    s = _kept(db)
    with _answered(s) as end:
        closing = threading.Thread(target=db.close)
        closing.start()
        closing.join(0.2)  # it may wait for whoever holds the states
        end()
        closing.join(30)
        assert not closing.is_alive()
    db = opened(tmp_path)
    assert db.standings == ("held",)
    s = db.standing(name="held")
    assert shown(s.answer) == expected(db)
    db.insert("orders", orders(1010, 5))
    assert shown(s.refresh()) == expected(db)
    db.close()


def test_a_first_answer_is_given_though_nothing_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full is no fault of a table's file."""
    db = opened(tmp_path)

    def fail(*_: object) -> None:
        raise NativeFailure("No space left on device", "IOException")

    with monkeypatch.context() as full:
        full.setattr(StateStore, "make", fail)
        s = db.standing(TEXT, name="held", arrivals={"orders": 5})
        assert shown(s.answer) == expected(db)
        db.insert("orders", orders(1000, 5))
        assert shown(s.refresh()) == expected(db)
        assert s.history[-1].strategy == WHOLE
        assert not s.states
    db.insert("orders", orders(1005, 5))
    assert shown(s.refresh()) == expected(db)
    assert s.states
    db.close()


def test_a_disk_that_fails_is_given_up_and_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeeps, "Kept", lambda plan, size: Kept(plan, size, DISK))
    db = opened(tmp_path)
    s = db.standing(TEXT, name="held", memory="0", disk="1GB", arrivals={"orders": 5})
    upkeep = s._upkeep
    upkeep.fixed, upkeep.forced, upkeep.planned = [node for node in upkeep.plan.walk() if isinstance(node, GroupBy)], CHANGE, None
    strategies = []
    for step in range(4):
        if step == 2:
            with upkeep.store._native.cursor() as cursor:
                cursor.execute("DETACH standing_disk")
        db.insert("orders", orders(1000 + 5 * step, 5))
        assert shown(s.refresh()) == expected(db)
        assert [state.place for state in s.states] == [DISK]
        strategies.append(s.history[-1].strategy)
    assert strategies == [CHANGE, CHANGE, WHOLE, CHANGE]
    db.close()
