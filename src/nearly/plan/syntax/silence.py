"""The parser keeps silent about texts that it only half knows: they are refused, in words of our own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_reading: ContextVar[bool] = ContextVar("reading", default=False)


class _Ours(logging.Filter):
    """Drops what the parser says while a text of ours is read; what it says to others stays."""

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002  whatever it says
        return not _reading.get()


logging.getLogger("sqlglot").addFilter(_Ours())


@contextmanager
def silently() -> Iterator[None]:
    """Within it the parser logs nothing."""
    before = _reading.set(True)
    try:
        yield
    finally:
        _reading.reset(before)
