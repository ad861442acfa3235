"""What was found last is remembered, and no more than that."""

from __future__ import annotations

import threading

from nearly.plan.remembered import Remembered


def test_the_oldest_go_and_what_is_asked_for_stays() -> None:
    found: Remembered[str, int] = Remembered(2)
    assert found.add("a", 1) == 1
    found.add("b", 2)
    assert found.get("a") == 1
    found.add("c", 3)
    assert "b" not in found
    assert (found.get("a"), found.get("c"), len(found)) == (1, 3, 2)
    found.forget("a")
    found.forget("a")
    assert found.get("a") is None
    found.forget_if(lambda value: value == 3)
    assert not len(found)


def test_many_threads_may_ask_and_add() -> None:
    found: Remembered[int, int] = Remembered(10)

    def work(seed: int) -> None:
        for number in range(2_000):
            found.add((number * seed) % 37, number)
            found.get(number % 37)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 7)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 10
