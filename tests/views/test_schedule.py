"""Refreshes in the background, one view after the other."""

from __future__ import annotations

import datetime as dt
import time

from nearly.engine.storage.versions import now
from nearly.views.schedule import Schedule


def test_what_one_view_meets_does_not_keep_others_from_being_refreshed() -> None:
    refreshed: list[str] = []

    def refresh(name: str) -> None:
        refreshed.append(name)
        if name == "bad":
            raise OverflowError("date value out of range")

    long_ago = now() - dt.timedelta(days=1)
    schedule = Schedule(lambda: {"bad": (0.1, long_ago), "good": (0.1, long_ago)}, refresh)
    schedule.wake()
    until = time.monotonic() + 20
    while refreshed.count("good") < 2 and time.monotonic() < until:
        time.sleep(0.02)
    schedule.stop()
    assert refreshed[:4] == ["bad", "good", "bad", "good"]
    assert schedule.troubles == {"bad": "OverflowError: date value out of range"}
