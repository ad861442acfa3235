"""Expressions in the SQL of the native kernel (DuckDB), with the values and types Spark SQL gives.

Where Spark's ANSI mode raises, the native expression raises too, and so it does on rare inputs where the engines
differ: the engine then asks Spark. A function without an entry in the tables is not in the verified set.
"""

from __future__ import annotations

from typing import TypeVar

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.dialects import (
    native_aggregates,
    native_casts,
    native_dates,
    native_internal,
    native_let,
    native_logic,
    native_numbers,
    native_strings,
    native_windows,
    sql,
)
from nearly.plan.dialects.native_build import Builder, cast, type_sql
from nearly.plan.dialects.native_literals import literal
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
from nearly.plan.types import Decimal

__all__ = ["AGGREGATES", "FUNCTIONS", "WINDOWS", "expression", "sort_key", "type_sql"]

FUNCTIONS: dict[str, Builder] = (
    native_numbers.LOWERINGS | native_logic.LOWERINGS | native_strings.LOWERINGS | native_dates.LOWERINGS
)
_ALL_FUNCTIONS = FUNCTIONS | native_internal.LOWERINGS
B = TypeVar("B")

AGGREGATES = native_aggregates.LOWERINGS
WINDOWS = native_windows.LOWERINGS


def expression(e: Expression) -> Node:
    """The expression as DuckDB SQL; its value has exactly the type `type_sql(e.type)`."""
    node = _render(e)
    exact = not isinstance(e.type, Decimal) or isinstance(e, Column | Literal)
    return node if exact or (isinstance(node, exp.Cast) and node.to == type_sql(e.type)) else cast(node, e.type)


def sort_key(key: SortKey) -> exp.Ordered:
    return sql.ordered(_render(key.expression), key.ascending, key.nulls_first)


def _render(e: Expression) -> Node:
    """The expression with Spark's value, where a decimal has Spark's scale but perhaps another width."""
    match e:
        case Column():
            return sql.column(e.name)
        case Literal():
            return literal(e)
        case Cast():
            return native_let.built(lambda given: native_casts.convert(e, *given), [_render(e.operand)])
        case Call():
            lower = _lowering(_ALL_FUNCTIONS, "function", e.function)
            return native_let.built(lambda given: lower(e, given), _render_all(e.arguments))
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

    builder = _lowering(AGGREGATES | native_aggregates.INTERNAL, "aggregate", call.function)
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
    rendered = None if frame is None else sql.frame(frame.unit, frame.start, frame.end)
    return sql.window(node, _render_all(window.partition), [sort_key(key) for key in window.order], rendered)
