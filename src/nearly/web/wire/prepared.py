"""PREPARE, EXECUTE and DEALLOCATE: statements that a client keeps by a name, in the words of SQL."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pg_mimic import PgError, Portal, ResultColumn, Statement
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from nearly.errors import ParseError
from nearly.web.wire.parameters import Value, oid_named
from nearly.web.wire.statements import KnownStatement
from nearly.web.wire.texts import NAME, folded, read, tokens_of

Prepare = Callable[[str, list[int | None]], Awaitable[Statement]]
MOST_PREPARED = 10_000
"""Statements that a client may keep prepared, and portals that it may keep open."""
_KEPT = ("SELECT", "VALUES", "WITH", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE", "(")
_FORGET = re.compile(rf"^\s*DEALLOCATE\s+(?:PREPARE\s+)?({NAME})\s*;?\s*$", re.IGNORECASE)


class PreparedStatements:
    """The statements that a connection keeps, by name; those of the protocol's own messages are among them, as in Postgres."""

    def __init__(self, connection: Any, prepare: Prepare) -> None:
        self._connection = connection
        self._prepare = prepare

    async def statement(self, sql: str) -> Statement | None:
        """The statement about prepared statements that a text is."""
        forgotten = _FORGET.match(sql)
        if forgotten is not None:
            return self._forget(forgotten.group(1))
        words = tokens_of(sql)
        match words[0].text.upper():
            case "PREPARE":
                return await self._keep(sql, words)
            case "EXECUTE":
                return self._execute(sql, words)
        return None

    def clear(self) -> None:
        self._connection.statements.clear()

    async def _keep(self, sql: str, words: list[Token]) -> Statement:
        usage = "write PREPARE name (types) AS query"
        name, place = _named(sql, words, usage)
        types: list[int | None] = []
        if place < len(words) and words[place].token_type == TokenType.L_PAREN:
            end = _closing(words, place, usage)
            types = [oid_named(each) for each in _parts(sql, words[place + 1 : end])]
            place = end + 1
        if place + 1 >= len(words) or words[place].text.upper() != "AS":
            raise ParseError(usage)
        text = sql[words[place + 1].start :]
        if words[place + 1].text.upper() not in _KEPT:
            raise ParseError(f"PREPARE keeps queries and changes of tables, not {words[place + 1].text.upper()}")
        inner = await self._prepare(text, types)
        await inner.describe()  # a name that is not there is told now

        def keep() -> None:
            refuse_more(self._connection.statements, name)
            self._connection.statements[name] = inner

        return KnownStatement("PREPARE", effect=keep)

    def _execute(self, sql: str, words: list[Token]) -> Statement:
        usage = "write EXECUTE name (values)"
        name, place = _named(sql, words, usage)
        inner = self._connection.statements.get(name)
        if inner is None:
            raise PgError("26000", f'prepared statement "{name}" does not exist')
        given: list[Value] = []
        if place < len(words):
            end = _closing(words, place, usage)
            if words[place].token_type != TokenType.L_PAREN or end != len(words) - 1:
                raise ParseError(usage)
            given = _values(sql[words[place].end + 1 : words[end].start], inner.param_oids)
        if len(given) != len(inner.param_oids):
            raise PgError("42601", f'prepared statement "{name}" takes {len(inner.param_oids)} values, not {len(given)}')
        return _Executed(inner, given)

    def _forget(self, word: str) -> Statement:
        if word.upper() == "ALL":
            return KnownStatement("DEALLOCATE ALL", effect=self.clear)
        name = folded(word)

        def forget() -> None:
            if self._connection.statements.pop(name, None) is None:
                raise PgError("26000", f'prepared statement "{name}" does not exist')

        return KnownStatement("DEALLOCATE", effect=forget)


def refuse_more(statements: Mapping[str, Statement], name: str) -> None:
    """A name is given once, and there is an end to how many there are."""
    if name in statements:
        raise PgError("42P05", f'prepared statement "{name}" already exists')
    if len(statements) >= MOST_PREPARED:
        raise PgError("53400", f"a connection keeps at most {MOST_PREPARED:,} prepared statements; close some")


class _Executed(Statement):
    """A prepared statement with its values."""

    def __init__(self, inner: Statement, values: list[Value]) -> None:
        self._inner = inner
        self._values = values
        self.param_oids: list[int | None] = []

    @property
    def sql(self) -> str:
        return self._inner.sql

    async def describe(self) -> list[ResultColumn] | None:
        return await self._inner.describe()

    def bind(self, params: list[Any]) -> Portal:  # noqa: ARG002  its values are in its text
        return self._inner.bind(self._values)


def _named(sql: str, words: list[Token], usage: str) -> tuple[str, int]:
    """The name after the first word, and the place of what follows it."""
    if len(words) < 2 or re.fullmatch(NAME, sql[words[1].start : words[1].end + 1]) is None:
        raise ParseError(usage)
    return folded(sql[words[1].start : words[1].end + 1]), 2


def _closing(words: list[Token], start: int, usage: str) -> int:
    depth = 0
    for place in range(start, len(words)):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(words[place].token_type, 0)
        if depth == 0:
            return place
    raise ParseError(usage)


def _parts(sql: str, words: list[Token]) -> list[str]:
    """What stands between the commas of a list."""
    parts, depth, start = [], 0, 0
    for place, word in enumerate(words):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(word.token_type, 0)
        if word.token_type == TokenType.COMMA and depth == 0:
            parts.append(words[start:place])
            start = place + 1
    return [sql[part[0].start : part[-1].end + 1] if part else "" for part in [*parts, words[start:]]]


def _values(text: str, types: Sequence[int | None]) -> list[Value]:
    """The values of an EXECUTE: plain ones as their text, which is checked like one that a client binds; others as expressions."""
    tree = read(f"SELECT {text}") if text.strip() else None
    if not isinstance(tree, exp.Select) or any(each for name, each in tree.args.items() if name != "expressions"):
        raise ParseError("EXECUTE takes values between commas")
    refused = (exp.Column, exp.Query, exp.Star, exp.Parameter, exp.AggFunc, exp.Window, exp.Alias)
    if any(isinstance(each, refused) for item in tree.expressions for each in item.walk()):
        raise ParseError("EXECUTE takes values, without columns, subqueries and aggregates")
    oids = [*types, *([None] * len(tree.expressions))]
    return [_value(each, oid) for each, oid in zip(tree.expressions, oids, strict=False)]


def _value(item: exp.Expr, oid: int | None) -> Value:
    match item:
        case exp.Null():
            return None
        case exp.Literal():
            return str(item.name)
        case exp.Boolean():
            return "true" if item.this else "false"
        case exp.Neg() if isinstance(item.this, exp.Literal) and not item.this.is_string:
            return f"-{item.this.name}"
        case exp.Paren():
            return _value(item.this, oid)
        case exp.Cast() if isinstance(item.this, exp.Literal) and oid_named(item.to.sql(dialect="postgres")) == oid:
            return str(item.this.name)
    return item
