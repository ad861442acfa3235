"""One connection: messages of the protocol, read with care, and what is said when a statement is done."""

from __future__ import annotations

import asyncio
import decimal
import struct
from collections.abc import Awaitable, Callable
from typing import Any

from pg_mimic import PgError, Statement
from pg_mimic import messages as wire
from pg_mimic.connection import Connection, _field_specs
from pg_mimic.results import encode_row
from pg_mimic.stream import ConnectionClosed

from nearly.web.wire.failures import told
from nearly.web.wire.prepared import MOST_PREPARED, refuse_more
from nearly.web.wire.texts import split_statements

START_SECONDS = 30.0
"""A client that has not given its password by then is sent away."""
MOST_MESSAGE = 1 << 26
MOST_DIGITS = 2000
"""Of a number that a client sends, so that none of them is rounded away on its way."""
_COUNTED = ("SELECT", "FETCH", "MOVE")
_MALFORMED = (ValueError, IndexError, struct.error, OverflowError, decimal.DecimalException)
"""What Python says of bytes that are not what they should be."""


class WireConnection(Connection):
    """A connection that keeps the words of its statements as they are written, and tells what each of them did."""

    tx_status: bytes
    _ignore_until_sync: bool

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.answered: dict[int, Statement] = {}

    async def _authenticate(self) -> bool:
        try:
            async with asyncio.timeout(START_SECONDS):
                known = await super()._authenticate()
        except (TimeoutError, PgError, ValueError, IndexError):
            return False
        if known:
            self.stream.most = MOST_MESSAGE
        return bool(known)

    async def _dispatch(self, tag: bytes, payload: bytes) -> None:
        """Act on a message; whatever goes wrong is told with its code, and in no words but ours."""
        if self._ignore_until_sync and tag != wire.SYNC:
            return
        try:
            await self._act(tag, payload)
        except ConnectionClosed:
            raise
        except Exception as trouble:  # noqa: BLE001  each is told, ours in words, others in the log
            error = told(trouble)
            self.stream.write(wire.make_error_response({"S": "ERROR", "V": "ERROR", "C": error.sqlstate, "M": error.message}))
            if self.tx_status != b"I":
                self.tx_status = b"E"
            self._ignore_until_sync = True

    async def _act(self, tag: bytes, payload: bytes) -> None:
        acts: dict[bytes, tuple[Callable[[bytes], Any], Callable[[Any], Awaitable[None]]]] = {
            wire.QUERY: (wire.parse_query, self._handle_simple_query),
            wire.PARSE: (wire.parse_parse, self._handle_parse),
            wire.BIND: (wire.parse_bind, self._handle_bind),
            wire.DESCRIBE: (wire.parse_describe, self._handle_describe),
            wire.EXECUTE: (wire.parse_execute, self._handle_execute),
            wire.CLOSE: (wire.parse_close, self._handle_close),
        }
        if tag in acts:
            read, act = acts[tag]
            await act(_read(read, payload))
        elif tag == wire.FLUSH:
            await self.stream.drain()
        elif tag != wire.SYNC:
            raise PgError("08P01", f"a message of the kind {tag!r} is not known here")

    async def _handle_simple_query(self, sql: str) -> None:
        parts = split_statements(sql)
        if not parts:
            self.stream.write(wire.make_empty_query_response())
        for each in parts:
            await self._execute_one_simple_statement(each)

    async def _execute_one_simple_statement(self, sql: str) -> None:
        self._refuse_failed(sql)
        statement = await self.session.prepare(sql, [])
        if statement.param_oids:
            raise PgError("42P02", "the statement has parameters, and was sent without values for them")
        columns = await statement.describe()
        rows, _ = await statement.bind([]).execute(0)
        if columns is not None:
            self.stream.write(wire.make_row_description(_field_specs(columns)))
            await self._send(rows, columns, [])
        self.stream.write(wire.make_command_complete(_counted(statement.sql, len(rows))))

    async def _handle_parse(self, parsed: Any) -> None:
        if parsed.statement_name:
            refuse_more(self.statements, parsed.statement_name)
        await super()._handle_parse(parsed)

    async def _handle_execute(self, parsed: Any) -> None:
        entry = self._get_portal(parsed.portal_name)
        self._refuse_failed(entry.sql)
        if entry.sql == "":
            self.stream.write(wire.make_empty_query_response())
            return
        rows, suspended = await entry.portal.execute(parsed.max_rows)
        entry.rows_returned += len(rows)
        if entry.columns is not None:
            await self._send(rows, entry.columns, entry.result_format_codes)
        if suspended:
            self.stream.write(wire.make_portal_suspended())
        else:
            statement = self.answered.get(id(entry.portal))
            self.stream.write(wire.make_command_complete(_counted(statement.sql if statement else entry.sql, entry.rows_returned)))

    async def _handle_bind(self, parsed: Any) -> None:
        """A value for each parameter, no more and no fewer: one that is left out would silently be null."""
        needed, given = len(self._get_statement(parsed.statement_name).param_oids), len(parsed.params)
        if needed != given:
            raise PgError("08P01", f"{given} values were bound to a statement with {needed} parameters")
        if len(self.portals) >= MOST_PREPARED:
            raise PgError("53400", f"a connection keeps at most {MOST_PREPARED:,} portals open; close some")
        await super()._handle_bind(parsed)
        entry = self.portals[parsed.portal_name]
        self.answered = {
            key: each for key, each in self.answered.items() if any(id(p.portal) == key for p in self.portals.values())
        }
        self.answered[id(entry.portal)] = self._get_statement(parsed.statement_name)

    def _decode_param(self, value: bytes | None, format_code: int, param_oids: list[int | None], index: int) -> Any:
        """The value of a parameter with all its digits."""
        try:
            with decimal.localcontext(prec=MOST_DIGITS):
                return super()._decode_param(value, format_code, param_oids, index)
        except _MALFORMED:
            code, how = ("22P03", "in binary form") if format_code else ("22P02", "as text")
            raise PgError(code, f"the value of parameter ${index + 1} is not one of its type {how}") from None

    def _refuse_failed(self, sql: str) -> None:
        ending = sql.lstrip()[:8].upper().startswith(("ROLLBACK", "COMMIT", "END", "ABORT"))
        if self.tx_status == b"E" and not ending:
            raise PgError("25P02", "current transaction is aborted, commands ignored until end of transaction block")

    async def _send(self, rows: list[Any], columns: Any, formats: list[int]) -> None:
        for place, row in enumerate(rows):
            try:
                self.stream.write(wire.make_data_row(encode_row(row, columns, formats)))
            except ValueError as trouble:
                raise PgError("0A000", str(trouble)) from None
            if place % 1000 == 999:
                await self.stream.drain()


def _read(read: Callable[[bytes], Any], payload: bytes) -> Any:
    try:
        return read(payload)
    except UnicodeDecodeError:
        raise PgError("22021", "the text is not UTF-8, which is what this server understands") from None
    except _MALFORMED:
        raise PgError("08P01", "a message is not what its kind should be") from None


def _counted(sql: str, rows: int) -> str:
    """What is said when a statement is done."""
    return f"{sql} {rows}" if sql in _COUNTED else sql or "SELECT 0"
