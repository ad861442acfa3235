"""Plans in one form: what they compute, without the names that binding made up and the order in which a text put things.

Two texts that ask for the same have the same canonical plan, and so have equal parts of two plans; `fingerprint` tells it shortly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import count
from typing import Any, cast

from nearly.plan.expressions import Call, Column, Expression, chain, chained, map_value, substitute, transform
from nearly.plan.nodes import Field, GroupBy, Output, Plan, Project

COMMUTATIVE = frozenset({"=", "<>", "<=>", "+", "*"})
MIRRORED = {">": "<", ">=": "<="}


def canonical(plan: Plan) -> Plan:
    """The plan with names that tell only places. Law: it gives the same rows, and `canonical(canonical(p)) == canonical(p)`."""
    return _Renaming().plan(plan)[0]


def fingerprint(plan: Plan) -> str:
    """A short name of what a plan computes, over the versions of the tables that it names."""
    return hashlib.sha256(repr(canonical(plan)).encode()).hexdigest()[:16]


Names = dict[str, str]
"""New names of columns by their old ones."""


class _Renaming:
    """Names are numbered where they are made, children before parents; a part that occurs twice gets other names each time."""

    def __init__(self) -> None:
        self._numbers = count()

    def plan(self, node: Plan) -> tuple[Plan, Names]:
        """The renamed plan, and the names of its columns."""
        if isinstance(node, GroupBy | Project):
            node = _without_renaming(node)
        below = [self.plan(child) for child in node.children]
        given: Names = {}
        for _, names in reversed(below):
            given |= names
        made = self._made(node, given)
        changed = _Changing({**made, **given}, made, iter([plan for plan, _ in below]))
        renamed = replace(node, **{field.name: changed(getattr(node, field.name)) for field in fields(node)})
        return renamed, {column.name: made.get(column.name, given.get(column.name, column.name)) for column in node.columns}

    def _made(self, node: Plan, given: Names) -> Names:
        """Names for what a node makes itself; a column that is only handed on keeps its name, once."""
        outputs = node.keys if isinstance(node, GroupBy) else node.outputs if isinstance(node, Project) else ()
        made: Names = {}
        for output in outputs:
            name = given.get(output.expression.name) if isinstance(output.expression, Column) else None
            made[output.name] = self._new() if name is None or name in made.values() else name
        for column in node.columns:
            if column.name not in given and column.name not in made:
                made[column.name] = self._new()
        return made

    def _new(self) -> str:
        return f"#{next(self._numbers)}"


@dataclass(frozen=True, slots=True)
class _Changing:
    """The fields of one node under new names: `read` in its expressions, `made` for its own columns."""

    read: Names
    made: Names
    plans: Iterator[Plan]

    def __call__(self, value: Any) -> Any:
        match value:
            case Plan():
                return next(self.plans)
            case Output():
                return Output(self.made.get(value.name, value.name), self._expression(value.expression))
            case Field():
                return replace(value, name=self.made[value.name])
            case tuple():
                return tuple(self(each) for each in value)
        return map_value(value, self._expression)

    def _expression(self, expression: Expression) -> Expression:
        return transform(expression, self._ordered)

    def _ordered(self, each: Expression) -> Expression:
        return replace(each, name=self.read.get(each.name, each.name)) if isinstance(each, Column) else in_order(each)


def in_order(each: Expression) -> Expression:
    """An expression whose parts are in one order already, in one of the ways to write it."""
    match each:
        case Call(function=function, arguments=(left, right)) if function in MIRRORED:
            return replace(each, function=MIRRORED[function], arguments=(right, left))
        case Call(function="and" | "or"):
            return chained(sorted(chain(each, each.function), key=repr), each.function)
        case Call(function=function) if function in COMMUTATIVE:
            return replace(each, arguments=tuple(sorted(each.arguments, key=repr)))
    return each


def _without_renaming(node: GroupBy | Project) -> GroupBy | Project:
    """A node that names its own columns does not need a projection below it that only names others."""
    while isinstance(below := node.child, Project) and all(isinstance(each.expression, Column) for each in below.outputs):
        given = {each.name: each.expression for each in below.outputs if each.expression != each.column}
        node = replace(node, child=below.child)
        node = cast("GroupBy | Project", node.map_own_expressions(partial(substitute, values=given)))
    return node
