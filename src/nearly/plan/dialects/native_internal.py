"""Functions that no query can name: rewriting passes make them, and the tests of these passes verify them."""

from __future__ import annotations

from sqlglot import exp

from nearly.plan.dialects import sql
from nearly.plan.dialects.native_aggregates import average_of
from nearly.plan.dialects.native_build import Builder, cast
from nearly.plan.dialects.sql import Node
from nearly.plan.expressions import Call
from nearly.plan.types import Decimal, decimal_for


def _average_of(call: Call, arguments: list[Node]) -> Node:
    """The average from a merged sum and count, as `avg` gives it for the whole."""
    total, count = arguments
    if not isinstance(call.type, Decimal):
        return sql.binary(exp.Div, total, sql.function("nullif", count, sql.integer(0)))
    return average_of(total, decimal_for(call.arguments[0].type), count, call.type)


def _raise_error(call: Call, arguments: list[Node]) -> Node:
    return cast(sql.function("error", arguments[0]), call.type)


LOWERINGS: dict[str, Builder] = {
    "average_of": _average_of,
    "raise_error": _raise_error,
}
