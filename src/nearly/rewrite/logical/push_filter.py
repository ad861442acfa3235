"""Filters go down to where their columns come from, and conditions over both sides of a cross join become its condition.

What an OR over both sides implies for one side is tested there as well.

Law: the pass changes where rows are dropped, never which. A predicate stays above a node when dropping rows below it would
change the node's other rows: windows, limits, the null-giving side of an outer join.
"""

from __future__ import annotations

from dataclasses import replace

from nearly.plan.expressions import TRUE, Expression, columns_of, conjunction, conjuncts, has_subquery, substitute
from nearly.plan.nodes import Filter, GroupBy, Join, Plan, Project, SetOperation, Sort
from nearly.rewrite.logical.factor_or import implied

_PUSHABLE = {"inner": (True, True), "cross": (True, True), "left": (True, False), "right": (False, True),
             "semi": (True, False), "anti": (True, False), "full": (False, False)}  # fmt: skip
"""For each kind of join, whether a filter above it may move to the left and to the right side."""

_CONDITION_PUSHABLE = {"inner": (True, True), "left": (False, True), "right": (True, False), "semi": (True, True),
                       "anti": (False, True), "full": (False, False), "cross": (False, False)}  # fmt: skip
"""The same for a part of the join's own condition that reads one side only."""


def push_filter(plan: Plan) -> Plan:
    """Every filter at its lowest place."""
    return _push(plan, ())


def _push(plan: Plan, parts: tuple[Expression, ...]) -> Plan:
    match plan:
        case Filter():
            return _push(plan.child, (*conjuncts(plan.predicate), *parts))
        case Project():
            return _through_project(plan, parts)
        case Join():
            return _through_join(plan, parts)
        case GroupBy():
            return _through_aggregate(plan, parts)
        case SetOperation(kind="union"):
            return _through_union(plan, parts)
        case Sort():
            return replace(plan, child=_push(plan.child, parts))
    return _keep(plan.map_children(lambda child: _push(child, ())), parts)


def _keep(plan: Plan, parts: tuple[Expression, ...] | list[Expression]) -> Plan:
    predicate = conjunction(list(dict.fromkeys(parts)))
    return plan if predicate is None else Filter(plan, predicate)


def _through_project(plan: Project, parts: tuple[Expression, ...]) -> Plan:
    values = {output.name: output.expression for output in plan.outputs}
    movable = [part for part in parts if not has_subquery(part) and not _reads_subquery(part, values)]
    kept = [part for part in parts if part not in movable]
    below = tuple(substitute(part, values) for part in movable)
    return _keep(replace(plan, child=_push(plan.child, below)), kept)


def _reads_subquery(part: Expression, values: dict[str, Expression]) -> bool:
    return any(has_subquery(values[name]) for name in columns_of(part) if name in values)


def _through_join(plan: Join, parts: tuple[Expression, ...]) -> Plan:
    left: list[Expression] = []
    right: list[Expression] = []
    above: list[Expression] = []
    condition: list[Expression] = []
    for part in parts:
        side = _side(part, plan, _PUSHABLE[plan.kind])
        if side is None and plan.kind in ("inner", "cross") and not has_subquery(part) and _is_local(part, plan):
            condition.append(part)
        else:
            {"left": left, "right": right, None: above}[side].append(part)
    for part in conjuncts(plan.condition):
        side = _side(part, plan, _CONDITION_PUSHABLE[plan.kind])
        {"left": left, "right": right, None: condition}[side].append(part)
    for part in condition if plan.kind in ("inner", "cross") else ():
        for found, child in ((left, plan.left), (right, plan.right)):
            test = implied(part, child.names)
            if test is not None:
                found.append(test)
    joined = _rejoin(plan, _push(plan.left, tuple(left)), _push(plan.right, tuple(right)), condition)
    return _keep(joined, above)


def _rejoin(plan: Join, left: Plan, right: Plan, parts: list[Expression]) -> Plan:
    condition = conjunction(list(dict.fromkeys(parts)))
    if plan.kind in ("inner", "cross"):
        return Join(left, right, "cross" if condition is None else "inner", condition)
    return Join(left, right, plan.kind, condition or TRUE)


def _is_local(part: Expression, plan: Join) -> bool:
    """A predicate that reads an enclosing query stays a filter, where decorrelation looks for it."""
    return columns_of(part) <= plan.left.names | plan.right.names


def _side(part: Expression, plan: Join, allowed: tuple[bool, bool]) -> str | None:
    """The side a predicate can move to; outer references may come along."""
    reads = columns_of(part)
    in_left, in_right = reads & plan.left.names, reads & plan.right.names
    if in_left and not in_right and allowed[0]:
        return "left"
    if in_right and not in_left and allowed[1]:
        return "right"
    return None


def _through_aggregate(plan: GroupBy, parts: tuple[Expression, ...]) -> Plan:
    """A predicate over plain keys decides on whole groups, so it can drop their rows before grouping."""
    values = {key.name: key.expression for key in plan.keys} if plan.sets is None else {}
    movable = [part for part in parts if columns_of(part) and columns_of(part) <= set(values) and not has_subquery(part)]
    kept = [part for part in parts if part not in movable]
    below = tuple(substitute(part, values) for part in movable)
    return _keep(replace(plan, child=_push(plan.child, below)), kept)


def _through_union(plan: SetOperation, parts: tuple[Expression, ...]) -> Plan:
    names = plan.names
    movable = [part for part in parts if columns_of(part) and columns_of(part) <= names and not has_subquery(part)]
    kept = [part for part in parts if part not in movable]

    def side(child: Plan) -> Plan:
        values: dict[str, Expression] = {a.name: b for a, b in zip(plan.given, child.columns, strict=True)}
        return _push(child, tuple(substitute(part, values) for part in movable))

    return _keep(replace(plan, left=side(plan.left), right=side(plan.right)), kept)
