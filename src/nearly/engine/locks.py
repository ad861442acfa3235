"""File locks that the kernel gives back when their process dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nearly.errors import EngineError


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock; another holder, in this process or another, is waited for."""
    with _open(path) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock, which is so when its holder has ended or died."""
    with _open(path) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


@contextmanager
def _open(path: Path) -> Iterator[int]:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise EngineError(f"cannot write in {path.parent}: {error.strerror}; put the catalog elsewhere") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)
