"""What runs on a native engine just now, so that it can be interrupted: all of one query, and nothing of another."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import duckdb

from nearly.errors import EngineError

ENDING_SECONDS = 10.0
"""Whoever ends a query waits so long for it to notice; a Python function cannot be interrupted."""
INTERRUPTED = "INTERRUPT Error: Interrupted!"
"""As DuckDB says it."""


class Running:
    """The cursors of one query, or of one engine."""

    def __init__(self) -> None:
        self._cursors: set[duckdb.DuckDBPyConnection] = set()
        self._lock = threading.Lock()
        self._is_over = False

    def __bool__(self) -> bool:
        return bool(self._cursors)

    @contextmanager
    def holding(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """While this is open, the cursor is interrupted with the others; after the end that is at once."""
        with self._lock:
            if self._is_over:
                raise duckdb.InterruptException(INTERRUPTED)
            self._cursors.add(cursor)
        try:
            yield
        finally:
            with self._lock:
                self._cursors.discard(cursor)

    def interrupt(self) -> None:
        """Stop what runs; it ends with an InterruptException. What begins later is not touched."""
        with self._lock:
            for cursor in self._cursors:
                cursor.interrupt()

    def end(self) -> None:
        """Stop what runs, and let nothing begin. An interrupt that comes before a statement begins is lost, so it is repeated."""
        with self._lock:
            self._is_over = True
        until = time.monotonic() + ENDING_SECONDS
        while self and time.monotonic() < until:
            with suppress(duckdb.Error):  # a cursor that is being closed
                self.interrupt()
            time.sleep(0.01)


class Stopped(EngineError):
    """Somebody stopped the query."""


class Ending:
    """The end of one query, wished for by another thread.

    Law: what runs for the query when `wish` comes is broken off, and nothing begins for it afterwards.
    """

    def __init__(self) -> None:
        self.running = Running()
        self.tag = f"nearly-{uuid.uuid4().hex[:12]}"
        self._breaks: list[Callable[[], object]] = []
        self._wished = threading.Event()

    @property
    def is_wished(self) -> bool:
        return self._wished.is_set()

    def refuse(self) -> None:
        """Raise `Stopped` once the end is wished for."""
        if self.is_wished:
            raise Stopped("the query was stopped")

    @contextmanager
    def breaking(self, break_off: Callable[[], object]) -> Iterator[None]:
        """While this is open, the end calls `break_off`."""
        self._breaks.append(break_off)
        try:
            self.refuse()
            yield
        finally:
            self._breaks.remove(break_off)

    def wish(self) -> None:
        """End the query."""
        self._wished.set()
        for break_off in list(self._breaks):
            break_off()
        self.running.end()
