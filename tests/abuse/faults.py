"""Faults at the n-th write of a process: Python tells an audit hook of every file it is about to write, make, move or remove."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

KILL, NO_SPACE, NO_PERMISSION = "kill", "no-space", "no-permission"
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MAKING = ("os.mkdir", "os.link", "os.rename")
_REMOVING = ("os.remove", "os.rmdir")


class Faults:
    """Below a directory, the n-th write, and for errors all after it, meet a fault. A hook stays for the life of its process."""

    def __init__(self, directory: Path, kind: str, at: int) -> None:
        self._directory = str(directory)
        self._kind = kind
        self._at = at
        self._lock = threading.Lock()
        self._seen = 0
        self.armed = False
        self.hit = False
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.armed or not self._counts(event, arguments):
            return
        with self._lock:
            self._seen += 1
            due = self._seen >= self._at
        if due:
            self.hit = True
            self._fault()()

    def _counts(self, event: str, arguments: tuple[object, ...]) -> bool:
        if event == "open":
            path, _, flags = arguments
            return isinstance(flags, int) and bool(flags & _WRITING) and self._is_below(path)
        if event in _MAKING:
            return any(self._is_below(path) for path in arguments[:2])
        return self._kind == KILL and event in _REMOVING and self._is_below(arguments[0])

    def _is_below(self, path: object) -> bool:
        return isinstance(path, str | os.PathLike) and os.path.abspath(os.fspath(path)).startswith(self._directory)  # noqa: PTH100

    def _fault(self) -> Callable[[], None]:
        return {KILL: _kill, NO_SPACE: _no_space, NO_PERMISSION: _no_permission}[self._kind]


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _no_space() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _no_permission() -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
