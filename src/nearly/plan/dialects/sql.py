"""Builders of SQL trees that both dialects share."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

Node = exp.Expression

_ATOMS = (exp.Paren, exp.Column, exp.Literal, exp.Func, exp.Cast, exp.Boolean, exp.Null)


def operand(node: Node) -> Node:
    """The node as an operand of an operator: in parentheses unless it binds tightest by itself."""
    tight = isinstance(node, _ATOMS) and not isinstance(node, exp.Connector | exp.Case | exp.Binary)
    return node if tight else exp.Paren(this=node)


def binary(kind: type[Node], left: Node, right: Node) -> Node:
    return kind(this=operand(left), expression=operand(right))


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


def is_not_null(node: Node) -> Node:
    return exp.Not(this=exp.Paren(this=is_null(node)))


def case(parts: Sequence[Node], otherwise: Node | None) -> Node:
    """CASE from (when1, then1, when2, then2, ...)."""
    branches = [exp.If(this=test, true=result) for test, result in zip(parts[::2], parts[1::2], strict=True)]
    return exp.Case(ifs=branches, default=otherwise)


def ordered(node: Node, ascending: bool, nulls_first: bool) -> exp.Ordered:
    return exp.Ordered(this=operand(node), desc=not ascending, nulls_first=nulls_first)


def window(node: Node, partition: Sequence[Node], order: Sequence[exp.Ordered], frame: exp.WindowSpec | None) -> Node:
    ordering = exp.Order(expressions=list(order)) if order else None
    return exp.Window(this=node, partition_by=list(partition), order=ordering, spec=frame)


def frame(unit: str, start: int | None, end: int | None) -> exp.WindowSpec:
    start_bound, start_side = _bound(start, "PRECEDING")
    end_bound, end_side = _bound(end, "FOLLOWING")
    return exp.WindowSpec(kind=unit.upper(), start=start_bound, start_side=start_side, end=end_bound, end_side=end_side)


def _bound(offset: int | None, open_side: str) -> tuple[str | Node, str | None]:
    if offset is None:
        return "UNBOUNDED", open_side
    if offset == 0:
        return "CURRENT ROW", None
    return exp.Literal.number(abs(offset)), "PRECEDING" if offset < 0 else "FOLLOWING"
