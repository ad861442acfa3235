"""DuckDB trees that the native lowerings share: types, constants and guards."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.dialects import sql
from nearly.plan.dialects.sql import Node
from nearly.plan.expressions import Call
from nearly.plan.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    MAX_PRECISION,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    decimal,
)

Builder = Callable[[Call, list[Node]], Node]
"""Builds a call from its typed form and its rendered arguments."""

_NAMES = {
    BOOLEAN: "BOOLEAN", BYTE: "TINYINT", SHORT: "SMALLINT", INT: "INTEGER", LONG: "BIGINT", FLOAT: "REAL",
    DOUBLE: "DOUBLE", STRING: "VARCHAR", BINARY: "BLOB", DATE: "DATE", TIMESTAMP: "TIMESTAMPTZ",
    TIMESTAMP_NTZ: "TIMESTAMP",
}  # fmt: skip


def type_sql(type_: DataType) -> exp.DataType:
    """The DuckDB type that holds values of a Spark type."""
    if isinstance(type_, Decimal):
        return _named(f"DECIMAL({type_.precision}, {type_.scale})")
    if type_ not in _NAMES:
        raise Unsupported(f"type {type_} has no form in the native kernel")
    return _named(_NAMES[type_])


def _named(name: str) -> exp.DataType:
    """A copy: a tree must not be in two places."""
    return _parsed(name).copy()


@cache
def _parsed(name: str) -> exp.DataType:
    return exp.DataType.build(name, dialect="duckdb")


def cast(node: Node, type_: DataType) -> Node:
    return sql.cast(node, type_sql(type_))


def as_huge(node: Node) -> Node:
    return sql.cast(node, _named("HUGEINT"))


def guard(bad: Node, value: Node, reason: str) -> Node:
    """`value`, but an error on rows where `bad` is true; a null test lets the value through.

    The engine answers an error of the native kernel by asking Spark, so a guard is also how rare inputs are left to it.
    """
    return sql.case([bad, sql.function("error", sql.text(f"native: {reason}"))], value)


def power_of_ten(exponent: int) -> Node:
    """10**exponent as an exact decimal constant."""
    if abs(exponent) >= MAX_PRECISION:
        raise Unsupported(f"the native kernel has no decimal with {abs(exponent)} digits")
    digits = str(10**exponent) if exponent >= 0 else f"0.{'0' * (-exponent - 1)}1"
    return cast(sql.text(digits), decimal(abs(exponent) + 1, max(0, -exponent)))


def not_utc() -> Node:
    """Whether the connection's time zone is another than UTC."""
    zone = sql.function("current_setting", sql.text("TimeZone"))
    return exp.Not(this=exp.Paren(this=exp.In(this=zone, expressions=[sql.text("UTC"), sql.text("Etc/UTC")])))


def instant(local: Node) -> Node:
    """The instant of a local clock time; an error outside UTC where clocks skip it or show it twice, or before 1970."""
    found = cast(local, TIMESTAMP)
    hour_before = sql.binary(exp.Sub, found.copy(), sql.function("to_hours", sql.integer(1)))
    early = sql.binary(exp.LT, local.copy(), cast(sql.text("1970-01-02"), TIMESTAMP_NTZ))
    skipped = sql.binary(exp.NEQ, cast(found.copy(), TIMESTAMP_NTZ), local.copy())
    twice = sql.binary(exp.EQ, cast(hour_before, TIMESTAMP_NTZ), local.copy())
    unsure = sql.binary(exp.Or, early, sql.binary(exp.Or, skipped, twice))
    return guard(sql.binary(exp.And, not_utc(), unsure), found, "a local time without one instant")


def renamed(name: str) -> Builder:
    """A lowering to a DuckDB function with the same arguments, type and behaviour."""
    return lambda _call, arguments: sql.function(name, *arguments)


def retyped(name: str) -> Builder:
    """A lowering to a DuckDB function with the same values in another type."""
    return lambda call, arguments: cast(sql.function(name, *arguments), call.type)


def infix(kind: type[Node]) -> Builder:
    return lambda _call, arguments: sql.binary(kind, *arguments)


def literal_value(call: Call, position: int) -> Any:
    """The value of an argument that is a literal; Unsupported when it is computed."""
    value = getattr(call.arguments[position], "value", None)
    if value is None:
        raise Unsupported(f"the native kernel needs a literal as argument {position + 1} of {call.function!r}")
    return value
