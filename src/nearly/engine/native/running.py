"""What runs on a native engine just now, so that it can be interrupted: all of one query, and nothing of another."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb


class Running:
    """The cursors of one query, or of one engine."""

    def __init__(self) -> None:
        self._cursors: set[duckdb.DuckDBPyConnection] = set()
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._cursors)

    @contextmanager
    def holding(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """While this is open, the cursor is interrupted with the others."""
        with self._lock:
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
