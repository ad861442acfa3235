"""How a view is maintained: operator by operator, and where not from changes alone, why and what to do instead."""

from __future__ import annotations

from collections.abc import Sequence

from nearly.plan.explain import describe, explain
from nearly.plan.nodes import GroupBy, Plan
from nearly.plan.schema import FindTable
from nearly.rewrite.delta.strategy.open_rows import has_open_rows
from nearly.rewrite.delta.strategy.reasons import Reason
from nearly.rewrite.delta.strategy.strategies import DELTA, TOUCHED, WHOLE, Strategy, strategies
from nearly.rewrite.delta.with_partials import values_of
from nearly.rewrite.views.split_view import StoredView
from nearly.views.definition import PlannedView
from nearly.views.reasons import spark_only, told

_TOLD = {
    DELTA: "from the rows that changed",
    TOUCHED: "from the rows that changed and the groups they touch",
    WHOLE: "computed anew at each refresh, in part or as a whole",
}


def operators(planned: PlannedView, stored: StoredView, kept: Sequence[Plan] = ()) -> tuple[Strategy, ...]:
    """The operators of what a view stores, with how each is maintained; the rows of some parts may be `kept`, too."""
    plan = stored.kept
    return strategies(plan, finding(planned), (plan, *values_of(plan), *kept))


def obstacles(planned: PlannedView) -> list[Reason]:
    """Why a view is not maintained from changes, and groups they touch, alone."""
    if planned.stored is None:
        return [spark_only(planned.prepared.reason)]
    found = operators(planned, planned.stored)
    return [each.reason for each in found if each.strategy == WHOLE and each.reason is not None]


def is_open(planned: PlannedView) -> bool:
    """Whether what a view stores is one of several answers to its query: computed again, it may be another."""
    return planned.stored is not None and has_open_rows(planned.stored.maintained, finding(planned))


def strategy_of(planned: PlannedView, kept: Sequence[Plan] = ()) -> str:
    """The costliest of what the operators of a view need."""
    if planned.stored is None:
        return WHOLE
    found = {each.strategy for each in operators(planned, planned.stored, kept)}
    return WHOLE if WHOLE in found else TOUCHED if TOUCHED in found else DELTA


def finding(planned: PlannedView) -> FindTable:
    """What plans know of the tables of a view."""
    known = {table.name.lower(): table.schema for table in planned.inputs}
    return lambda name: known[name.lower()]


def explained(planned: PlannedView, groups: Sequence[GroupBy] = ()) -> str:
    """What is stored, and which groups beside it, how that is read, and what each operator needs when tables change."""
    lines = [f"maintained: {_TOLD[strategy_of(planned)]}"]
    lines += [f"why: {told(reason)}" for reason in dict.fromkeys(obstacles(planned))]
    stored = planned.stored
    if stored is None:
        return "\n".join(lines)
    lines.append(f"stored: {', '.join(stored.columns)}" + (f"; key {', '.join(planned.key)}" if planned.key else "; no key"))
    lines += [f"kept beside it, where they are not too many: {describe(each)}" for each in groups]
    lines += ["operators:", *(f"  {each}" for each in operators(planned, stored))]
    if stored.reading is not None:
        lines += ["read by:", explain(stored.reading.plan, None, 1)]
    return "\n".join(lines)
