"""Expressions in the SQL of the native kernel (DuckDB), with the values and types Spark SQL gives.

Where Spark's ANSI mode raises, the native expression raises too, and so it does on rare inputs where the engines
differ: the engine then asks Spark. A function without an entry in the tables is not in the verified set.
"""

from __future__ import annotations

from typing import TypeVar

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.dialects import native_aggregates, native_casts, native_dates, native_numbers, native_strings, sql
from nearly.plan.dialects.native_build import cast, literal, literal_list, renamed, type_name, type_sql
from nearly.plan.dialects.sql import Builder, Node
from nearly.plan.expressions import AggregateCall, Call, Cast, Column, Expression, Literal, SortKey, UserCall, WindowCall
from nearly.plan.types import Decimal

__all__ = ["AGGREGATES", "FUNCTIONS", "WINDOWS", "expression", "sort_key", "type_name", "type_sql"]

LONG_LIST = 64
B = TypeVar("B")


def _is_in(call: Call, arguments: list[Node]) -> Node:
    """Of a long list of constants the text is made at once: a tree for each would take longer than the query."""
    constants = [each for each in call.arguments[1:] if isinstance(each, Literal)]
    if len(constants) <= LONG_LIST or len(constants) < len(call.arguments) - 1:
        return sql.LOGIC["in"](call, arguments)
    return exp.In(this=sql.operand(arguments[0]), expressions=[exp.Var(this=literal_list(constants))])


def _of_frame(kind: type[Node]) -> Builder:
    """The typed nodes here, because the generator writes IGNORE NULLS only for them."""

    def build(call: Call, arguments: list[Node]) -> Node:
        skip = call.arguments[1]
        value = kind(this=arguments[0])
        return exp.IgnoreNulls(this=value) if isinstance(skip, Literal) and skip.value else value

    return build


FUNCTIONS: dict[str, Builder] = {
    **native_numbers.LOWERINGS,
    **native_strings.LOWERINGS,
    **native_dates.LOWERINGS,
    **sql.LOGIC,
    "in": _is_in,
    **{name: renamed(name) for name in ("coalesce", "greatest", "least")},
}
AGGREGATES = native_aggregates.LOWERINGS
WINDOWS: dict[str, Builder] = {
    **{name: renamed(name) for name in ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead")},
    "nth_value": renamed("nth_value"),
    "first_value": _of_frame(exp.FirstValue),
    "last_value": _of_frame(exp.LastValue),
}
_ALL_FUNCTIONS = FUNCTIONS | native_aggregates.INTERNAL_FUNCTIONS
_ALL_AGGREGATES = AGGREGATES | native_aggregates.INTERNAL


def expression(e: Expression) -> Node:
    """The expression as DuckDB SQL; its value has exactly the type `type_sql(e.type)`."""
    node = _render(e)
    exact = not isinstance(e.type, Decimal) or isinstance(e, Column | Literal)
    return node if exact or (isinstance(node, exp.Cast) and node.to == type_sql(e.type)) else cast(node, e.type)


def sort_key(key: SortKey) -> exp.Ordered:
    return sql.ordered(key, _render(key.expression))


def _render(e: Expression) -> Node:
    """The expression with Spark's value, where a decimal has Spark's scale but perhaps another width."""
    match e:
        case Column():
            return sql.column(e.name)
        case Literal():
            return literal(e)
        case Cast():
            return native_casts.convert(e, _render(e.operand))
        case Call():
            return _lowering(_ALL_FUNCTIONS, "function", e.function)(e, _render_all(e.arguments))
        case UserCall():
            return sql.function(e.symbol, *(expression(each) for each in e.arguments))
        case AggregateCall():
            return _aggregate(e, None)
        case WindowCall():
            return _window(e)
    raise Unsupported(f"{type(e).__name__} has no form in the native kernel's expressions")


def _render_all(expressions: tuple[Expression, ...]) -> list[Node]:
    return [_render(each) for each in expressions]


def _lowering(table: dict[str, B], kind: str, name: str) -> B:
    if name not in table:
        raise Unsupported(f"{kind} {name!r} is not in the native kernel's verified set")
    return table[name]


def _aggregate(call: AggregateCall, window: WindowCall | None) -> Node:
    """An aggregate, or one over a window; what it is made of gets DISTINCT, FILTER and OVER each."""

    def primitive(name: str, *arguments: Node) -> Node:
        given = [exp.Distinct(expressions=list(arguments))] if call.distinct else list(arguments)
        node = sql.function(name, *given)
        if call.where is not None:
            node = exp.Filter(this=node, expression=exp.Where(this=_render(call.where)))
        return node if window is None else _over(node, window)

    builder = _lowering(_ALL_AGGREGATES, "aggregate", call.function)
    return builder(call, _render_all(call.arguments), primitive)


def _window(window: WindowCall) -> Node:
    call = window.call
    if isinstance(call, AggregateCall):
        return _aggregate(call, window)
    if not isinstance(call, Call):
        raise Unsupported(f"{type(call).__name__} over a window has no form in the native kernel")
    node = _lowering(WINDOWS, "window function", call.function)(call, _render_all(call.arguments))
    return cast(_over(node, window), call.type)


def _over(node: Node, window: WindowCall) -> Node:
    frame = window.frame
    if frame is not None and frame.unit.lower() == "range" and (frame.start or frame.end):
        raise Unsupported("a RANGE frame with an offset is not in the native kernel's verified set; use ROWS")
    return sql.window(node, _render_all(window.partition), [sort_key(key) for key in window.order], frame)
