"""Joins that keep rows of one side whatever the other has: semi, anti, left, right and full.

Law: with the right side fixed they treat every left row by itself. So a change of the left side is joined with the right side as it
is now; and of the left rows as they were, only those that met a row of the right side's change can be joined differently now: they
meet the change, and some meet nothing now or met nothing then.
Law of anti joins whose right side only grew: (a + da) anti (c + dc) = a anti c + da anti (c + dc) - (a anti c) semi dc.
A right join is a left join seen from the other side; a full join is a left join and the right rows that nothing meets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nearly.plan import functions
from nearly.plan.expressions import AggregateCall, Call, Column, Literal, conjuncts
from nearly.plan.nodes import GroupBy, Join, Output, Plan, Project, SetOperation, passed
from nearly.plan.types import LONG
from nearly.rewrite.delta.changed import MINUS_ONE, ONE, ChangedRows, Deltas, negated, net_rows
from nearly.rewrite.delta.restrict import Match, equal_pairs, restrict


def outer_join(deltas: Deltas, plan: Join) -> ChangedRows | None:
    match plan.kind:
        case "right":
            return deltas.of(Project(replace(plan, left=plan.right, right=plan.left, kind="left"), passed(plan.columns)))
        case "full":
            return deltas.of(_both_sides(plan))
    terms = [*_changed_rows(deltas, plan), *_touched_rows(deltas, plan)]
    return deltas.union(plan.columns, terms) if terms else None


def _both_sides(plan: Join) -> Plan:
    alone = Join(plan.right, plan.left, "anti", plan.condition)
    padded = (*_nulls(plan.left.columns), *passed(plan.right.columns))
    return SetOperation(replace(plan, kind="left"), Project(alone, padded), "union", True, plan.columns)


def _nulls(columns: Sequence[Column]) -> tuple[Output, ...]:
    return tuple(Output(column.name, Literal(column.type, None)) for column in columns)


def _changed_rows(deltas: Deltas, plan: Join) -> list[ChangedRows]:
    """Left rows that came or went, with what they meet now."""
    change = deltas.kept(plan.left)
    if change is None:
        return []
    return [joined_now(deltas, plan, change)]


def _touched_rows(deltas: Deltas, plan: Join) -> list[ChangedRows]:
    """What changes for left rows as they were, when what came or went on the right meets them."""
    change = deltas.kept(plan.right)
    if change is None:
        return []
    if plan.kind == "anti" and plan in deltas.stored and change.ones:
        return [_met_at_last(deltas, plan, change)]
    touched = _met(deltas, plan, change)
    if plan.kind != "left":
        return _now_and_then(deltas, plan, touched)
    product = Call(LONG, "*", (touched.weight, change.weight))
    pairs = deltas.weighted(Join(touched.plan, change.plan, "inner", plan.condition), plan.columns, product)
    padded = (*passed(plan.left.columns), *_nulls(plan.right.columns))
    alone = _now_and_then(deltas, replace(plan, kind="anti"), touched)
    return [pairs, *(ChangedRows(Project(each.plan, (*padded, *passed([each.weight]))), each.weight) for each in alone)]


def _met_at_last(deltas: Deltas, plan: Join, change: ChangedRows) -> ChangedRows:
    """The rows of an anti join that go when rows only come on its right: of its own rows that are stored, those that meet some.

    The left side is not looked at.
    """
    return deltas.weighted(Join(deltas.old(plan), change.plan, "semi", plan.condition), plan.columns, MINUS_ONE)


def _met(deltas: Deltas, plan: Join, change: ChangedRows) -> ChangedRows:
    """The left rows as they were that meet a change of the right side, each once with how often it was there; perhaps some more."""
    matches = matches_of(plan, plan.left, change.plan)
    met = restrict(deltas.old(plan.left), matches, change.plan, deltas.fresh)
    if len(matches) < len(conjuncts(plan.condition)):
        met = Join(met, change.plan, "semi", plan.condition)
    count = Output(deltas.fresh("weight"), AggregateCall(LONG, "count", ()))
    rows = deltas.stage("touched", GroupBy(met, passed(plan.left.columns), (count,)), nets=True)
    return ChangedRows(rows, count.column)


def _now_and_then(deltas: Deltas, plan: Join, touched: ChangedRows) -> list[ChangedRows]:
    """Touched rows that are in a semi or anti join now, without those that were."""
    now = joined_now(deltas, plan, touched)
    then = _joined(deltas, plan, touched.plan, deltas.old(plan.right))
    return [now, deltas.weighted(then, plan.columns, negated(touched.weight))]


def joined_now(deltas: Deltas, plan: Join, left: ChangedRows) -> ChangedRows:
    """Few left rows with what they meet now: of a right side that is stored, what was and the change, row by row."""
    change = deltas.kept(plan.right) if plan.right in deltas.stored else None
    if change is None:
        return ChangedRows(_joined(deltas, plan, left.plan, deltas.now(plan.right)), left.weight, left.ones)
    columns = plan.right.columns
    both = deltas.union(columns, (deltas.weighted(deltas.old(plan.right), columns, ONE), change))
    near = restrict(both.plan, matches_of(plan, plan.right, left.plan), left.plan, deltas.fresh)
    right = net_rows(ChangedRows(near, both.weight), deltas.fresh)
    joined = replace(plan, left=left.plan, right=right.plan)
    if plan.kind in ("semi", "anti"):
        return ChangedRows(joined, left.weight)
    times = functions.call("coalesce", [right.weight, ONE])
    return deltas.weighted(joined, plan.columns, Call(LONG, "*", (left.weight, times)))


def _joined(deltas: Deltas, plan: Join, left: Plan, right: Plan) -> Plan:
    """The join of few left rows, with no more of the right side than they can meet."""
    return replace(plan, left=left, right=restrict(right, matches_of(plan, plan.right, left), left, deltas.fresh))


def matches_of(plan: Join, side: Plan, few: Plan) -> Sequence[Match]:
    """What the rows of one side must be equal to in the few rows of the other."""
    pairs = equal_pairs(side, few, conjuncts(plan.condition))
    return [Match(mine, theirs) for mine, theirs in pairs if isinstance(theirs, Column)]
