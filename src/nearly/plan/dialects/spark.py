"""Expressions in Spark SQL: the function table's names are Spark's, so most of it is spelling."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.dialects import sql
from nearly.plan.dialects.literal_text import literal_text
from nearly.plan.dialects.sql import Node
from nearly.plan.expressions import (
    AggregateCall,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    SortKey,
    UserCall,
    WindowCall,
)
from nearly.plan.types import BOOLEAN, INT, NULL, STRING, DataType, IntervalType

Builder = Callable[[Call, list[Node]], Node]

_UNITS = {
    "year": 12, "month": 1, "day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000,
}  # fmt: skip
"""Months or microseconds in the units of an interval constant."""


def type_sql(type_: DataType) -> exp.DataType:
    """The Spark type; its name is Spark's own."""
    return exp.DataType.build(type_.name, dialect="spark")


def expression(e: Expression) -> Node:
    """The expression as Spark SQL."""
    match e:
        case Column():
            return sql.column(e.name)
        case Literal():
            return _literal(e)
        case Cast():
            return sql.cast(expression(e.operand), type_sql(e.type), e.safe)
        case Call():
            return OPERATORS.get(e.function, _named)(e, _render_all(e.arguments))
        case UserCall():
            return sql.function(e.function, *_render_all(e.arguments))
        case AggregateCall():
            return _aggregate(e)
        case WindowCall():
            return _window(e)
    raise Unsupported(f"{type(e).__name__} has no form in Spark expressions")


def sort_key(key: SortKey) -> exp.Ordered:
    return sql.ordered(expression(key.expression), key.ascending, key.nulls_first)


def _render_all(expressions: tuple[Expression, ...]) -> list[Node]:
    return [expression(each) for each in expressions]


def _aggregate(call: AggregateCall) -> Node:
    arguments = _render_all(call.arguments) or [exp.Star()]
    node = sql.function(call.function, *([exp.Distinct(expressions=arguments)] if call.distinct else arguments))
    if call.where is None:
        return node
    return exp.Filter(this=node, expression=exp.Where(this=expression(call.where)))


def _window(window: WindowCall) -> Node:
    frame = window.frame
    rendered = None if frame is None else sql.frame(frame.unit, frame.start, frame.end)
    order = [sort_key(key) for key in window.order]
    return sql.window(expression(window.call), _render_all(window.partition), order, rendered)


def _literal(constant: Literal) -> Node:
    """Typed by its spelling where Spark has one for the type, by a cast otherwise."""
    type_, value = constant.type, constant.value
    if value is None:
        return exp.Null() if type_ == NULL else sql.cast(exp.Null(), type_sql(type_))
    if isinstance(type_, IntervalType):
        return _interval(type_, value)
    if type_ == BOOLEAN:
        return exp.Boolean(this=value)
    if type_ == STRING:
        return sql.text(value)
    if type_ == INT and abs(value) < 2**31:
        return sql.integer(value)
    return sql.cast(sql.text(literal_text(constant)), type_sql(type_))


def _interval(type_: IntervalType, value: int) -> Node:
    """`INTERVAL 'n' UNIT` for an interval of one unit."""
    size = _UNITS.get(type_.fields)
    if size is None:
        raise Unsupported(f"a constant of type {type_} has no form in Spark SQL here")
    sign, amount = ("-" if value < 0 else ""), abs(value)
    fraction = f".{amount % size:06d}" if type_.fields == "second" else ""
    return exp.Interval(this=sql.text(f"{sign}{amount // size}{fraction}"), unit=exp.Var(this=type_.fields.upper()))


def _named(call: Call, arguments: list[Node]) -> Node:
    return sql.function(call.function, *arguments)


def _infix(kind: type[Node]) -> Builder:
    return lambda _call, arguments: sql.binary(kind, *arguments)


def _matching(kind: type[Node]) -> Builder:
    def build(call: Call, arguments: list[Node]) -> Node:
        match = kind(this=sql.operand(arguments[0]), expression=sql.operand(arguments[1]))
        return exp.Escape(this=match, expression=arguments[2])

    return build


def _trim(call: Call, arguments: list[Node]) -> Node:
    name = "btrim" if call.function == "trim" else call.function
    ordered = arguments if call.function == "trim" else arguments[::-1]
    return sql.function(name, *ordered)


OPERATORS: dict[str, Builder] = {
    "+": _infix(exp.Add),
    "-": _infix(exp.Sub),
    "*": _infix(exp.Mul),
    "/": _infix(exp.Div),
    "div": _infix(exp.IntDiv),
    "%": _infix(exp.Mod),
    "neg": lambda _call, arguments: exp.Neg(this=sql.operand(arguments[0])),
    "=": _infix(exp.EQ),
    "<=>": _infix(exp.NullSafeEQ),
    "<": _infix(exp.LT),
    ">": _infix(exp.GT),
    "<=": _infix(exp.LTE),
    ">=": _infix(exp.GTE),
    "<>": _infix(exp.NEQ),
    "and": _infix(exp.And),
    "or": _infix(exp.Or),
    "not": lambda _call, arguments: exp.Not(this=sql.operand(arguments[0])),
    "isnull": lambda _call, arguments: sql.is_null(arguments[0]),
    "isnotnull": lambda _call, arguments: sql.is_not_null(arguments[0]),
    "in": lambda _call, arguments: exp.In(this=sql.operand(arguments[0]), expressions=arguments[1:]),
    "case": lambda _call, arguments: sql.case(arguments[:-1], arguments[-1]),
    "like": _matching(exp.Like),
    "ilike": _matching(exp.ILike),
    "timestamp_add_months": _infix(exp.Add),
    "timestamp_add_microseconds": _infix(exp.Add),
    "trim": _trim,
    "ltrim": _trim,
    "rtrim": _trim,
}
