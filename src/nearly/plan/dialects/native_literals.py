"""Constants in DuckDB, typed so that its own rules for numbers never apply."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from nearly.plan.dialects import sql
from nearly.plan.dialects.literal_text import literal_text
from nearly.plan.dialects.native_build import cast, type_sql
from nearly.plan.dialects.sql import Node
from nearly.plan.expressions import Literal
from nearly.plan.quoting import native_text
from nearly.plan.types import BOOLEAN, INT, NULL, STRING, IntervalType


def literal(constant: Literal) -> Node:
    """The constant, cast to its type unless DuckDB already reads it so."""
    type_, value = constant.type, constant.value
    if value is None:
        return exp.Null() if type_ == NULL or isinstance(type_, IntervalType) else cast(exp.Null(), type_)
    if type_ == BOOLEAN:
        return exp.Boolean(this=value)
    if type_ == STRING:
        return sql.text(value)
    if type_ == INT:
        return sql.integer(value)
    if isinstance(type_, IntervalType):
        return sql.integer(value)
    return cast(sql.text(literal_text(constant)), type_)


def literal_list(constants: Sequence[Literal]) -> str:
    """The constants, all of one type, as text with commas between. Law: it is the text of their trees."""
    first = next((each for each in constants if each.value is not None), constants[0])
    if first.value is None or first.type in (BOOLEAN, NULL) or isinstance(first.type, IntervalType):
        return ", ".join(str(literal(each).sql(dialect="duckdb")) for each in constants)
    kind = type_sql(first.type).sql(dialect="duckdb")
    return ", ".join(_spelled(each, kind) for each in constants)


def _spelled(constant: Literal, kind: str) -> str:
    if constant.value is None:
        return f"CAST(NULL AS {kind})"
    if constant.type == INT:
        return str(constant.value)
    text = native_text(constant.value if constant.type == STRING else literal_text(constant))
    return text if constant.type == STRING else f"CAST({text} AS {kind})"
