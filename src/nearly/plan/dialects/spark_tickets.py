"""Tickets in Spark SQL."""

from __future__ import annotations

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.dialects import sql
from nearly.plan.dialects.sql import Node
from nearly.plan.dialects.tickets import ticket
from nearly.plan.expressions import Call
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
    DataType,
    Decimal,
)


def ticket_of(call: Call, arguments: list[Node]) -> Node:
    words = [_word(each.type, node) for each, node in zip(call.arguments, arguments, strict=True)]
    return ticket(words, lambda a, b: sql.binary(exp.BitwiseXor, a, b))


def _word(type_: DataType, node: Node) -> Node:
    """A 64-bit number for a value; what is equal has the same."""
    if type_ in INTEGERS:
        return _cast(node, LONG)
    if type_ == BOOLEAN:
        return _cast(_cast(node, INT), LONG)
    if type_ == DATE:
        return _cast(sql.function("unix_date", node), LONG)
    if type_ == TIMESTAMP:
        return sql.function("unix_micros", node)
    if type_ == TIMESTAMP_NTZ:
        start = _cast(sql.text("1970-01-01 00:00:00"), TIMESTAMP_NTZ)
        return sql.function("timestampdiff", exp.Var(this="MICROSECOND"), start, node)
    if type_ in (STRING, BINARY):
        return _of_text(node)
    if isinstance(type_, Decimal):
        return _of_text(_cast(node, STRING))
    if type_ in FRACTIONS:
        return _of_fraction(_cast(node, DOUBLE))
    raise Unsupported(f"a ticket of type {type_} has no form in Spark SQL")


def _of_text(node: Node) -> Node:
    digits = sql.function("substring", sql.function("md5", node), sql.integer(1), sql.integer(8))
    return _cast(sql.function("conv", digits, sql.integer(16), sql.integer(10)), LONG)


def _of_fraction(node: Node) -> Node:
    """From the whole and the broken part, both exact in doubles; what is not finite counts as null."""
    whole, broken = (sql.binary(exp.Mod, node.copy(), _cast(sql.integer(divisor), DOUBLE)) for divisor in (2**31, 1))
    scaled = _cast(sql.binary(exp.Mul, broken, _cast(sql.integer(2**31), DOUBLE)), LONG)
    word = sql.binary(exp.Add, sql.binary(exp.Mul, _cast(whole, LONG), sql.integer(65_537)), scaled)
    finite = sql.binary(exp.LTE, sql.function("abs", node), _cast(sql.text("1.7976931348623157e308"), DOUBLE))
    return sql.case([finite, word], exp.Null())


def _cast(node: Node, type_: DataType) -> Node:
    return sql.cast(node, exp.DataType.build(type_.name, dialect="spark"))
