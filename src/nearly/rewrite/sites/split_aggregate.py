"""An aggregate in two steps: partial results at every site, then their merge.

Law: for any split of the input, merging the partial results of the parts gives the aggregate of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import AggregateCall, Call, Column, Expression, Literal
from nearly.plan.nodes import GroupBy, Output, Plan, Project, passed
from nearly.plan.types import LONG, DataType, Decimal, bounded_decimal

_MERGED_BY = {
    "sum": "sum", "count": "sum", "count_if": "sum", "min": "min", "max": "max", "bool_and": "bool_and", "bool_or": "bool_or",
}  # fmt: skip
_DISTINCT_IS_IRRELEVANT = frozenset({"min", "max", "bool_and", "bool_or"})


@dataclass(frozen=True, slots=True)
class TwoSteps:
    """The aggregate of each part, and how the rows of all parts together become the aggregate of the whole."""

    partial: GroupBy
    keys: tuple[Output, ...]
    merges: tuple[Output, ...]
    results: tuple[Output, ...]

    def merged(self, parts: Plan) -> Plan:
        """The whole aggregate from the partial rows, under the columns of the original node."""
        return Project(GroupBy(parts, self.keys, self.merges), self.results)


def split_aggregate(plan: GroupBy, fresh: FreshNames) -> TwoSteps | None:
    """The two steps, or None when some aggregate has no merge (distinct ones, quantiles)."""
    partial: list[Output] = []
    merges: list[Output] = []
    results: list[Output] = []
    for output in plan.aggregates:
        call = output.expression
        if not isinstance(call, AggregateCall) or not _is_mergeable(call):
            return None
        results.append(Output(output.name, _counted(call, _split_call(call, partial, merges, fresh), plan)))
    keys = [key.column for key in plan.keys] + ([plan.grouping_id] if plan.grouping_id else [])
    merged_by = passed(keys)
    ordered = _in_order(plan, (*merged_by, *results))
    return TwoSteps(GroupBy(plan.child, plan.keys, tuple(partial), plan.sets, plan.grouping_id), merged_by, tuple(merges), ordered)


def merged_parts(partial: GroupBy, parts: Plan) -> GroupBy:
    """Rows of a partial aggregate as fewer ones: those with equal keys merged, under the same columns.

    Law: merging merged parts gives what merging the parts gives.
    """
    keys = [key.column for key in partial.keys] + ([partial.grouping_id] if partial.grouping_id else [])
    merges = []
    for output in partial.aggregates:
        call = output.expression
        if isinstance(call, AggregateCall):
            merges.append(Output(output.name, AggregateCall(call.type, _MERGED_BY[call.function], (output.column,))))
    return GroupBy(parts, passed(keys), tuple(merges))


def _in_order(plan: GroupBy, outputs: tuple[Output, ...]) -> tuple[Output, ...]:
    by_name = {output.name: output for output in outputs}
    return tuple(by_name[column.name] for column in plan.columns)


def _counted(call: AggregateCall, merged: Expression, plan: GroupBy) -> Expression:
    """Parts by further keys may have no row at all; then a count without keys is 0, not null."""
    if plan.keys or call.function not in ("count", "count_if"):
        return merged
    return Call(LONG, "coalesce", (merged, Literal(LONG, 0)))


def _is_mergeable(call: AggregateCall) -> bool:
    if call.distinct and call.function not in _DISTINCT_IS_IRRELEVANT:
        return False
    return call.function in _MERGED_BY or call.function == "avg"


def _split_call(call: AggregateCall, partial: list[Output], merges: list[Output], fresh: FreshNames) -> Expression:
    """Add what one call needs to both steps; its value in terms of the merged columns."""
    if call.function != "avg":
        return _step(call, _MERGED_BY[call.function], partial, merges, fresh)
    total = _step(AggregateCall(sum_type(call), "sum", call.arguments, False, call.where), "sum", partial, merges, fresh)
    count = _step(AggregateCall(LONG, "count", call.arguments, False, call.where), "sum", partial, merges, fresh)
    return Call(call.type, "average_of", (total, count))


def _step(call: AggregateCall, merge: str, partial: list[Output], merges: list[Output], fresh: FreshNames) -> Column:
    part = Output(fresh("part"), call)
    whole = Output(fresh("whole"), AggregateCall(call.type, merge, (part.column,)))
    partial.append(part)
    merges.append(whole)
    return whole.column


def sum_type(call: AggregateCall) -> DataType:
    """The sum below a decimal average has Spark's ten extra digits; below any other it is a double."""
    operand = call.arguments[0].type
    return bounded_decimal(operand.precision + 10, operand.scale) if isinstance(operand, Decimal) else call.type
