"""Cursors of a connection: DECLARE, FETCH, MOVE and CLOSE."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pg_mimic import PgError, Portal, ResultColumn, Statement
from pg_mimic.connection import PortalEntry

from nearly.web.wire.statements import Asked, KnownStatement, Row
from nearly.web.wire.texts import NAME, folded

Prepare = Callable[[str, list[int | None]], Awaitable[Statement]]
_DECLARE = re.compile(
    rf"^\s*DECLARE\s+({NAME})\s+(?:BINARY\s+|INSENSITIVE\s+|ASENSITIVE\s+|NO\s+SCROLL\s+|SCROLL\s+)*CURSOR\s+"
    r"(?:(WITH|WITHOUT)\s+HOLD\s+)?FOR\s+(.+)$",
    re.IGNORECASE | re.DOTALL,
)
_FETCH = re.compile(
    rf"^\s*(FETCH|MOVE)\s+(?:(?:FORWARD|NEXT)\b\s*)?(ALL\b|\d+)?\s*(?:FROM\s+|IN\s+)?({NAME})\s*;?\s*$", re.IGNORECASE
)
_BACK = re.compile(r"^\s*(?:FETCH|MOVE)\s+(BACKWARD|PRIOR|FIRST|LAST|ABSOLUTE|RELATIVE|-\s*\d+)\b", re.IGNORECASE)
_CLOSE = re.compile(rf"^\s*CLOSE\s+({NAME})\s*;?\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Cursor:
    portal: Portal
    columns: list[ResultColumn]
    held: bool


class Cursors:
    """The open cursors of a connection, each of which is a portal that clients may ask for its columns."""

    def __init__(self, connection: Any, prepare: Prepare) -> None:
        self._connection = connection
        self._prepare = prepare
        self._open: dict[str, _Cursor] = {}

    async def statement(self, sql: str, told_types: list[int | None]) -> Statement | None:
        """The statement about a cursor that a text is."""
        declared, fetched, closed = _DECLARE.match(sql), _FETCH.match(sql), _CLOSE.match(sql)
        if declared is not None:
            return await self._declare(declared, told_types)
        if _BACK.match(sql):
            raise PgError("55000", "a cursor goes forward only here; FETCH takes NEXT, FORWARD, ALL or a number of rows")
        if fetched is not None:
            return self._fetch(fetched)
        if closed is None:
            return None
        word = closed.group(1)
        return KnownStatement("CLOSE CURSOR", effect=self.clear if word.upper() == "ALL" else lambda: self._close(folded(word)))

    def transaction_over(self) -> None:
        """A cursor ends with its transaction, unless it was declared WITH HOLD."""
        for name in [name for name, each in self._open.items() if not each.held]:
            self._close(name)

    def clear(self) -> None:
        for name in list(self._open):
            self._close(name)

    async def _declare(self, declared: re.Match[str], told_types: list[int | None]) -> Statement:
        name, held = folded(declared.group(1)), (declared.group(2) or "").upper() == "WITH"
        inner = await self._prepare(declared.group(3), told_types)
        columns = await inner.describe()
        if columns is None:
            raise PgError("42601", "a cursor is declared for a query")

        async def shape() -> None:
            return None

        async def opened(values: list[Any]) -> Iterable[Row]:
            if name in self._open:
                raise PgError("42P03", f'cursor "{name}" already exists')
            portal = inner.bind(values)
            self._open[name] = _Cursor(portal, columns, held)
            self._connection.portals[name] = PortalEntry(portal, columns, "SELECT")
            return []

        return Asked("DECLARE CURSOR", inner.param_oids, shape, opened)

    def _fetch(self, fetched: re.Match[str]) -> Statement:
        cursor = self._opened(folded(fetched.group(3)))
        word, count = fetched.group(1).upper(), fetched.group(2)
        every = count is not None and count.upper() == "ALL"
        most = 0 if every else int(count or 1)

        async def take() -> list[Row]:
            return (await cursor.portal.execute(most))[0] if every or most else []

        async def fetch(_: list[Any]) -> Iterable[Row]:
            return await take()

        async def move(_: list[Any]) -> Iterable[Row]:
            statement.sql = f"MOVE {len(await take())}"
            return []

        async def shape() -> list[ResultColumn] | None:
            return cursor.columns if word == "FETCH" else None

        statement = Asked(word, [], shape, fetch if word == "FETCH" else move)
        return statement

    def _opened(self, name: str) -> _Cursor:
        if name not in self._open:
            raise PgError("34000", f'cursor "{name}" does not exist')
        return self._open[name]

    def _close(self, name: str) -> None:
        portal = self._opened(name).portal
        del self._open[name]
        entry = self._connection.portals.get(name)
        if entry is not None and entry.portal is portal:
            del self._connection.portals[name]
