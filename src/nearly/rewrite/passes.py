"""The order of all passes: those for every query, then those for one that runs on several sites, or unit by unit."""

from __future__ import annotations

from collections.abc import Callable

from nearly.plan.binding.scope import FreshNames
from nearly.plan.nodes import Plan
from nearly.plan.schema import FindTable
from nearly.rewrite.logical.decorrelate import decorrelate
from nearly.rewrite.logical.factor_or import factor_or
from nearly.rewrite.logical.order_joins import order_joins
from nearly.rewrite.logical.prune import prune
from nearly.rewrite.logical.push_filter import push_filter
from nearly.rewrite.sites.distribute import Groups, distribute
from nearly.rewrite.stream.cut import Cut
from nearly.rewrite.stream.cut_query import stream
from nearly.rewrite.weigh.weigh import weigh

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


def for_sites(plan: Plan, find_table: FindTable, sites: int, groups: Groups | None = None) -> Plan:
    """A rewritten plan with exchanges; columns that only moved for nothing are pruned."""
    return prune(distribute(order_joins(plan, find_table), find_table, sites, groups))


def for_units(plan: Plan, find_table: FindTable, streamed: frozenset[str] | None = None) -> Cut | None:
    """The cut of a rewritten plan that can be read unit by unit; None where there is nothing to stream."""
    cut = stream(order_joins(plan, find_table), find_table, streamed)
    if cut is not None:
        weigh(cut.tail, cut.stages, 1.0, {})  # what has no estimate is refused before anything is read
    return cut
