"""The order of the rewriting passes, for every query."""

from __future__ import annotations

from collections.abc import Callable

from nearly.plan.binding.scope import FreshNames
from nearly.plan.nodes import Plan
from nearly.rewrite.logical.decorrelate import decorrelate
from nearly.rewrite.logical.factor_or import factor_or
from nearly.rewrite.logical.prune import prune
from nearly.rewrite.logical.push_filter import push_filter

Pass = Callable[[Plan], Plan]


def decorrelated(plan: Plan) -> Plan:
    return decorrelate(plan, FreshNames("sub"))


PASSES: tuple[Pass, ...] = (
    factor_or,
    push_filter,
    decorrelated,
    push_filter,
    prune,
)
"""Filters move first so that decorrelation sees how few outer rows there are, and again to place what it made."""


def rewrite(plan: Plan) -> Plan:
    """The plan after all passes: no subqueries in expressions, filters low, no unread columns."""
    for each in PASSES:
        plan = each(plan)
    return plan
