"""Comparisons, truth, nulls and choice in DuckDB; here both engines agree by themselves."""

from __future__ import annotations

from sqlglot import exp

from nearly.plan.dialects import sql
from nearly.plan.dialects.native_build import Builder, infix, renamed
from nearly.plan.dialects.native_literals import literal_list
from nearly.plan.dialects.sql import Node
from nearly.plan.expressions import Call, Literal

LONG_LIST = 64


def _case(call: Call, arguments: list[Node]) -> Node:
    return sql.case(arguments[:-1], arguments[-1])


def _is_in(call: Call, arguments: list[Node]) -> Node:
    """Of a long list of constants the text is made at once: a tree for each would take longer than the query."""
    options = call.arguments[1:]
    if len(options) > LONG_LIST and all(isinstance(each, Literal) for each in options):
        listed = exp.Var(this=literal_list([each for each in options if isinstance(each, Literal)]))
        return exp.In(this=sql.operand(arguments[0]), expressions=[listed])
    return exp.In(this=sql.operand(arguments[0]), expressions=arguments[1:])


def _not(call: Call, arguments: list[Node]) -> Node:
    return exp.Not(this=sql.operand(arguments[0]))


LOWERINGS: dict[str, Builder] = {
    "=": infix(exp.EQ),
    "<=>": infix(exp.NullSafeEQ),
    "<": infix(exp.LT),
    ">": infix(exp.GT),
    "<=": infix(exp.LTE),
    ">=": infix(exp.GTE),
    "<>": infix(exp.NEQ),
    "and": infix(exp.And),
    "or": infix(exp.Or),
    "not": _not,
    "isnull": lambda _call, arguments: sql.is_null(arguments[0]),
    "isnotnull": lambda _call, arguments: sql.is_not_null(arguments[0]),
    "in": _is_in,
    "case": _case,
    "coalesce": renamed("coalesce"),
    "greatest": renamed("greatest"),
    "least": renamed("least"),
}
