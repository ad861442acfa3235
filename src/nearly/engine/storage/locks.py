"""File locks that the kernel gives back when their process dies, however it dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nearly.errors import EngineError


@contextmanager
def exclusive(path: Path, busy: str | None = None) -> Iterator[None]:
    """Hold the lock; another holder, in this process or another, is waited for, or with `busy` an `EngineError` of that text."""
    with _open(path) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if busy is None else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise EngineError(busy) from error
        yield


@contextmanager
def patiently(path: Path, seconds: float) -> Iterator[bool]:
    """Hold the lock, waiting so long for another holder; whether it is held."""
    with _open(path) as descriptor:
        end = time.monotonic() + seconds
        held = _taken(descriptor)
        while not held and time.monotonic() < end:
            time.sleep(0.02)
            held = _taken(descriptor)
        yield held


@contextmanager
def shared(directory: Path) -> Iterator[None]:
    """Keep what is in a directory from being removed by those who ask `unshared` first.

    One that is gone, or a file system without locks, is read all the same: whoever reads checks the files anyway.
    """
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def unshared(directory: Path) -> Iterator[bool]:
    """Whether nobody keeps a directory; while this is held, nobody will."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock, which is so when its holder has ended or died, or when there never was one."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise _refusal(path, error) from error
    try:
        return _taken(descriptor)
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _open(path: Path) -> Iterator[int]:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise _refusal(path, error) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _refusal(path: Path, error: OSError) -> EngineError:
    return EngineError(f"cannot write in {path.parent}: {error.strerror}; put the catalog elsewhere")
