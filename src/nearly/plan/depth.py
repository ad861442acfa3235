"""Room for deep trees: parsing and planning recurse, and Python's default limit stops at some fifty nested parentheses."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

FRAMES = 4000
"""Enough for a few hundred levels of SQL; even when C code recurses with it, it fits in a stack of 8 MB."""

_lock = threading.Lock()
_users = 0
_limit_before = 0


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Recursion may go `FRAMES` deep inside; the process has its own limit back when the last user is done."""
    global _users, _limit_before  # noqa: PLW0603 - the limit is one for the whole process, so its users are counted for it
    with _lock:
        if _users == 0:
            _limit_before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_limit_before, FRAMES))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                sys.setrecursionlimit(_limit_before)
