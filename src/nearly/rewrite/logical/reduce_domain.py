"""Aggregate only what the outer query asks for: a semi join with the outer keys below a decorrelated grouping.

A correlated aggregate grouped by its correlated columns would be computed for every value of them. The enclosing query needs
only the values it has itself, and when filters make these few, a semi join near the scan saves most of the work.
Law: groups of keys that occur in the enclosing plan are unchanged; others may vanish, and the left join never looks at them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nearly.plan import functions
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import TRUE, Column, columns_of, conjunction
from nearly.plan.nodes import Filter, GroupBy, Join, Output, Plan, Project, Scan
from nearly.rewrite.logical.correlation import Equality


def reduce_domain(grouped: Plan, keys: Sequence[Equality], outer: Plan, fresh: FreshNames) -> Plan:
    """`grouped` restricted to keys that `outer` may contain, where the outer side is visibly filtered."""
    sources = [_filtered_source(outer, key.outer) for key in keys]
    source = next((each for each in sources if each is not None), None)
    if source is None:
        return grouped
    return _push(grouped, [key for key, found in zip(keys, sources, strict=True) if found == source], _renamed(source, fresh))


def _filtered_source(outer: Plan, key: object) -> Plan | None:
    """The largest subplan around the key's scan that only filters: it has a superset of the keys, at little cost.

    A filter that is itself correlated is left out: its copy below the grouping could not be pulled up again.
    """
    if not isinstance(key, Column):
        return None
    path = _path(outer, key.name)
    best = None
    for node in reversed(path):
        if isinstance(node, Filter) or (isinstance(node, Join) and node.kind in ("semi", "anti")):
            best = node if not node.outer_columns() else best
        elif not isinstance(node, Scan | Project):
            break
    return best


def _path(plan: Plan, name: str) -> list[Plan]:
    """Nodes from the plan down to the scan that produces the column."""
    if name not in plan.names:
        return []
    for child in plan.children:
        if name in child.names:
            return [plan, *_path(child, name)]
    return [plan]


def _push(plan: Plan, keys: list[Equality], source: Project) -> Plan:
    """The semi join at the lowest place that has all the inner key columns."""
    names = frozenset(name for key in keys for name in columns_of(key.inner))
    match plan:
        case Project() | GroupBy(sets=None):
            given = {each.name: each.expression for each in (plan.outputs if isinstance(plan, Project) else plan.keys)}
            if all(isinstance(key.inner, Column) and key.inner.name in given for key in keys):
                below = [replace(key, inner=given[key.inner.name]) for key in keys if isinstance(key.inner, Column)]
                return replace(plan, child=_push(plan.child, below, source))
        case Filter():
            return replace(plan, child=_push(plan.child, keys, source))
        case Join(kind="inner" | "cross"):
            if names <= plan.left.names:
                return replace(plan, left=_push(plan.left, keys, source))
            if names <= plan.right.names:
                return replace(plan, right=_push(plan.right, keys, source))
    return _semi(plan, keys, source) if names <= plan.names else plan


def _renamed(source: Plan, fresh: FreshNames) -> Project:
    """The source is used a second time in the query, so its columns get names that only this use has."""
    return Project(source, tuple(Output(fresh("domain"), column) for column in source.columns))


def _semi(plan: Plan, keys: list[Equality], source: Project) -> Plan:
    columns = {output.expression.name: output.column for output in source.outputs if isinstance(output.expression, Column)}
    pairs = [functions.call("=", [key.inner, columns[key.outer.name]]) for key in keys if isinstance(key.outer, Column)]
    return Join(plan, source, "semi", conjunction(pairs) or TRUE)
