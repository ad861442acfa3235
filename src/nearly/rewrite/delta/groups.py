"""Aggregates: the groups of keys that occur in the change are the only ones that change.

Law: a group depends on the rows of its key only. Where all aggregates can be added to, its old partial results and those of the
change are enough; otherwise the group is computed again as it is now and as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from nearly.plan import functions
from nearly.plan.expressions import Literal
from nearly.plan.nodes import Filter, GroupBy, Output, Plan, Project, SetOperation
from nearly.plan.types import LONG
from nearly.rewrite.delta.changed import MINUS_ONE, ONE, ChangedRows, Deltas
from nearly.rewrite.delta.merge import added_to, merged
from nearly.rewrite.delta.partials import is_sum, partials, weighted_partials
from nearly.rewrite.delta.touched import touched_keys


def grouped(deltas: Deltas, plan: GroupBy) -> ChangedRows | None:
    if plan.sets is not None:
        return deltas.of(_one_by_one(deltas, plan))
    found = partials(plan, deltas.fresh)
    if found is not None and is_sum(found):
        return added_to(deltas, plan, found)
    change = deltas.kept(plan.child)
    if change is None:
        return None
    touched = touched_keys(deltas, change, [key.expression for key in plan.keys])
    if found is not None:
        return merged(deltas, plan, found, GroupBy(change.plan, plan.keys, weighted_partials(found, change.weight)), touched)
    keys = [key.column for key in plan.keys]
    versions = ((deltas.computed(plan), ONE), (deltas.old(plan), MINUS_ONE))
    return deltas.union(
        plan.columns, (deltas.weighted(touched.of(deltas, each, keys), plan.columns, weight) for each, weight in versions)
    )


def _one_by_one(deltas: Deltas, plan: GroupBy) -> Plan:
    """Grouping sets as groupings, one for each; over no rows none of them has a row."""
    sets = [_of_set(deltas, plan, places) for places in plan.sets or ()]
    whole = sets[0]
    for each in sets[1:]:
        whole = SetOperation(whole, each, "union", True, plan.columns)
    return whole


def _of_set(deltas: Deltas, plan: GroupBy, places: Sequence[int]) -> Plan:
    keys = tuple(Output(deltas.fresh("set_key"), plan.keys[place].expression) for place in dict.fromkeys(places))
    aggregates = tuple(Output(deltas.fresh("of_set"), each.expression) for each in plan.aggregates)
    rows = Output(deltas.fresh("rows"), functions.aggregate("count", []))
    found: Plan = GroupBy(plan.child, keys, (*aggregates, rows))
    if not keys:
        found = Filter(found, functions.call(">", [rows.column, Literal(LONG, 0)]))
    known = {place: key.column for place, key in zip(dict.fromkeys(places), keys, strict=True)}
    shown = [Output(key.name, known.get(place, Literal(key.expression.type, None))) for place, key in enumerate(plan.keys)]
    shown += [Output(each.name, made.column) for each, made in zip(plan.aggregates, aggregates, strict=True)]
    if plan.grouping_id is not None:
        bits = sum(1 << (len(plan.keys) - 1 - place) for place in range(len(plan.keys)) if place not in known)
        shown.append(Output(plan.grouping_id.name, Literal(LONG, bits)))
    return Project(found, tuple(shown))
