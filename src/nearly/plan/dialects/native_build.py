"""What the native lowerings share: types, expressions written in DuckDB's SQL, guards, constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from nearly.errors import Unsupported
from nearly.plan import types
from nearly.plan.dialects import sql
from nearly.plan.dialects.sql import Builder, Node
from nearly.plan.expressions import Call, Literal
from nearly.plan.quoting import native_text

_NAMES = {
    types.BOOLEAN: "BOOLEAN", types.BYTE: "TINYINT", types.SHORT: "SMALLINT", types.INT: "INTEGER", types.LONG: "BIGINT",
    types.FLOAT: "REAL", types.DOUBLE: "DOUBLE", types.STRING: "VARCHAR", types.BINARY: "BLOB", types.DATE: "DATE",
    types.TIMESTAMP: "TIMESTAMPTZ", types.TIMESTAMP_NTZ: "TIMESTAMP",
}  # fmt: skip


class _Spelled(DuckDB):
    """DuckDB's grammar, in which functions are called as they are spelled."""

    class Parser(DuckDB.Parser):  # type: ignore[valid-type, misc]
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CAST": DuckDB.Parser.FUNCTION_PARSERS["CAST"]}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": DuckDB.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}


def type_name(type_: types.DataType) -> str:
    """DuckDB's name of the type that holds values of a Spark type."""
    if isinstance(type_, types.Decimal):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if type_ not in _NAMES:
        raise Unsupported(f"type {type_} has no form in the native kernel")
    return _NAMES[type_]


def type_sql(type_: types.DataType) -> exp.DataType:
    """The DuckDB type that holds values of a Spark type, as a tree of its own."""
    return _type(type_name(type_)).copy()


@cache
def _type(name: str) -> exp.DataType:
    return exp.DataType.build(name, dialect="duckdb")


def cast(node: Node, type_: types.DataType) -> Node:
    return sql.cast(node, type_sql(type_))


LARGE = 60
"""Nodes of a tree from which on it is not repeated; less costs less than a lambda."""
_LET = "let_value"


def tree(text: str, **parts: Node) -> Node:
    """The tree of an expression in DuckDB's SQL, with other trees in the place of its names.

    The text is the lowering's own; what users wrote comes as trees. Many lowerings name an argument more than once, to test it and
    to use it, and the text of nested calls would grow exponentially. So large trees become a parameter of a lambda over a list of
    one element, where they are written, and computed, once: `list_transform([{c0: value, ...}], lambda let_value: ...)[1]`.
    Law: a lowering that takes an argument in one text alone is at most as long as a constant times the number of its nodes.

    >>> tree("CASE WHEN x > 0 THEN ln(x) END", x=sql.binary(exp.Add, sql.column("a"), sql.integer(1))).sql(dialect="duckdb")
    'CASE WHEN ("a" + 1) > 0 THEN LN("a" + 1) END'
    """
    made = _parsed(text).copy()
    places = list(made.find_all(exp.Column))
    uses = Counter(place.name for place in places)
    if not any(uses[name] > 1 and _is_large(part) for name, part in parts.items()):
        return _filled(made, places, parts)
    constants = {name: part for name, part in parts.items() if isinstance(part, exp.Literal | exp.Null | exp.Boolean)}
    given = [name for name in uses if name not in constants]
    parameter = exp.Column(this=exp.to_identifier(_LET))
    inner = {name: sql.function("struct_extract", parameter.copy(), sql.text(f"c{place}")) for place, name in enumerate(given)}
    body = exp.Lambda(this=_filled(made, places, constants | inner), expressions=[exp.to_identifier(_LET)])
    values = [exp.PropertyEQ(this=exp.to_identifier(f"c{place}"), expression=parts[name]) for place, name in enumerate(given)]
    listed = exp.Array(expressions=[exp.Struct(expressions=values)])
    return sql.function("list_extract", sql.function("list_transform", listed, body), sql.integer(1))


def _is_large(node: Node) -> bool:
    return sum(1 for _ in islice(node.walk(), LARGE + 1)) > LARGE


def _filled(made: Node, places: Sequence[Node], parts: Mapping[str, Node]) -> Node:
    for place in places:
        part = parts[place.name]
        part = part if part.parent is None else part.copy()
        within = isinstance(place.parent, exp.Binary | exp.Unary | exp.In) and not isinstance(place.parent, exp.Paren)
        place.replace(sql.operand(part) if within else part)
    return made


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Node:
    return sqlglot.parse_one(text, dialect=_Spelled)


def guard(bad: str, value: str, reason: str, **parts: Node) -> Node:
    """`value`, but an error on rows where `bad` is true; a null test lets the value through.

    The engine answers an error of the native kernel by asking Spark, so a guard is also how rare inputs are left to it.
    """
    return tree(guarded(bad, value, reason), **parts)


def guarded(bad: str, value: str, reason: str) -> str:
    return f"CASE WHEN {bad} THEN error('native: {reason}') ELSE {value} END"


def power_of_ten(exponent: int) -> str:
    """10**exponent as an exact decimal constant."""
    if abs(exponent) >= types.MAX_PRECISION:
        raise Unsupported(f"the native kernel has no decimal with {abs(exponent)} digits")
    digits = str(10**exponent) if exponent >= 0 else f"0.{'0' * (-exponent - 1)}1"
    return f"CAST('{digits}' AS DECIMAL({abs(exponent) + 1}, {max(0, -exponent)}))"


NOT_UTC = "NOT (current_setting('TimeZone') IN ('UTC', 'Etc/UTC'))"
"""Whether the connection's time zone is another than UTC."""


def instant(local: Node) -> Node:
    """The instant of a local clock time; an error outside UTC where clocks skip it or show it twice, or before 1970."""
    found = "CAST(t AS TIMESTAMPTZ)"
    early = "t < CAST('1970-01-02' AS TIMESTAMP)"
    skipped = f"CAST({found} AS TIMESTAMP) <> t"
    twice = f"CAST({found} - to_hours(1) AS TIMESTAMP) = t"
    return guard(f"{NOT_UTC} AND ({early} OR {skipped} OR {twice})", found, "a local time without one instant", t=local)


def renamed(name: str) -> Builder:
    """A lowering to a DuckDB function with the same arguments, type and behaviour."""
    return lambda _call, arguments: sql.function(name, *arguments)


def retyped(name: str) -> Builder:
    """A lowering to a DuckDB function with the same values in another type, which raises where a value does not fit it."""
    return lambda call, arguments: cast(sql.function(name, *arguments), call.type)


def written(text: str) -> Builder:
    """A lowering to an expression over the arguments a, b, c, in which `TYPE` stands for the type of the call."""
    names = "abc"
    return lambda call, arguments: tree(_typed(text, call), **dict(zip(names, arguments, strict=False)))


def _typed(text: str, call: Call) -> str:
    return text.replace("TYPE", type_name(call.type)) if "TYPE" in text else text


def literal_value(call: Call, position: int) -> Any:
    """The value of an argument that is a literal; Unsupported when it is computed."""
    value = getattr(call.arguments[position], "value", None)
    if value is None:
        raise Unsupported(f"the native kernel needs a literal as argument {position + 1} of {call.function!r}")
    return value


def literal(constant: Literal) -> Node:
    """The constant, cast to its type unless DuckDB already reads it so: its own rules for numbers never apply."""
    type_, value = constant.type, constant.value
    if value is None:
        return exp.Null() if type_ == types.NULL or isinstance(type_, types.IntervalType) else cast(exp.Null(), type_)
    if type_ == types.BOOLEAN:
        return exp.Boolean(this=value)
    if type_ == types.STRING:
        return sql.text(value)
    if type_ == types.INT or isinstance(type_, types.IntervalType):
        return sql.integer(value)
    return cast(sql.text(sql.literal_text(constant)), type_)


def literal_list(constants: Sequence[Literal]) -> str:
    """The constants, all of one type, as text with commas between. Law: it is the text of their trees."""
    first = next((each for each in constants if each.value is not None), constants[0])
    if first.value is None or first.type in (types.BOOLEAN, types.NULL) or isinstance(first.type, types.IntervalType):
        return ", ".join(str(literal(each).sql(dialect="duckdb")) for each in constants)
    kind = type_sql(first.type).sql(dialect="duckdb")
    return ", ".join(_spelled(each, kind) for each in constants)


def _spelled(constant: Literal, kind: str) -> str:
    if constant.value is None:
        return f"CAST(NULL AS {kind})"
    if constant.type == types.INT:
        return str(constant.value)
    if constant.type == types.STRING:
        return native_text(constant.value)
    return f"CAST({native_text(sql.literal_text(constant))} AS {kind})"
