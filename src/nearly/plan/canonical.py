"""Plans in one form: what they compute, without the names that binding made up and the order in which a text put things.

Two texts that ask for the same have the same canonical plan, and so have equal parts of two plans; `fingerprint` tells it shortly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial, reduce
from itertools import count
from typing import Any, cast

from nearly.plan.expressions import Call, Column, Expression, map_value, substitute, transform
from nearly.plan.nodes import Field, GroupBy, Output, Plan, Project

COMMUTATIVE = frozenset({"=", "<>", "<=>", "+", "*"})
MIRRORED = {">": "<", ">=": "<="}


def canonical(plan: Plan) -> Plan:
    """The plan with names that tell only places. Law: it gives the same rows, and `canonical(canonical(p)) == canonical(p)`."""
    return _Renaming().plan(plan)


def fingerprint(plan: Plan) -> str:
    """A short name of what a plan computes, over the versions of the tables that it names."""
    return hashlib.sha256(repr(canonical(plan)).encode()).hexdigest()[:16]


class _Renaming:
    """Names are numbered where they first occur, children before parents."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._numbers = count()

    def plan(self, node: Plan) -> Plan:
        if isinstance(node, GroupBy | Project):
            node = self._without_renaming(node)
        below = {id(child): self.plan(child) for child in node.children}
        self._pass_on(node)
        for column in node.columns:
            self._named(column.name)
        return replace(node, **{field.name: self._value(getattr(node, field.name), below) for field in fields(node)})

    def _without_renaming(self, node: GroupBy | Project) -> GroupBy | Project:
        """A node that names its own columns does not need a projection below it that only names others."""
        while isinstance(below := node.child, Project) and all(isinstance(each.expression, Column) for each in below.outputs):
            node = replace(node, child=below.child)
            given = {each.name: each.expression for each in below.outputs if each.expression != each.column}
            node = cast("GroupBy | Project", node.map_own_expressions(partial(substitute, values=given)))
        return node

    def _pass_on(self, node: Plan) -> None:
        """A column that is only handed on keeps its name, once."""
        outputs = node.keys if isinstance(node, GroupBy) else node.outputs if isinstance(node, Project) else ()
        taken: set[str] = set()
        for output in outputs:
            if isinstance(output.expression, Column) and self._named(output.expression.name) not in taken:
                taken.add(self._names.setdefault(output.name, self._named(output.expression.name)))

    def _named(self, name: str) -> str:
        if name not in self._names:
            self._names[name] = f"#{next(self._numbers)}"
        return self._names[name]

    def _value(self, value: Any, below: dict[int, Plan]) -> Any:
        match value:
            case Plan():
                return below[id(value)]
            case Output():
                return Output(self._named(value.name), self._expression(value.expression))
            case Field():
                return replace(value, name=self._named(value.name))
            case tuple():
                return tuple(self._value(each, below) for each in value)
            case Expression():
                return self._expression(value)
        return map_value(value, self._expression)

    def _expression(self, expression: Expression) -> Expression:
        return transform(expression, self._ordered)

    def _ordered(self, each: Expression) -> Expression:
        match each:
            case Column():
                return replace(each, name=self._named(each.name))
            case Call(function=function, arguments=(left, right)) if function in MIRRORED:
                return replace(each, function=MIRRORED[function], arguments=(right, left))
            case Call(function="and" | "or"):
                parts = sorted(_flat(each, each.function), key=repr)
                return reduce(lambda left, right: replace(each, arguments=(left, right)), parts)
            case Call(function=function) if function in COMMUTATIVE:
                return replace(each, arguments=tuple(sorted(each.arguments, key=repr)))
        return each


def _flat(expression: Expression, function: str) -> Iterator[Expression]:
    """What a chain of the same connective connects."""
    if isinstance(expression, Call) and expression.function == function:
        for argument in expression.arguments:
            yield from _flat(argument, function)
    else:
        yield expression
