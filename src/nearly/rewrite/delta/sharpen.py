"""Keys that are known to hold no null are compared by `=` instead of `<=>`: engines find rows by it, and skip files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nearly.plan.expressions import Call, Column, Expression, conjunction, conjuncts
from nearly.plan.nodes import Filter, Input, Join, Limit, Plan, Project

Present = Callable[[str, str], bool]
"""Whether a column of an input, told by the input's name and its own, holds no null; asked only where that makes a difference."""


def sharpen(plan: Plan, present: Present) -> Plan:
    """The plan with plain equalities in semi and inner joins. Law: where k is not null, x <=> k is true exactly where x = k is."""

    def change(node: Plan) -> Plan:
        if not isinstance(node, Join) or node.kind not in ("semi", "inner") or node.condition is None:
            return node
        parts = [_plain(part, (node.left, node.right), present) for part in conjuncts(node.condition)]
        return replace(node, condition=conjunction(parts))

    return plan.transform(change)


def _plain(part: Expression, sides: tuple[Plan, Plan], present: Present) -> Expression:
    if not isinstance(part, Call) or part.function != "<=>":
        return part
    origins = (origin(side, each.name) for each in part.arguments if isinstance(each, Column) for side in sides)
    return replace(part, function="=") if any(found is not None and present(*found) for found in origins) else part


def origin(plan: Plan, name: str) -> tuple[str, str] | None:
    """The input that a column of a plan is passed on from, and its name there; None where it comes from elsewhere."""
    while isinstance(plan, Project | Filter | Limit):
        if isinstance(plan, Project):
            found = next((each.expression for each in plan.outputs if each.name == name), None)
            if not isinstance(found, Column):
                return None
            name = found.name
        plan = plan.child
    return (plan.source, name) if isinstance(plan, Input) and name in plan.names else None
