"""Builders of SQL trees that both dialects share."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal as Number

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.expressions import Call, Literal, SortKey, WindowFrame
from nearly.plan.types import TIMESTAMP

Node = exp.Expr
Builder = Callable[[Call, list[Node]], Node]
"""Builds a call from its typed form and its rendered arguments."""

_ATOMS = (exp.Paren, exp.Column, exp.Literal, exp.Func, exp.Cast, exp.Boolean, exp.Null)


def operand(node: Node) -> Node:
    """The node as an operand of an operator: in parentheses unless it binds tightest by itself."""
    tight = isinstance(node, _ATOMS) and not isinstance(node, exp.Connector | exp.Case | exp.Binary)
    return node if tight else exp.Paren(this=node)


def binary(kind: type[Node], left: Node, right: Node) -> Node:
    return kind(this=operand(left), expression=operand(right))


def infix(kind: type[Node]) -> Builder:
    return lambda _call, arguments: binary(kind, *arguments)


def function(name: str, *arguments: Node) -> Node:
    """A function call spelled exactly so; typed function nodes would be rewritten by the generator."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def cast(node: Node, type_: exp.DataType, safe: bool = False) -> Node:
    return exp.TryCast(this=node, to=type_, safe=True) if safe else exp.Cast(this=node, to=type_)


def text(value: str) -> Node:
    return exp.Literal.string(value)


def integer(value: int) -> Node:
    return exp.Neg(this=exp.Literal.number(-value)) if value < 0 else exp.Literal.number(value)


def column(name: str) -> Node:
    return exp.Column(this=exp.to_identifier(name, quoted=True))


def is_null(node: Node) -> Node:
    return exp.Is(this=operand(node), expression=exp.Null())


def case(parts: Sequence[Node], otherwise: Node | None) -> Node:
    """CASE from (when1, then1, when2, then2, ...)."""
    branches = [exp.If(this=test, true=result) for test, result in zip(parts[::2], parts[1::2], strict=True)]
    return exp.Case(ifs=branches, default=otherwise)


def ordered(key: SortKey, node: Node) -> exp.Ordered:
    return exp.Ordered(this=operand(node), desc=not key.ascending, nulls_first=key.nulls_first)


def window(node: Node, partition: Sequence[Node], order: Sequence[exp.Ordered], frame: WindowFrame | None) -> Node:
    ordering = exp.Order(expressions=list(order)) if order else None
    return exp.Window(this=node, partition_by=list(partition), order=ordering, spec=None if frame is None else _frame(frame))


def _frame(frame: WindowFrame) -> exp.WindowSpec:
    start, start_side = _bound(frame.start, "PRECEDING")
    end, end_side = _bound(frame.end, "FOLLOWING")
    return exp.WindowSpec(kind=frame.unit.upper(), start=start, start_side=start_side, end=end, end_side=end_side)


def _bound(offset: int | None, open_side: str) -> tuple[str | Node, str | None]:
    if offset is None:
        return "UNBOUNDED", open_side
    if offset == 0:
        return "CURRENT ROW", None
    return exp.Literal.number(abs(offset)), "PRECEDING" if offset < 0 else "FOLLOWING"


def literal_text(constant: Literal) -> str:
    """The text that a cast to the constant's type makes its value of, in both engines."""
    value = constant.value
    match value:
        case Number():
            return format(value, "f")
        case dt.datetime() if constant.type == TIMESTAMP:
            return value.astimezone(dt.UTC).isoformat(sep=" ")
        case dt.datetime() | dt.date():
            return value.isoformat()
        case int() | float():
            return repr(value)
    raise Unsupported(f"a literal of type {constant.type} has no form in SQL")


LOGIC: dict[str, Builder] = {
    "=": infix(exp.EQ),
    "<=>": infix(exp.NullSafeEQ),
    "<": infix(exp.LT),
    ">": infix(exp.GT),
    "<=": infix(exp.LTE),
    ">=": infix(exp.GTE),
    "<>": infix(exp.NEQ),
    "and": infix(exp.And),
    "or": infix(exp.Or),
    "not": lambda _call, arguments: exp.Not(this=operand(arguments[0])),
    "isnull": lambda _call, arguments: is_null(arguments[0]),
    "isnotnull": lambda _call, arguments: exp.Not(this=exp.Paren(this=is_null(arguments[0]))),
    "in": lambda _call, arguments: exp.In(this=operand(arguments[0]), expressions=arguments[1:]),
    "case": lambda _call, arguments: case(arguments[:-1], arguments[-1]),
}
"""Comparisons, truth, nulls and choice, which both engines spell alike."""
