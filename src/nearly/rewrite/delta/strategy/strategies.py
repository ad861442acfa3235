"""How each operator of a plan is kept up to date, and where that is not by its change alone, why and what to do instead.

Strategies: `delta` needs the change and, for joins, the rows that meet it; `touched keys` computes the groups, partitions or rows
of touched keys again; `whole` computes all rows again, as they are and as they were.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from nearly.plan.explain import describe
from nearly.plan.expressions import AggregateCall, Expression, UserCall, walk
from nearly.plan.nodes import Apply, GroupBy, Join, Limit, Plan, Project, SetOperation, Window
from nearly.plan.properties import equated
from nearly.plan.schema import FindTable
from nearly.rewrite.delta.partials import is_mergeable
from nearly.rewrite.delta.restrict import common_partition
from nearly.rewrite.delta.strategy.drift import decides_by_drift
from nearly.rewrite.delta.strategy.open_rows import has_open_ties, is_total
from nearly.rewrite.delta.strategy.reasons import REASONS, Reason
from nearly.rewrite.logical.order_joins import is_inner

DELTA, TOUCHED, WHOLE = "delta", "touched keys", "whole"


@dataclass(frozen=True, slots=True)
class Strategy:
    """How one operator is kept up to date; `depth` is its place in the plan's tree."""

    operator: str
    depth: int
    strategy: str
    reason: Reason | None = None

    def __str__(self) -> str:
        why = f"    -- {self.reason.code}: {self.reason.why}; {self.reason.instead}" if self.reason else ""
        return f"{'  ' * self.depth}{self.operator}: {self.strategy}{why}"


def strategies(plan: Plan, find_table: FindTable, stored: Collection[Plan] = ()) -> tuple[Strategy, ...]:
    """The strategy of every operator, parents first; `stored` are parts of the plan whose old rows are kept."""
    return tuple(_walked(plan, find_table, stored, 0))


def is_incremental(found: Collection[Strategy]) -> bool:
    """Whether no operator is computed as a whole."""
    return all(each.strategy != WHOLE for each in found)


def _walked(plan: Plan, find_table: FindTable, stored: Collection[Plan], depth: int) -> Iterator[Strategy]:
    strategy, code = _strategy(plan, find_table, stored)
    yield Strategy(describe(plan), depth, strategy, REASONS.get(code) if code else None)
    for child in plan.children:
        yield from _walked(child, find_table, stored, depth + 1)


def _strategy(plan: Plan, find_table: FindTable, stored: Collection[Plan]) -> tuple[str, str | None]:
    if any(isinstance(part, UserCall) for expression in plan.expressions() for part in walk(expression)):
        return WHOLE, "USER_FUNCTION"
    if decides_by_drift(plan):
        return WHOLE, "DOUBLES_AS_KEYS"
    match plan:
        case GroupBy():
            return _of_groups(plan, stored)
        case Join():
            return _of_join(plan)
        case Window():
            return _of_window(plan, find_table)
        case Limit() if not plan.names:
            return TOUCHED, None
        case Limit():
            return WHOLE, "LIMIT_BELOW" if is_total(plan.child, find_table) else "LIMIT_WITHOUT_TOTAL_ORDER"
        case Apply():
            return (DELTA, None) if plan.keys is None else (WHOLE, "USER_FUNCTION")
        case SetOperation() if plan.kind != "union" or not plan.every:
            return TOUCHED, None
    return DELTA, None


def _of_groups(plan: GroupBy, stored: Collection[Plan]) -> tuple[str, str | None]:
    odd = [output.expression for output in plan.aggregates if not is_mergeable(output)]
    if plan.sets is None and not plan.keys and plan not in stored:
        return WHOLE, "ONE_GROUP"
    if not odd:
        return DELTA, None
    if not plan.keys:
        return WHOLE, "ONE_GROUP"
    return TOUCHED, _why_not_merged(odd)


def _why_not_merged(odd: Collection[Expression]) -> str:
    calls = [each for each in odd if isinstance(each, AggregateCall)]
    if all(each.function in ("sum", "avg") and not each.distinct for each in calls):
        return "DOUBLES"
    return "DISTINCT_VALUES" if all(each.distinct for each in calls) else "NOT_MERGEABLE"


def _of_window(plan: Window, find_table: FindTable) -> tuple[str, str | None]:
    if has_open_ties(plan, find_table):
        return WHOLE, "WINDOW_WITHOUT_TOTAL_ORDER"
    return (TOUCHED, None) if common_partition(plan) else (WHOLE, "WINDOW_WITHOUT_PARTITION")


def _of_join(plan: Join) -> tuple[str, str | None]:
    if is_inner(plan):
        single = any(_is_single(side) for side in (plan.left, plan.right))
        return (TOUCHED, "VALUE_IN_EVERY_ROW") if single else (DELTA, None)
    return TOUCHED, None if equated(plan, ("=", "<=>")) else "NO_EQUALITY"


def _is_single(plan: Plan) -> bool:
    """Whether a plan is one row for all."""
    while isinstance(plan, Project):
        plan = plan.child
    return isinstance(plan, GroupBy) and not plan.keys and plan.sets is None
