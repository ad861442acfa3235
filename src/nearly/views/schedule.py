"""Refreshes in the background: one thread for a session, which ends with it.

Whoever refreshes a view holds its turn (`Catalog.changing`), so that of several sessions, in whichever process, one does the work
and the others find it done.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable, Mapping

from nearly.engine.storage.versions import now
from nearly.errors import NearlyError

logger = logging.getLogger(__name__)

GRACE_SECONDS = 1.0
"""A session looks for the first time after so long: one that is opened for a moment refreshes nothing."""
CLOSING_SECONDS = 5.0

Timed = Mapping[str, tuple[float, dt.datetime]]
"""Seconds between refreshes and the time of the last one, by view."""


class Schedule:
    """Calls `refresh` for every view that is due; `timed` tells which there are."""

    def __init__(self, timed: Callable[[], Timed], refresh: Callable[[str], object]) -> None:
        self._timed = timed
        self._refresh = refresh
        self._stopping = threading.Event()
        self._looked: dict[str, float] = {}
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self.troubles: dict[str, str] = {}

    def wake(self) -> None:
        """Begin to look, where some view is to be refreshed."""
        with self._starting:
            if self._thread is None and not self._stopping.is_set() and self._timed():
                self._thread = threading.Thread(target=self._run, name="nearly-views", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Begin no more refreshes; one that is under way may still end."""
        self._stopping.set()
        self.ended(CLOSING_SECONDS)

    def ended(self, seconds: float = CLOSING_SECONDS) -> None:
        """Wait for the thread, not for long."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(seconds)

    def _run(self) -> None:
        wait = GRACE_SECONDS
        while not self._stopping.wait(wait):
            wait = GRACE_SECONDS
            try:
                for name, (every, last) in self._timed().items():
                    wait = min(wait, every)
                    if self._is_due(name, every, last) and not self._stopping.is_set():
                        self._work(name)
            except NearlyError:
                if self._stopping.is_set():
                    return
                logger.warning("the views to refresh could not be found", exc_info=True)

    def _is_due(self, name: str, every: float, last: dt.datetime) -> bool:
        since = min((now() - last).total_seconds(), time.monotonic() - self._looked.get(name, float("-inf")))
        return since >= every

    def _work(self, name: str) -> None:
        try:
            self._refresh(name)
            self.troubles.pop(name, None)
        except Exception as trouble:  # whatever one view meets, the others are refreshed
            if not self._stopping.is_set():
                ours = isinstance(trouble, NearlyError)
                self.troubles[name] = told = str(trouble) if ours else f"{type(trouble).__name__}: {trouble}"
                logger.warning("view %r could not be refreshed: %s", name, told, exc_info=not ours)
        finally:
            self._looked[name] = time.monotonic()
