"""Operators without a rule of their own: all new rows come and all old ones go, and what is the same cancels out."""

from __future__ import annotations

from collections.abc import Mapping

from nearly.plan.nodes import Limit, Plan
from nearly.rewrite.delta.changed import MINUS_ONE, ONE, ChangedRows, Delta, Deltas, TableChange, net_rows
from nearly.rewrite.delta.touched import Touched


def whole(deltas: Deltas, plan: Plan) -> ChangedRows | None:
    """P(new) - P(old)."""
    if not deltas.touches(plan):
        return None
    versions = ((deltas.now(plan), ONE), (deltas.old(plan), MINUS_ONE))
    new, old = (deltas.weighted(each, plan.columns, weight) for each, weight in versions)
    return deltas.union(plan.columns, (new, old))


def new_minus_old(plan: Plan, changes: Mapping[str, TableChange], stored: Mapping[Plan, Plan]) -> Delta:
    """The delta of a plan without looking at what changed: for what has no other, and as what others are judged by."""
    deltas = Deltas({}, changes, stored)
    new, old = (deltas.weighted(each, plan.columns, weight) for each, weight in ((plan, ONE), (deltas.old(plan), MINUS_ONE)))
    net = net_rows(deltas.union(plan.columns, (new, old)), deltas.fresh)
    return Delta((), net.plan, net.weight)


def limit(deltas: Deltas, plan: Limit) -> ChangedRows | None:
    """Which rows are first depends on all of them; where nobody looks at them, as in EXISTS, only whether some changed matters."""
    if plan.names:
        return whole(deltas, plan)
    change = deltas.kept(plan.child)
    if change is None:
        return None
    touched = Touched(change.plan, ())
    versions = ((deltas.now(plan), ONE), (deltas.old(plan), MINUS_ONE))
    return deltas.union((), (deltas.weighted(touched.of(deltas, each, ()), (), weight) for each, weight in versions))
