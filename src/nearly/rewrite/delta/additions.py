"""What a change adds to groups that are kept as partial results: only the change is looked at, and what is kept is added to.

Law: partial results of what came, minus those of what went, added by key to those that are kept, are those of the rows now; a group
of which no row is left has gone. A least or greatest value can be added to only as long as rows come: one that went is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

from nearly.plan.nodes import GroupBy, Plan
from nearly.rewrite.delta.changed import Deltas
from nearly.rewrite.delta.partials import EXTREMES, Partials, calls_of, partials, weighted_partials


@dataclass(frozen=True, slots=True)
class Addition:
    """Rows to add to those of a grouping, under its columns; where it `grew`, no group goes."""

    plan: Plan
    partials: Partials
    grew: bool


def addition(deltas: Deltas, plan: Plan) -> Addition | None:
    """What the change adds to a grouping; None where it does not change, or must be told which of its groups were and are."""
    found = partials(plan, deltas.fresh) if isinstance(plan, GroupBy) else None
    if found is None or found.plan != plan:
        return None
    change = deltas.of(found.plan.child)
    extremes = [call for _, call in calls_of(found.plan) if call.function in EXTREMES]
    if change is None or (extremes and not change.ones):
        return None
    outputs = found.plan.aggregates if change.ones else weighted_partials(found, change.weight)
    return Addition(GroupBy(change.plan, found.plan.keys, outputs), found, change.ones)
