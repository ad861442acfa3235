"""BEGIN, COMMIT and savepoints: what a client believes of its transaction, though every query sees the newest version."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pg_mimic import PgError

from nearly.web.wire.statements import KnownStatement

_BEGIN = re.compile(r"^\s*(BEGIN|START\s+TRANSACTION)\b", re.IGNORECASE)
_END = re.compile(r"^\s*(COMMIT|END|ROLLBACK|ABORT)\b", re.IGNORECASE)
_POINT = re.compile(r"^\s*(SAVEPOINT|RELEASE|ROLLBACK\s+(?:WORK\s+|TRANSACTION\s+)?TO)\b", re.IGNORECASE)
_TAGS = {"END": "COMMIT", "ABORT": "ROLLBACK"}


def of_transaction(sql: str, connection: Any, over: Callable[[], None]) -> KnownStatement | None:
    """The statement about a transaction that a text is; `over` is called when one has ended."""
    point, began, ended = _POINT.match(sql), _BEGIN.match(sql), _END.match(sql)
    if point is not None:
        return _at_point(point.group(1).split()[0].upper(), connection)
    if began is not None:
        return KnownStatement("BEGIN", effect=lambda: _become(connection, b"T"))
    if ended is None:
        return None
    word = ended.group(1).upper()
    statement = KnownStatement(_TAGS.get(word, word))

    def end() -> None:
        if connection.tx_status == b"E":
            statement.sql = "ROLLBACK"  # a transaction that failed is never committed, and its client is told so
        _become(connection, b"I")
        over()

    statement.effect = end
    return statement


def _at_point(word: str, connection: Any) -> KnownStatement:
    def point() -> None:
        if connection.tx_status == b"I":
            raise PgError("25P01", f"{word} is for transactions; begin one")
        _become(connection, b"T")

    return KnownStatement(word, effect=point)


def _become(connection: Any, status: bytes) -> None:
    connection.tx_status = status
