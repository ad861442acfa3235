"""Telling someone that an answer changed: a function, or an address to which what changed is sent."""

from __future__ import annotations

import http.client
import json
import logging
import math
import threading
import urllib.request
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from nearly.answer import Answer
from nearly.errors import SchemaError

logger = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds that a receiver may take."""
MOST_SENT = 1_000
"""Rows that are sent at most."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows of an answer that came and went since the one before."""

    came: pa.Table
    went: pa.Table


Watcher = Callable[[str, Answer, Difference], None]
"""Is told the name of a query, its new answer, and what changed."""


def difference(before: pa.Table, after: pa.Table) -> Difference:
    """What changed between two answers, as bags of rows; of answers with other columns, all rows of both."""
    if before.schema.types != after.schema.types:
        return Difference(after, before)
    names = [f"c{place}" for place in range(after.num_columns)]
    with duckdb.connect() as connection:
        connection.register("old_rows", before.rename_columns(names))
        connection.register("new_rows", after.rename_columns(names))
        texts = (
            "SELECT * FROM new_rows EXCEPT ALL SELECT * FROM old_rows",
            "SELECT * FROM old_rows EXCEPT ALL SELECT * FROM new_rows",
        )
        came, went = (connection.sql(text).to_arrow_table().rename_columns(after.column_names) for text in texts)
    return Difference(came, went)


@dataclass(slots=True)
class Telling:
    """Tells a watcher of new answers, one after the other in their order.

    Law: a watcher is called while nobody waits for a lock of this package, so that one which blocks, or which starts, refreshes or
    stops queries itself, holds up nobody but the tellings after it.
    """

    name: str
    watcher: Watcher
    _waiting: deque[tuple[Answer, Answer]] = field(default_factory=deque)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def add(self, before: Answer, after: Answer) -> None:
        """An answer came after another; it is told by whoever tells next."""
        self._waiting.append((before, after))

    def tell(self) -> None:
        """Tell all that waits; where another thread tells already, it does."""
        while self._waiting and self._turn.acquire(blocking=False):
            try:
                while (pair := self._next()) is not None:
                    before, after = pair
                    changed = difference(before.table, after.table)
                    if changed.came.num_rows or changed.went.num_rows:
                        self.watcher(self.name, after, changed)
            finally:
                self._turn.release()

    def _next(self) -> tuple[Answer, Answer] | None:
        try:
            return self._waiting.popleft()
        except IndexError:
            return None

    def tell_later(self) -> None:
        """Tell in a thread of its own, for whoever has others to look after."""
        if self._waiting and not self._turn.locked():
            self._thread = threading.Thread(target=self.tell, name="nearly-standing-tells", daemon=True)
            self._thread.start()

    def forget(self, patience: float = 0.0) -> None:
        """Tell nothing more; what is being told may take so many seconds to end."""
        self._waiting.clear()
        thread = self._thread
        if patience and thread is not None and thread is not threading.current_thread():
            thread.join(patience)


def watcher_of(given: Any) -> Watcher | None:
    """What `on_change=` means: a function of the answer and of what changed, or an address."""
    if given is None:
        return None
    if isinstance(given, str):
        if not given.startswith(("http://", "https://")):
            raise SchemaError(f"on_change={given!r} must be a function, or an address that begins with http:// or https://")
        return _sending(given)
    if not callable(given):
        raise SchemaError(f"on_change={given!r:.80} must be a function of an answer and of what changed, or an address")

    def tell(name: str, answer: Answer, changed: Difference) -> None:
        try:
            given(answer, changed)
        except (Exception, SystemExit):  # whatever a user's function does, the query goes on
            logger.exception("on_change of standing query %r failed", name)

    return tell


def _sending(address: str) -> Watcher:
    """Sends to an address what changed; nobody waits for one that replies a little at a time, and it is told nothing meanwhile."""
    last = threading.Thread()

    def send(name: str, answer: Answer, changed: Difference) -> None:
        nonlocal last
        content = {
            "name": name, "versions": answer.stats.get("versions", {}), "rows": answer.table.num_rows,
            "came": changed.came.slice(0, MOST_SENT).to_pylist(), "went": changed.went.slice(0, MOST_SENT).to_pylist(),
        }  # fmt: skip
        if last.is_alive():
            logger.warning("standing query %r could not tell %s of a change: it still replies to the one before", name, address)
            return
        last = threading.Thread(target=_send, args=(name, address, content), name="nearly-standing-sends", daemon=True)
        last.start()
        last.join(PATIENCE)

    return send


def _send(name: str, address: str, content: dict[str, Any]) -> None:
    try:
        body = json.dumps(_plain(content), default=str, allow_nan=False).encode()
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})  # noqa: S310  checked above
        with urllib.request.urlopen(request, timeout=PATIENCE):  # noqa: S310
            pass
    except (OSError, ValueError, http.client.HTTPException) as trouble:  # no address, nobody there, or no sensible reply
        logger.warning("standing query %r could not tell %s of a change: %s", name, address, trouble)


def _plain(value: Any) -> Any:
    """Values as JSON has them, which has no infinite numbers."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {str(name): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
    return value
