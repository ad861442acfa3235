"""Which rows of a view stay while its tables only get rows."""

from __future__ import annotations

from nearly.plan.nodes import Filter, GroupBy, Join, Plan, Project, Scan, SetOperation
from nearly.views.sampling.cleaning import StaleView


def lasting(view: StaleView) -> frozenset[str]:
    """Columns of a view as far as which no row goes, or becomes another, when rows come to its tables.

    A row that comes may take others away where it is what they must not meet, or rank before them; groups only change in what is
    computed of them.
    """
    plan = view.plan
    if isinstance(plan, GroupBy) and plan.sets is None:
        keys = {key.name for key in plan.keys} if _only_grows(plan.child) else set()
        return frozenset(name for name, column in zip(view.columns, plan.columns, strict=True) if column.name in keys)
    return frozenset(view.columns) if _only_grows(plan) else frozenset()


def _only_grows(plan: Plan) -> bool:
    """Whether rows that come to tables add rows, and take none away."""
    match plan:
        case Scan():
            return True
        case Filter() | Project() | Join(kind="inner" | "cross" | "semi") | SetOperation(kind="union", every=True):
            return all(map(_only_grows, plan.children))
    return False
