"""One connection of a Postgres client: each of its statements finds whoever answers it."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
from pg_mimic import TEXT, BaseSession, PgError, ResultColumn, Statement
from pg_mimic.messages import make_notice_response, make_parameter_status
from pg_mimic.typeinfo import TypeInfoStatement, is_typeinfo_query
from sqlglot import exp
from sqlglot.errors import SqlglotError

from nearly.answer import Answer
from nearly.errors import NearlyError
from nearly.looking import look
from nearly.plan.syntax.goal import Goal, split_goal
from nearly.plan.types import DataType, is_numeric
from nearly.printing.numbers import percent_text
from nearly.web.asking import EARLY, EXACT, Desk, Wish
from nearly.web.changing import StatementRunner
from nearly.web.encoding import type_name
from nearly.web.limits import TooMuch
from nearly.web.wire import kinds, texts
from nearly.web.wire.catalogue import FRESH_SECONDS, MOST_SECONDS, Catalogue
from nearly.web.wire.catalogue_text import asks_catalogue
from nearly.web.wire.cursors import Cursors
from nearly.web.wire.failures import told
from nearly.web.wire.parameters import giver, parameter_types
from nearly.web.wire.prepared import PreparedStatements
from nearly.web.wire.statements import Asked, KnownStatement, Row, bounded, with_bounds
from nearly.web.wire.transactions import of_transaction
from nearly.web.wire.variables import DEFAULTS, Variables, reset, setting, shown

logger = logging.getLogger(__name__)

VERSION = "PostgreSQL 16.0 (nearly)"
_IDLE = re.compile(r"^\s*(LISTEN|UNLISTEN|LOCK|ANALYZE|VACUUM|CHECKPOINT)\b", re.IGNORECASE)
_DISCARD = re.compile(r"^\s*DISCARD\s+ALL\s*;?\s*$", re.IGNORECASE)
_LOOK = re.compile(r"^\s*(SHOW\s+(TABLES|VIEWS|COLUMNS)|DESC|DESCRIBE)\b", re.IGNORECASE)
_EXPLAIN = re.compile(r"^\s*EXPLAIN\s+(?:\([^)]*\)\s*|ANALYZE\s+|VERBOSE\s+)*(.+)$", re.IGNORECASE | re.DOTALL)


class WireSession(BaseSession):
    """Answers the statements of one connection."""

    def __init__(self, desk: Desk, changer: StatementRunner, catalogue: Catalogue, gone: asyncio.Event) -> None:
        self._desk = desk
        self._changer = changer
        self._catalogue = catalogue
        self._gone = gone
        self._connection: Any = None
        self._variables = Variables()

    async def init(self, connection: Any) -> None:
        self._connection = connection
        self._cursors = Cursors(connection, self.prepare)
        self._prepared = PreparedStatements(connection, self.prepare)
        for name, value in connection.startup_params.items():
            if name not in ("user", "database", "options", "replication"):
                self._variables.given[name.lower()] = value
        for name, value in re.findall(r"-c\s*([\w.]+)=((?:\\ |\S)+)", connection.startup_params.get("options", "")):
            self._variables.set(name, value.replace("\\ ", " "))

    async def prepare(self, sql: str, param_oids: list[int | None]) -> Statement:
        """The statement that a text is."""
        try:
            self._desk.limits.check_text(sql)
            text = texts.without_comment(sql)
            return (
                self._control(text)
                or await self._cursors.statement(text, param_oids)
                or await self._prepared.statement(text)
                or await self._question(text, param_oids)
            )
        except Exception as trouble:  # noqa: BLE001  each is told, ours in words, others in the log
            raise told(trouble) from None

    # --- about the connection ----------------------------------------------------------------------------------------

    def _control(self, sql: str) -> Statement | None:
        if not sql:
            return KnownStatement("")
        if _LOOK.match(sql):
            return self._look(sql)
        if is_typeinfo_query(sql):
            return TypeInfoStatement(sql)
        if _DISCARD.match(sql):
            return KnownStatement("DISCARD ALL", effect=self._forget_all)
        known = of_transaction(sql, self._connection, self._cursors.transaction_over)
        idle = _IDLE.match(sql)
        if known is not None or idle is not None:
            return known or KnownStatement(idle.group(1).upper() if idle is not None else "")
        return self._settings(sql)

    def _settings(self, sql: str) -> Statement | None:
        given = setting(sql)
        if given is not None:
            return KnownStatement("SET", effect=lambda: self._set(*given))
        asked = shown(sql)
        if asked == "all":
            rows = [(name, self._variables.get(name), "") for name in sorted(DEFAULTS)]
            return KnownStatement("SHOW", [ResultColumn(name, TEXT) for name in ("name", "setting", "description")], rows)
        if asked is not None:
            name = {"time zone": "timezone"}.get(asked, asked)
            if not self._variables.knows(name):
                raise PgError("42704", f"unknown setting {name!r}")
            label = name.replace(" ", "_").removesuffix("_level")
            return KnownStatement("SHOW", [ResultColumn(label, TEXT)], [(self._variables.get(name),)])
        taken = reset(sql)
        if taken is not None:
            return KnownStatement(
                "RESET", effect=self._variables.given.clear if taken == "all" else lambda: self._variables.given.pop(taken, None)
            )
        return None

    def _set(self, name: str, value: str) -> None:
        if name:
            self._variables.set(name, value)
            reported = {"timezone": "TimeZone", "datestyle": "DateStyle", "application_name": "application_name"}.get(name.lower())
            if reported is not None:
                self._connection.stream.write(make_parameter_status(reported, self._variables.get(name)))

    def _forget_all(self) -> None:
        self._variables.given.clear()
        self._cursors.clear()
        self._prepared.clear()

    # --- questions ---------------------------------------------------------------------------------------------------

    async def _question(self, sql: str, told_types: list[int | None]) -> Statement:
        explained = _EXPLAIN.match(sql)
        if explained is not None:
            return self._explain(explained.group(1))
        text, goal = split_goal(sql)
        tree = texts.read(text)
        if isinstance(tree, exp.Query) and asks_catalogue(tree):
            return self._about_catalogue(tree, told_types)
        if tree is not None and not isinstance(tree, exp.Query | exp.Values):
            return self._change(sql, await self._types(tree, told_types))
        return self._query(text, goal, [] if tree is None else await self._types(tree, told_types))

    async def _types(self, tree: exp.Expr, told_types: list[int | None]) -> list[int | None]:
        return await asyncio.to_thread(parameter_types, tree, told_types, self._catalogue.columns_of)

    def _query(self, text: str, goal: Goal, types: list[int | None]) -> Statement:
        bounds = self._variables.bounds
        numeric: list[bool] = []

        async def shape() -> list[ResultColumn]:
            found = await _thread(lambda: self._desk.db.sql(texts.query_text(text, giver(None, types))).columns)
            numeric[:] = [is_numeric(type_) for _, type_ in found]
            columns = [kinds.column(name, type_) for name, type_ in found]
            return with_bounds(columns, numeric) if bounds else columns

        async def run(params: list[Any]) -> Iterable[Row]:
            columns = await statement.describe() or []
            answer = await self._answer(await _thread(lambda: texts.query_text(text, giver(params, types))), goal)
            if answer.table.num_columns != len(numeric):
                raise PgError("0A000", "cached plan must not change result type: a table has other columns now; prepare it again")
            table = bounded(answer.table, answer.low, answer.high, numeric) if bounds else answer.table
            return kinds.rows(table, columns)

        statement = Asked("SELECT", types, shape, run)
        return statement

    async def _answer(self, text: str, goal: Goal) -> Answer:
        """The answer of a query, for as long as the client waits; how exact it is, is told in a notice."""
        error = goal.error or (self._variables.share("nearly.error") if goal.seconds is None else None)
        seconds = goal.seconds or (self._variables.share("nearly.seconds") if goal.error is None else None)
        confidence = goal.confidence or self._variables.share("nearly.confidence") or 0.95
        early = error is not None or seconds is not None
        wish = Wish(text, error, seconds, confidence, EARLY if early else EXACT)
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        asking = self._desk.ask(wish, f"wire {self._connection.pid}", partial(_awake, loop, news))
        try:
            async with asyncio.timeout(self._variables.timeout):
                while not asking.over:
                    await _first(news, self._gone)
                    news.clear()
                    if self._gone.is_set() and not asking.over:
                        raise PgError("57014", "the client is gone")
        except TimeoutError:
            raise PgError("57014", "the query took longer than statement_timeout") from None
        finally:
            if not asking.over:
                loop.run_in_executor(None, self._desk.drop, asking)
        if asking.newest is None or asking.trouble is not None:
            raise told(asking.trouble or TooMuch("the query ended without an answer"))
        self._desk.limits.check_rows(asking.newest.table.num_rows)
        if early:
            self._notice(_exactness(asking.newest))
        return asking.newest

    def _notice(self, text: str, severity: str = "NOTICE") -> None:
        self._connection.stream.write(make_notice_response({"S": severity, "V": severity, "C": "00000", "M": text}))

    def _explain(self, sql: str) -> Statement:
        async def shape() -> list[ResultColumn]:
            return [ResultColumn("QUERY PLAN", TEXT)]

        async def run(_: list[Any]) -> Iterable[Row]:
            text = texts.query_text(split_goal(sql)[0], giver(None, []))
            return [(line,) for line in (await _thread(lambda: self._desk.db.sql(text).explain())).splitlines()]

        return Asked("EXPLAIN", [], shape, run)

    def _look(self, sql: str) -> Statement:
        """SHOW TABLES, SHOW COLUMNS and DESCRIBE, as everywhere in nearly."""
        found: list[pa.Table] = []

        async def shape() -> list[ResultColumn]:
            found[:] = [await _thread(lambda: look(self._desk.db, sql))]
            return [ResultColumn(field.name, _oid(field.type)) for field in found[0].schema]

        async def run(_: list[Any]) -> Iterable[Row]:
            return kinds.rows(found[0], await statement.describe() or [])

        statement = Asked("SHOW", [], shape, run)
        return statement

    def _change(self, sql: str, types: list[int | None]) -> Statement:
        async def shape() -> None:
            return None

        async def run(params: list[Any]) -> Iterable[Row]:
            if self._connection.tx_status == b"T" and self._changer.allowed:
                raise PgError("0A000", "a change cannot be taken back here, so it is refused inside a transaction; use autocommit")
            done = await _thread(lambda: self._changer.run(texts.change_text(sql, giver(params, types))))
            statement.sql = _tag(done)
            return []

        statement = Asked(sql.split(maxsplit=1)[0].upper(), types, shape, run)
        return statement

    # --- the catalogue -----------------------------------------------------------------------------------------------

    def _about_catalogue(self, tree: exp.Expr, told_types: list[int | None]) -> Statement:
        types = parameter_types(tree, told_types, lambda _: {})
        kept: list[tuple[float, pa.Table]] = []  # what told the columns just before is the answer, too

        async def shape() -> list[ResultColumn]:
            found = await self._catalogued(tree, giver(None, types))
            kept[:] = [] if types else [(time.monotonic() + FRESH_SECONDS, found)]
            return _columns(tree, found)

        async def run(params: list[Any]) -> Iterable[Row]:
            self._configure(tree)
            until, found = kept.pop() if kept else (0.0, None)
            if found is None or until < time.monotonic():
                found = await self._catalogued(tree, giver(params, types))
            return kinds.rows(found, _columns(tree, found))

        return Asked("SELECT", types, shape, run)

    async def _catalogued(self, tree: exp.Expr, give: texts.Give) -> pa.Table:
        """The answer of the catalogue; a query that it does not understand finds nothing, and that is said."""
        asked = texts.with_values(tree.copy(), give)
        connection = self._connection
        about = {"user": connection.username, "database": connection.database, "version": VERSION, "pid": str(connection.pid)}
        lookup = self._catalogue.lookup()
        try:
            return await asyncio.to_thread(lookup.answer, asked, about, self._variables.get)
        except asyncio.CancelledError:
            lookup.stop()
            raise
        except duckdb.InterruptException:
            raise PgError("57014", f"a query of the catalogue may take {MOST_SECONDS:.0f} seconds") from None
        except (duckdb.Error, SqlglotError) as trouble:
            logger.info("a query of the catalogue is not understood (%s): %s", trouble, asked.sql(dialect="postgres"))
            self._notice(
                f"nearly does not understand this query of the catalogue, and finds nothing: {str(trouble).splitlines()[0]}",
                "WARNING",
            )
            names = [each.alias_or_name or "?column?" for each in asked.selects] if isinstance(asked, exp.Query) else []
            return pa.Table.from_arrays([pa.array([], pa.string()) for _ in names], names=names)

    def _configure(self, tree: exp.Expr) -> None:
        for call in tree.find_all(exp.Anonymous):
            if call.name.lower() == "set_config" and all(isinstance(each, exp.Literal) for each in call.expressions[:2]):
                self._variables.set(call.expressions[0].name, call.expressions[1].name)


def _columns(tree: exp.Expr, found: pa.Table) -> list[ResultColumn]:
    """The columns of the catalogue's answer, named as Postgres names them."""
    first: Any = tree
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    items = first.expressions if isinstance(first, exp.Select) else []
    plain = len(items) == found.num_columns and not any(each.is_star for each in items)
    names = [each.alias or texts.name_of(_inner(each)) for each in items] if plain else found.column_names
    return [ResultColumn(name, _oid(field.type)) for name, field in zip(names, found.schema, strict=True)]


def _inner(item: exp.Expr) -> exp.Expr:
    return item.expression if isinstance(item, exp.Dot) else item


def _oid(type_: pa.DataType) -> int:
    if pa.types.is_list(type_):
        return kinds.oid_of(DataType(f"array<{type_name(type_.value_type)}>"))
    return kinds.oid_of(DataType(type_name(type_)))


def _exactness(answer: Answer) -> str:
    """How exact an answer is, and where it comes from."""
    if answer.exact:
        return f"exact, from {answer.source}"
    return f"an estimate, {answer.state}, from {answer.source}; intervals hold at {percent_text(answer.confidence)} confidence"


def _tag(done: dict[str, Any]) -> str:
    """What Postgres says when a statement is done."""
    match str(done.get("operation", "")).split(":")[0].lower():
        case "insert":
            return f"INSERT 0 {done.get('inserted', 0)}"
        case "delete":
            return f"DELETE {done.get('deleted', 0)}"
        case "update":
            return f"UPDATE {done.get('updated', 0)}"
        case "merge":
            return f"MERGE {sum(done.get(each, 0) for each in ('inserted', 'updated', 'deleted'))}"
    return "OK"


async def _thread(do: Callable[[], Any]) -> Any:
    """Something that takes a moment, in a thread; its errors are told as the wire tells them."""
    try:
        return await asyncio.to_thread(do)
    except (NearlyError, SqlglotError) as trouble:
        raise told(trouble) from None


def _awake(loop: asyncio.AbstractEventLoop, news: asyncio.Event) -> None:
    """From any thread: there is something new."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(news.set)


async def _first(*events: asyncio.Event) -> None:
    """Wait until one of some events is set."""
    waiting = [asyncio.ensure_future(each.wait()) for each in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
