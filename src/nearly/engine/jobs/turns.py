"""Whose turn it is: the progressive queries of a session that use Spark at the same time."""

from __future__ import annotations

import threading

TURN_SECONDS = 3.0
"""With more queries than task slots, each may work so long before another gets its turn."""


class Turns:
    """The jobs of a session that are under way."""

    def __init__(self) -> None:
        self._running: set[object] = set()
        self._lock = threading.Lock()

    def begin(self, job: object) -> None:
        with self._lock:
            self._running.add(job)

    def end(self, job: object) -> None:
        with self._lock:
            self._running.discard(job)

    @property
    def any(self) -> bool:
        return bool(self._running)

    def is_over(self, seconds: float, slots: int) -> bool:
        """Whether a job that has worked so long must let another one work: there are more of them than slots."""
        return len(self._running) > slots and seconds > TURN_SECONDS
