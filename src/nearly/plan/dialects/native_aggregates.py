"""Aggregates in DuckDB with Spark's types."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from sqlglot import exp

from nearly.plan.dialects import sql
from nearly.plan.dialects.native_build import cast, guard, tree
from nearly.plan.dialects.native_numbers import scaled_integer, unscaled
from nearly.plan.dialects.native_tickets import ticket_of
from nearly.plan.dialects.sql import Builder, Node
from nearly.plan.expressions import AggregateCall, Call
from nearly.plan.types import Decimal, bounded_decimal, decimal_for

Primitive = Callable[..., Node]
"""Makes one aggregate of DuckDB, with the call's DISTINCT, FILTER and window attached."""

AggregateBuilder = Callable[[AggregateCall, list[Node], Primitive], Node]


def _count(call: AggregateCall, arguments: list[Node], primitive: Primitive) -> Node:
    """Rows in which every argument is present."""
    if len(arguments) <= 1:
        return primitive("count", *(arguments or [exp.Star()]))
    missing = reduce(lambda left, right: sql.binary(exp.Or, left, right), [sql.is_null(argument) for argument in arguments])
    row = sql.function("row", *(argument.copy() for argument in arguments))
    return primitive("count", sql.case([missing, exp.Null()], row))


def _plain(name: str) -> AggregateBuilder:
    return lambda _call, arguments, primitive: primitive(name, *arguments)


def _average(call: AggregateCall, arguments: list[Node], primitive: Primitive) -> Node:
    """A decimal average is the exact sum over the count, rounded HALF_UP once; DuckDB's own would be a double."""
    if not isinstance(call.type, Decimal):
        return primitive("avg", *arguments)
    operand = decimal_for(call.arguments[0].type)
    total, count = primitive("sum", *arguments), primitive("count", *(argument.copy() for argument in arguments))
    return _quotient(total, bounded_decimal(operand.precision + 10, operand.scale), count, call.type)


def _quotient(total: Node, total_type: Decimal, count: Node, result: Decimal) -> Node:
    """total / count rounded HALF_UP; null for no rows."""
    digits = result.scale + 1
    quotient = f"{scaled_integer('n', total_type, digits)} // nullif(d, 0)"
    return tree(unscaled(quotient, digits, result), n=total, d=count)


def _average_of(call: Call, arguments: list[Node]) -> Node:
    """The average from a merged sum and count, as `avg` gives it for the whole."""
    total, count = arguments
    if not isinstance(call.type, Decimal):
        return tree("n / nullif(d, 0)", n=total, d=count)
    return _quotient(total, decimal_for(call.arguments[0].type), count, call.type)


def _correlation(call: AggregateCall, arguments: list[Node], primitive: Primitive) -> Node:
    """Null over one pair; over more, a constant side is null in Spark and NaN in DuckDB, so NaN is left to Spark."""
    pairs = primitive("regr_count", *(argument.copy() for argument in arguments))
    checked = guard("isnan(found)", "found", "corr over a constant or NaN", found=primitive("corr", *arguments))
    return tree("CASE WHEN pairs = 1 THEN NULL ELSE checked END", pairs=pairs, checked=checked)


def _groups_of(call: AggregateCall, arguments: list[Node], primitive: Primitive) -> Node:
    """Which small numbers there are, a bit each."""
    return primitive("bit_or", tree("CAST(1 AS BIGINT) << a", a=arguments[0]))


def _groups_seen(call: AggregateCall, arguments: list[Node], primitive: Primitive) -> Node:
    """How many different small numbers there are."""
    return tree("CAST(bit_count(groups) AS BIGINT)", groups=_groups_of(call, arguments, primitive))


def _groups_of_most(call: AggregateCall, arguments: list[Node], primitive: Primitive) -> Node:
    """As many bits as all but a few of the rows have at least."""
    fewest = primitive("quantile_disc", tree("bit_count(coalesce(a, 0))", a=arguments[0]), tree("0.05"))
    return tree("(CAST(1 AS BIGINT) << fewest) - 1", fewest=fewest)


INTERNAL: dict[str, AggregateBuilder] = {
    "groups_seen": _groups_seen, "groups_of": _groups_of, "groups_in": _plain("bit_or"), "groups_of_most": _groups_of_most,
}  # fmt: skip
INTERNAL_FUNCTIONS: dict[str, Builder] = {
    "average_of": _average_of,
    "raise_error": lambda call, arguments: cast(sql.function("error", arguments[0]), call.type),
    "ticket": ticket_of,
}
"""What no query can name: rewriting passes make it, and the tests of these passes verify it."""

LOWERINGS: dict[str, AggregateBuilder] = {
    "count": _count,
    "sum": lambda call, arguments, primitive: cast(primitive("sum", *arguments), call.type),
    "avg": _average,
    "corr": _correlation,
    # 0 over no rows, where DuckDB's count_if is null
    "count_if": lambda _call, arguments, primitive: primitive("count", tree("CASE WHEN a THEN 1 END", a=arguments[0])),
    "stddev": _plain("stddev_samp"),
    "variance": _plain("var_samp"),
    "percentile": _plain("quantile_cont"),
    **{name: _plain(name) for name in ("min", "max", "bool_and", "bool_or", "stddev_pop", "var_pop", "covar_samp", "covar_pop")},
}
