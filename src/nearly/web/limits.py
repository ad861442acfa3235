"""What one client, and all together, may ask of a server."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from nearly.errors import NearlyError, SchemaError


class TooMuch(NearlyError):
    """A request beyond a limit of the server; the message names the limit and the option that sets it."""


def default_queries() -> int:
    """Queries that run at the same time: some more than cores, so that a long one does not hold up the short ones."""
    return 2 * max(2, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Limits:
    """At most so many queries run at a time, of which one client has so many; others wait, up to a number of them.

    `characters` bounds a text, `rows` an answer that is handed out, `shown` those of one answer on its way, `seconds` the time of
    a query from its start, and `kept` and `kept_bytes` the answers that are kept for an export.
    """

    queries: int = field(default_factory=default_queries)
    of_client: int = 2
    waiting: int = 5000
    characters: int = 100_000
    rows: int = 1_000_000
    shown: int = 500
    seconds: float = 600.0
    kept: int = 32
    kept_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        for name in ("queries", "of_client", "waiting", "characters", "rows", "shown", "seconds", "kept", "kept_bytes"):
            if not getattr(self, name) > 0:
                raise SchemaError(f"the limit {name}={getattr(self, name)!r} must be above 0")

    def check_text(self, text: str) -> None:
        """Refuse a text that is too long."""
        if len(text) > self.characters:
            raise TooMuch(f"the text has {len(text):,} characters, and this server takes {self.characters:,} (--max-text)")

    def check_rows(self, rows: int) -> None:
        """Refuse an answer that is too large to hand out."""
        if rows > self.rows:
            raise TooMuch(f"the answer has {rows:,} rows, and this server hands out {self.rows:,} (--max-rows); add a LIMIT")
