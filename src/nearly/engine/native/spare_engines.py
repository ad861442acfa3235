"""Engines that no query uses just now: opening one takes longer than a first answer should."""

from __future__ import annotations

import threading
from contextlib import suppress

import duckdb

from nearly.engine.native.engine import Native

MOST_SPARE = 2


class SpareEngines:
    """Of one session."""

    def __init__(self) -> None:
        self._spare: list[Native] = []
        self._lock = threading.Lock()

    def take(self) -> Native:
        """An engine for oneself."""
        with self._lock:
            return self._spare.pop() if self._spare else Native()

    def close(self) -> None:
        """Let go of them."""
        with self._lock:
            spare, self._spare = self._spare, []
        for engine in spare:
            engine.close()

    def give_back(self, engine: Native) -> None:
        """Leave an engine to others, with nothing in it."""
        with suppress(duckdb.Error):  # one that failed for good is left alone
            engine.forget()
            with self._lock:
                if len(self._spare) < MOST_SPARE:
                    self._spare.append(engine)
