"""Groups in the form in which they can be kept: partial results that can be added to, and above them what the query asks for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import Column, Expression, SortKey, columns_of, substitute
from nearly.plan.nodes import Filter, GroupBy, Limit, Plan, Project, Sort
from nearly.rewrite.delta.changed import is_value
from nearly.rewrite.delta.partials import partials


def with_partials(plan: Plan) -> Plan:
    """The plan whose groupings are partial results, where all their aggregates have some. Law: it has the same rows.

    Groupings that are equal stay equal.
    """
    fresh, known = FreshNames("kept"), dict[Plan, Plan]()

    def change(node: Plan) -> Plan:
        if isinstance(node, GroupBy) and node not in known:
            found = partials(node, fresh)
            known[node] = node if found is None or found.plan == node else found.finished(found.plan)
        return known.get(node, node)

    return plan.transform(change)


def values_of(plan: Plan) -> tuple[GroupBy, ...]:
    """The single values below a plan, as of scalar subqueries, that can be kept.

    Where the row of such a group without keys is kept, only rows that changed are looked at; save when its least or greatest value
    went.
    """
    return tuple(each for each in _partial_groupings(plan) if is_value(each))


def groupings_of(plan: Plan) -> tuple[GroupBy, ...]:
    """The groupings by keys below a plan that can be kept."""
    return tuple(each for each in _partial_groupings(plan) if not is_value(each))


def _partial_groupings(plan: Plan) -> Iterator[GroupBy]:
    below = (node for child in plan.children for node in child.walk())
    return (node for node in dict.fromkeys(below) if isinstance(node, GroupBy) and _is_partial(node))


def _is_partial(plan: GroupBy) -> bool:
    found = partials(plan, FreshNames("value"))
    return found is not None and found.plan == plan


def over_stored(plan: Plan, stored: Mapping[Plan, Plan]) -> Plan:
    """The plan with the uppermost parts that are stored read from there. Law: the same rows, where these are stored as they are."""
    return stored[plan] if plan in stored else plan.map_children(lambda child: over_stored(child, stored))


def order_of(plan: Plan) -> tuple[SortKey, ...] | None:
    """How the rows of a plan are ordered, which rows at rest are not; None where that is by columns that the plan does not have."""
    match plan:
        case Sort():
            return plan.keys
        case Filter() | Limit():
            return order_of(plan.child)
        case Project():
            keys = order_of(plan.child)
            columns = [each for each in plan.outputs if isinstance(each.expression, Column)]
            passed: dict[str, Expression] = {name: each.column for each in columns for name in columns_of(each.expression)}
            if keys is None or any(columns_of(key.expression) - passed.keys() for key in keys):
                return None
            return tuple(replace(key, expression=substitute(key.expression, passed)) for key in keys)
    return ()


def outermost(plans: Collection[Plan]) -> list[Plan]:
    """Plans in an order in which parts come before what they are parts of."""
    return sorted(plans, key=lambda plan: sum(1 for _ in plan.walk()))
