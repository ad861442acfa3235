"""The logs of a catalog's progressive queries: those that run, those that were left by killed processes, and what can be removed.

A log that nobody drives is kept for some days, so that its query can go on; then it is removed when a session is opened.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from pathlib import Path

from nearly.engine.storage.pins import QUERIES
from nearly.engine.stream.result_log import ResultLog
from nearly.errors import EngineError, unknown

KEPT_SECONDS = 7 * 24 * 3600.0
"""So long the log of a killed query is kept."""

FRESH_SECONDS = 600.0
"""So long a log may be without a description, or on its way out."""


class QueryLogs:
    """All logs below one catalog."""

    def __init__(self, catalog: Path) -> None:
        self._path = catalog / QUERIES

    def log(self, id_: str) -> ResultLog:
        """The log of a query, which may not be there."""
        return ResultLog(self._path / id_)

    def unfinished(self) -> tuple[str, ...]:
        """Ids of queries that nobody drives any more and that can go on."""
        found = (ResultLog(each) for each in self._directories() if not each.name.startswith("."))
        return tuple(sorted(log.path.name for log in found if log.description() is not None and not log.is_driven))

    def forget(self, id_: str) -> None:
        """Remove the log of a query that nobody drives."""
        if id_ not in {each.name for each in self._directories()} or id_.startswith("."):
            raise unknown("unfinished query", id_, self.unfinished())
        log = self.log(id_)
        with ExitStack() as owned:
            owned.enter_context(log.owned())
            log.remove()

    def sweep(self) -> None:
        """Remove what is old and driven by nobody; what cannot be removed is left alone."""
        now = time.time()
        for each in self._directories():
            log = ResultLog(each)
            with suppress(OSError, EngineError):
                known = not each.name.startswith(".") and log.description() is not None
                if each.stat().st_mtime < now - (KEPT_SECONDS if known else FRESH_SECONDS) and not log.is_driven:
                    log.remove()

    def _directories(self) -> list[Path]:
        return [each for each in self._path.iterdir() if each.is_dir()] if self._path.is_dir() else []
