"""Expressions in Spark SQL: the function table's names are Spark's, so most of it is spelling."""

from __future__ import annotations

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.dialects import sql
from nearly.plan.dialects.spark_tickets import ticket_of
from nearly.plan.dialects.sql import Builder, Node, infix
from nearly.plan.expressions import AggregateCall, Call, Cast, Column, Expression, Literal, SortKey, UserCall, WindowCall
from nearly.plan.types import BOOLEAN, INT, NULL, STRING, DataType, Decimal, IntervalType, adjusted_decimal, decimal, decimal_for

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
    return sql.ordered(key, expression(key.expression))


def _render_all(expressions: tuple[Expression, ...]) -> list[Node]:
    return [expression(each) for each in expressions]


def _aggregate(call: AggregateCall) -> Node:
    arguments = _render_all(call.arguments) or [exp.Star()]
    node = sql.function(call.function, *([exp.Distinct(expressions=arguments)] if call.distinct else arguments))
    if call.where is None:
        return node
    return exp.Filter(this=node, expression=exp.Where(this=expression(call.where)))


def _window(window: WindowCall) -> Node:
    order = [sort_key(key) for key in window.order]
    return sql.window(expression(window.call), _render_all(window.partition), order, window.frame)


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
    return sql.cast(sql.text(sql.literal_text(constant)), type_sql(type_))


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


def _matching(kind: type[Node]) -> Builder:
    return lambda _call, arguments: exp.Escape(this=sql.binary(kind, *arguments[:2]), expression=arguments[2])


def _trim(call: Call, arguments: list[Node]) -> Node:
    name = "btrim" if call.function == "trim" else call.function
    ordered = arguments if call.function == "trim" else arguments[::-1]
    return sql.function(name, *ordered)


def _average_of(call: Call, arguments: list[Node]) -> Node:
    """The average from a sum and a count, as `avg` gives it.

    A quotient is rounded twice here. With so many more digits in between, and a count below 10^11, no other value comes out.
    """
    total, count = arguments
    if not isinstance(call.type, Decimal):
        return sql.binary(exp.Div, total, sql.function("nullif", count, sql.integer(0)))
    known = decimal_for(call.arguments[0].type)
    scale = max(6, known.scale + _COUNT_DIGITS + 1)
    if adjusted_decimal(known.precision - known.scale + scale, scale).scale < call.type.scale + _SPARE_DIGITS:
        raise Unsupported(f"an average of type {call.type} from its sum has no exact form in Spark SQL")
    counted = sql.cast(sql.function("nullif", count, sql.integer(0)), type_sql(decimal(_COUNT_DIGITS, 0)))
    return sql.cast(sql.binary(exp.Div, total, counted), type_sql(call.type))


_COUNT_DIGITS, _SPARE_DIGITS = 20, 12

OPERATORS: dict[str, Builder] = {
    "average_of": _average_of,
    **sql.LOGIC,
    "+": infix(exp.Add),
    "-": infix(exp.Sub),
    "*": infix(exp.Mul),
    "/": infix(exp.Div),
    "div": infix(exp.IntDiv),
    "%": infix(exp.Mod),
    "neg": lambda _call, arguments: exp.Neg(this=sql.operand(arguments[0])),
    "like": _matching(exp.Like),
    "ilike": _matching(exp.ILike),
    **dict.fromkeys(("timestamp_add_months", "timestamp_add_microseconds"), infix(exp.Add)),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), _trim),
    "ticket": ticket_of,
}
