"""Telling someone that an answer changed: a function, or an address to which what changed is sent."""

from __future__ import annotations

import json
import logging
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
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
    """What changed between two answers, as bags of rows."""
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
        except Exception:  # whatever a user's function does, the query goes on
            logger.exception("on_change of standing query %r failed", name)

    return tell


def _sending(address: str) -> Watcher:
    def send(name: str, answer: Answer, changed: Difference) -> None:
        content = {
            "name": name, "versions": answer.stats.get("versions", {}), "rows": answer.table.num_rows,
            "came": changed.came.slice(0, MOST_SENT).to_pylist(), "went": changed.went.slice(0, MOST_SENT).to_pylist(),
        }  # fmt: skip
        body = json.dumps(content, default=str).encode()
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})  # noqa: S310  checked above
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE):  # noqa: S310
                pass
        except (urllib.error.URLError, OSError) as trouble:
            logger.warning("standing query %r could not tell %s of a change: %s", name, address, trouble)

    return send
