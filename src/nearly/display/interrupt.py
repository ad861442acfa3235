"""Ctrl-C while answers come: the query is stopped and the last answer stays."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

from nearly.errors import NearlyError

GRACE_SECONDS = 2.0
"""A query that is still busy so long after it was asked to stop is interrupted where it stands."""


class Interruption:
    """Within it, the first interrupt calls `stop` in a thread of its own; a second one, or the end of the grace, raises.

    An exception at any place, for example inside the native engine or while a result is written, is what this avoids. The second
    interrupt goes to the handler from before, with which Spark cancels its jobs. Outside of the main thread, where no signals
    arrive, it does nothing.
    """

    def __init__(self, stop: Callable[[], None], grace: float = GRACE_SECONDS) -> None:
        self._stop = stop
        self._grace = grace
        self._over = threading.Event()
        self._before: signal._HANDLER = None
        self._raised = False
        self.happened = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        """An interrupt that had to be raised ends here, also where an engine turned it into an error of its own."""
        self._over.set()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        return self._raised and kind is not None and issubclass(kind, KeyboardInterrupt | RuntimeError | NearlyError)

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self.happened:
            self._raised = True
            if callable(self._before):
                self._before(number, frame)
            raise KeyboardInterrupt
        self.happened = True
        threading.Thread(target=self._end, name="nearly-interrupt", daemon=True).start()

    def _end(self) -> None:
        threading.Thread(target=self._stop, name="nearly-stop", daemon=True).start()
        if not self._over.wait(self._grace):
            main = threading.main_thread().ident
            if main is not None:
                signal.pthread_kill(main, signal.SIGINT)
