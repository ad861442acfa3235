"""From when to when a session can be used, and what runs in it meanwhile."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from typing import Protocol
from weakref import WeakSet

from nearly.errors import CLOSED, EngineError

_FORKED = "this session was opened in another process, before a fork; open another here with nearly.connect()"


class Stoppable(Protocol):
    """Something that runs in a session."""

    def stop(self) -> None: ...


class Life:
    """Of one session: it begins in a process and ends there.

    Law: what runs when it ends is stopped, and nothing begins afterwards.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._over = False
        self._running: WeakSet[Stoppable] = WeakSet()
        self._lock = threading.Lock()

    @property
    def is_here(self) -> bool:
        """Whether this is the process the session was opened in; in a forked child its threads are missing."""
        return self._process == os.getpid()

    @property
    def is_over(self) -> bool:
        return self._over

    def refuse_over(self) -> None:
        """Raise an `EngineError` where the session cannot be used: after its end, and in a forked child."""
        if not self.is_here:
            raise EngineError(_FORKED)
        if self._over:
            raise EngineError(CLOSED)

    def begin(self, run: Stoppable) -> None:
        """Have a run stopped at the end of the session."""
        with self._lock:
            self.refuse_over()
            self._running.add(run)

    def end(self) -> None:
        """Stop what runs."""
        with self._lock:
            self._over = True
            running = list(self._running)
        with ExitStack() as each:
            for run in running:
                each.callback(run.stop)
