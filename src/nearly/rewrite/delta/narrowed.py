"""Columns that only a filter reads end at the filter: whoever keeps the filtered rows need not keep them."""

from __future__ import annotations

from nearly.plan.nodes import Filter, Join, Plan, Project, Scan, passed
from nearly.rewrite.logical.prune import Needed, needed_of


def narrowed(plan: Plan) -> Plan:
    """The plan whose joins are given no columns of a filtered table that nobody reads. Law: it has the same rows."""
    return _narrowed(plan, needed_of(plan))


def _narrowed(plan: Plan, needed: Needed) -> Plan:
    def side(child: Plan) -> Plan:
        below = _narrowed(child, needed)
        wanted = [column for column in child.columns if column.name in needed[child]]
        is_wide = isinstance(plan, Join) and _is_filtered(child) and len(wanted) < len(child.columns)
        return Project(below, passed(wanted)) if is_wide else below

    return plan.map_children(side)


def _is_filtered(plan: Plan) -> bool:
    """Whether a plan has some rows of a table."""
    return isinstance(plan, Filter) and isinstance(plan.child, Scan | Filter)
