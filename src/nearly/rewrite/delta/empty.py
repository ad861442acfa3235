"""Branches that end: what is made of rows that turned out not to be there needs not be run.

Law: the plan that is left has the rows of the one given, when the inputs named have none, and those said to be filled have some.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from nearly.plan.expressions import TRUE
from nearly.plan.nodes import Apply, Filter, GroupBy, Input, Join, Limit, Output, Plan, Project, SetOperation, Sort, Window


@dataclass(frozen=True, slots=True)
class Known:
    """Inputs without rows, and inputs with some."""

    empty: Container[str]
    filled: Container[str]


def without_empty(plan: Plan, known: Known) -> Plan | None:
    """The plan without the branches that have no rows; None when it has none itself."""
    match plan:
        case Input():
            return None if plan.source in known.empty else plan
        case GroupBy() if not plan.keys or plan.sets is not None:
            return plan.map_children(lambda child: without_empty(child, known) or child)
        case Filter() | Project() | Sort() | Limit() | Window() | GroupBy() | Apply():
            child = without_empty(plan.child, known)
            return None if child is None else plan.map_children(lambda _: child)
        case Join():
            return _join(plan, known)
        case SetOperation():
            return _set_operation(plan, known)
    return plan


def _join(plan: Join, known: Known) -> Plan | None:
    left, right = (without_empty(side, known) for side in (plan.left, plan.right))
    match plan.kind:
        case "inner" | "cross" | "semi":
            if left is None or right is None:
                return None
            if plan.kind == "semi" and plan.condition == TRUE and _has_rows(right, known):
                return left
        case "left" | "anti":
            if left is None:
                return None
            if plan.kind == "anti" and right is None:
                return left
        case "right":
            if right is None:
                return None
        case "full":
            if left is None and right is None:
                return None
    return replace(plan, left=left or plan.left, right=right or plan.right)


def _has_rows(plan: Plan, known: Known) -> bool:
    while isinstance(plan, Project | Sort) or (isinstance(plan, Limit) and plan.count != 0 and not plan.offset):
        plan = plan.child
    return isinstance(plan, Input) and plan.source in known.filled


def _set_operation(plan: SetOperation, known: Known) -> Plan | None:
    left, right = (without_empty(side, known) for side in (plan.left, plan.right))
    if left is None and (right is None or plan.kind != "union"):
        return None
    if right is None and plan.kind == "intersect":
        return None
    if plan.every and plan.kind in ("union", "except") and (left is None or right is None):
        only = left if left is not None else right
        return only and Project(only, tuple(Output(a.name, b) for a, b in zip(plan.given, only.columns, strict=True)))
    return replace(plan, left=left or plan.left, right=right or plan.right)
