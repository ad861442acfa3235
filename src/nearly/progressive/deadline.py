"""A time limit on a run: when it passes, the run stops as soon as it has an answer."""

from __future__ import annotations

import threading
import time

from nearly.progressive.run import Run


class Deadline:
    """Passes after some seconds, or never when there is none. A run that has an answer by then is stopped at once."""

    def __init__(self, run: Run, seconds: float | None) -> None:
        self._run = run
        self._end = None if seconds is None else time.monotonic() + seconds
        self._timer = None if seconds is None else threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._pass)
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    @property
    def passed(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _pass(self) -> None:
        if self._run.last is not None:
            self._run.stop()
