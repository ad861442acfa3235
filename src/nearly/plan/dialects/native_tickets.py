"""Tickets in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.dialects import native_casts, sql
from nearly.plan.dialects.native_build import cast
from nearly.plan.dialects.sql import Node
from nearly.plan.dialects.tickets import ticket
from nearly.plan.expressions import Call, Cast, Expression
from nearly.plan.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FRACTIONS,
    INT,
    INTEGERS,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
)


def ticket_of(call: Call, arguments: list[Node]) -> Node:
    words = [_word(each, node) for each, node in zip(call.arguments, arguments, strict=True)]
    return ticket(words, lambda a, b: sql.function("xor", a, b))


def _word(given: Expression, node: Node) -> Node:
    """A 64-bit number for a value; what is equal has the same."""
    type_ = given.type
    if type_ in INTEGERS:
        return node if type_ == LONG else cast(node, LONG)
    if type_ == BOOLEAN:
        return cast(cast(node, INT), LONG)
    if type_ == DATE:
        return cast(sql.binary(exp.Sub, node, cast(sql.text("1970-01-01"), DATE)), LONG)
    if type_ in (TIMESTAMP, TIMESTAMP_NTZ):
        return sql.function("epoch_us", node)
    if type_ in (STRING, BINARY):
        return _of_text(node)
    if isinstance(type_, Decimal):
        return _of_text(native_casts.convert(Cast(STRING, given), node))
    if type_ in FRACTIONS:
        return _of_fraction(cast(node, DOUBLE))
    raise Unsupported(f"a ticket of type {type_} has no form in the native kernel")


def _of_text(node: Node) -> Node:
    digits = sql.function(
        "concat", sql.text("0x"), sql.function("substring", sql.function("md5", node), sql.integer(1), sql.integer(8))
    )
    return sql.case([sql.is_null(node.copy()), exp.Null()], cast(digits, LONG))


def _of_fraction(node: Node) -> Node:
    """From the whole and the broken part, both exact in doubles; what is not finite counts as null."""
    whole, broken = (sql.binary(exp.Mod, node.copy(), cast(sql.integer(divisor), DOUBLE)) for divisor in (2**31, 1))
    scaled = cast(sql.function("trunc", sql.binary(exp.Mul, broken, sql.integer(2**31))), LONG)
    word = sql.binary(exp.Add, sql.binary(exp.Mul, cast(sql.function("trunc", whole), LONG), sql.integer(65_537)), scaled)
    finite = sql.binary(exp.LTE, sql.function("abs", node), cast(sql.text("1.7976931348623157e308"), DOUBLE))
    return sql.case([finite, word], exp.Null())
