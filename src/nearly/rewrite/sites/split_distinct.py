"""An aggregate over distinct values in two steps: first the distinct values of each group, then the aggregate over them.

Law: agg(distinct x) by g = agg(x) by g of the groups by (g, x); the other aggregates are merged from partial results of these.
"""

from __future__ import annotations

from dataclasses import replace

from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import AggregateCall, Column, Expression
from nearly.plan.nodes import GroupBy, Output
from nearly.rewrite.sites.split_aggregate import TwoSteps, split_aggregate

DISTINCT_MATTERS = frozenset({"count", "sum", "avg"})


def split_distinct(plan: GroupBy, fresh: FreshNames) -> TwoSteps | None:
    """The distinct values, with partial results of everything else, and the aggregate over them.

    None when no aggregate is over distinct values, or several are over different ones.
    """
    calls = {output.name: output.expression for output in plan.aggregates if isinstance(output.expression, AggregateCall)}
    over = {call.arguments for call in calls.values() if _matters(call)}
    if plan.sets is not None or len(over) != 1 or any(_matters(call) and call.where is not None for call in calls.values()):
        return None
    (arguments,) = over
    if len(arguments) != 1:
        return None
    value = Output(fresh("value"), arguments[0])
    others = split_aggregate(replace(plan, aggregates=tuple(o for o in plan.aggregates if not _matters(calls[o.name]))), fresh)
    if others is None:
        return None
    inner = replace(others.partial, keys=(*plan.keys, value))
    distinct = tuple(
        Output(name, replace(call, arguments=(value.column,), distinct=False)) for name, call in calls.items() if _matters(call)
    )
    known: dict[str, Expression] = {output.name: output.expression for output in others.results}
    known |= {output.name: output.column for output in distinct}
    results = tuple(Output(column.name, known.get(column.name, Column(column.type, column.name))) for column in plan.columns)
    return TwoSteps(inner, others.keys, (*others.merges, *distinct), results)


def _matters(call: AggregateCall) -> bool:
    return call.distinct and call.function in DISTINCT_MATTERS
