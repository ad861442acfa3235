"""Whose turn it is: clients alternate, none has more than its share, and what is withdrawn never runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from nearly.errors import SchemaError
from nearly.web.limits import Limits, TooMuch
from nearly.web.scheduling import FairPool


def _hold(say: Callable[[], None], until: threading.Event) -> None:
    say()
    until.wait(30)


def test_clients_take_turns() -> None:
    pool = FairPool(Limits(queries=1, of_client=1))
    hold, order = threading.Event(), list[str]()
    pool.submit("first", partial(_hold, lambda: None, hold))
    done = threading.Semaphore(0)

    def note(name: str) -> None:
        order.append(name)
        done.release()

    for place in range(4):
        pool.submit("greedy", lambda place=place: note(f"greedy {place}"))
    pool.submit("modest", lambda: note("modest"))
    pool.submit("late", lambda: note("late"))
    hold.set()
    for _ in range(6):
        assert done.acquire(timeout=10)
    assert order == ["greedy 0", "modest", "late", "greedy 1", "greedy 2", "greedy 3"]
    pool.close()


def test_no_client_has_more_than_its_share() -> None:
    pool = FairPool(Limits(queries=3, of_client=1))
    hold, seen = threading.Event(), threading.Semaphore(0)
    for _ in range(3):
        pool.submit("one", partial(_hold, seen.release, hold))
    pool.submit("other", seen.release)
    assert seen.acquire(timeout=10)
    assert seen.acquire(timeout=10)
    assert not seen.acquire(timeout=0.1)
    hold.set()
    assert seen.acquire(timeout=10)
    pool.close()


def test_what_is_withdrawn_never_runs_and_too_much_is_refused() -> None:
    pool = FairPool(Limits(queries=1, of_client=1, waiting=2))
    hold, began, ran = threading.Event(), threading.Event(), list[int]()
    pool.submit("a", partial(_hold, began.set, hold))
    assert began.wait(10)
    gone = pool.submit("b", lambda: ran.append(1))
    pool.submit("b", lambda: ran.append(2))
    with pytest.raises(TooMuch, match="wait already"):
        pool.submit("c", lambda: ran.append(3))
    assert pool.withdraw(gone)
    assert not pool.withdraw(gone)
    over = threading.Event()
    pool.submit("c", over.set)
    hold.set()
    assert over.wait(10)
    assert ran == [2]
    pool.close()
    with pytest.raises(TooMuch, match="closing"):
        pool.submit("d", over.set)


def test_work_that_fails_does_not_end_its_thread() -> None:
    pool, over = FairPool(Limits(queries=1)), threading.Event()
    pool.submit("a", partial(_hold, partial(next, iter(())), over))
    pool.submit("a", over.set)
    assert over.wait(10)
    pool.close()


def test_limits_are_above_zero() -> None:
    with pytest.raises(SchemaError, match="queries"):
        Limits(queries=0)


def test_one_idle_thread_does_not_hold_two_pieces_of_work() -> None:
    pool = FairPool(Limits(queries=2, of_client=1))
    rested, met = threading.Event(), threading.Event()
    pool.submit("a", rested.set)
    assert rested.wait(10)
    while not pool._idle:
        rested.wait(0.01)
    with pool._news:  # both come before the idle thread wakes
        pool.submit("a", partial(_hold, lambda: None, met))
        pool.submit("b", met.set)
    assert met.wait(10)
    pool.close()
