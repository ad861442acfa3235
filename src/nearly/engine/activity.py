"""Whether users' queries read tables just now: what is done in the background waits for a quiet time, and ends when it is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from nearly.engine.native.running import Running


class Activity:
    """Of one session; threads that say that they work in the background do not count."""

    def __init__(self) -> None:
        self._busy = 0
        self._last = time.monotonic()
        self._lock = threading.Lock()
        self._background = threading.local()
        self._interrupted: set[Running] = set()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While this is open, somebody reads; what runs in the background is broken off."""
        if self.in_background:
            yield
            return
        with self._lock:
            self._busy += 1
            broken = tuple(self._interrupted)
        for each in broken:
            each.interrupt()
        try:
            yield
        finally:
            with self._lock:
                self._busy -= 1
                self._last = time.monotonic()

    @property
    def in_background(self) -> bool:
        """Whether this thread works in the background."""
        return getattr(self._background, "on", False)

    @contextmanager
    def background(self, running: Running) -> Iterator[None]:
        """What this thread reads meanwhile is nobody's query; `running` is interrupted when one begins."""
        self._background.on = True
        with self._lock:
            self._interrupted.add(running)
        try:
            yield
        finally:
            self._background.on = False
            with self._lock:
                self._interrupted.discard(running)

    @property
    def quiet(self) -> float:
        """Seconds since somebody last read; 0 while somebody does."""
        with self._lock:
            return 0.0 if self._busy else time.monotonic() - self._last
