"""Aggregates in DuckDB with Spark's types."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from nearly.plan.dialects import sql
from nearly.plan.dialects.native_build import cast, guard
from nearly.plan.dialects.native_numbers import scaled_integer, unscaled
from nearly.plan.dialects.sql import Node
from nearly.plan.expressions import AggregateCall
from nearly.plan.types import LONG, Decimal, bounded_decimal, decimal_for

Primitive = Callable[..., Node]
"""Makes one aggregate of DuckDB, with the call's DISTINCT, FILTER and window attached."""

Builder = Callable[[AggregateCall, list[Node], Primitive], Node]


def _count(call: AggregateCall, arguments: list[Node], primitive: Primitive) -> Node:
    """Rows in which every argument is present."""
    if len(arguments) <= 1:
        return primitive("count", *(arguments or [exp.Star()]))
    tests = [sql.is_null(argument) for argument in arguments]
    missing = tests[0]
    for test in tests[1:]:
        missing = sql.binary(exp.Or, missing, test)
    row = sql.function("row", *(argument.copy() for argument in arguments))
    return primitive("count", sql.case([missing, exp.Null()], row))


def _cast(name: str) -> Builder:
    return lambda call, arguments, primitive: cast(primitive(name, *arguments), call.type)


def _plain(name: str) -> Builder:
    return lambda _call, arguments, primitive: primitive(name, *arguments)


def _average(call: AggregateCall, arguments: list[Node], primitive: Primitive) -> Node:
    """A decimal average is the exact sum over the count, rounded HALF_UP once; DuckDB's own would be a double."""
    if not isinstance(call.type, Decimal):
        return primitive("avg", *arguments)
    operand = decimal_for(call.arguments[0].type)
    total = primitive("sum", *arguments)
    count = primitive("count", *(argument.copy() for argument in arguments))
    return average_of(total, bounded_decimal(operand.precision + 10, operand.scale), count, call.type)


def average_of(total: Node, total_type: Decimal, count: Node, result: Decimal) -> Node:
    """total / count rounded HALF_UP; null for no rows."""
    digits = result.scale + 1
    present = sql.function("nullif", count, sql.integer(0))
    quotient = sql.binary(exp.IntDiv, scaled_integer(total, total_type, digits), present)
    return unscaled(quotient, digits, result)


def _count_if(call: AggregateCall, arguments: list[Node], primitive: Primitive) -> Node:
    """0 over no rows, where DuckDB's count_if is null."""
    return primitive("count", sql.case([arguments[0], sql.integer(1)], None))


def _correlation(call: AggregateCall, arguments: list[Node], primitive: Primitive) -> Node:
    """Null over one pair; over more, a constant side is null in Spark and NaN in DuckDB, so NaN is left to Spark."""
    found = primitive("corr", *arguments)
    pairs = primitive("regr_count", *(argument.copy() for argument in arguments))
    single = sql.binary(exp.EQ, pairs, sql.integer(1))
    checked = guard(sql.function("isnan", found), found.copy(), "corr over a constant or NaN")
    return sql.case([single, exp.Null()], checked)


def _groups_seen(call: AggregateCall, arguments: list[Node], primitive: Primitive) -> Node:
    """How many different small numbers there are: one bit each."""
    bit = sql.binary(exp.BitwiseLeftShift, cast(sql.integer(1), LONG), arguments[0])
    return cast(sql.function("bit_count", primitive("bit_or", bit)), LONG)


def _groups_of(call: AggregateCall, arguments: list[Node], primitive: Primitive) -> Node:
    """Which small numbers there are, a bit each."""
    return primitive("bit_or", sql.binary(exp.BitwiseLeftShift, cast(sql.integer(1), LONG), arguments[0]))


INTERNAL: dict[str, Builder] = {"groups_seen": _groups_seen, "groups_of": _groups_of, "groups_in": _plain("bit_or")}
"""Aggregates that no query can name: rewriting passes make them."""

LOWERINGS: dict[str, Builder] = {
    "count": _count,
    "sum": _cast("sum"),
    "avg": _average,
    "min": _plain("min"),
    "max": _plain("max"),
    "count_if": _count_if,
    "bool_and": _plain("bool_and"),
    "bool_or": _plain("bool_or"),
    "stddev": _plain("stddev_samp"),
    "stddev_pop": _plain("stddev_pop"),
    "variance": _plain("var_samp"),
    "var_pop": _plain("var_pop"),
    "covar_samp": _plain("covar_samp"),
    "covar_pop": _plain("covar_pop"),
    "corr": _correlation,
    "percentile": _plain("quantile_cont"),
}
