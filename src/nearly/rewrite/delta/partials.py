"""Aggregates as what can be added to: counts, exact sums and extremes, and how their results follow from these.

Law: partial results of rows that came, minus those of rows that went, added to the partial results before, give those after; as
long as sums are exact, and no extreme went. A group is there as long as it has rows, and a sum as long as it has values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from nearly.plan import functions
from nearly.plan.binding.nullability import never_null
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import AggregateCall, Call, Cast, Column, Expression, Literal
from nearly.plan.nodes import GroupBy, Output, Plan, Project, passed
from nearly.plan.types import DOUBLE, INTEGERS, LONG, Decimal, decimal
from nearly.rewrite.sites.split_aggregate import sum_type

ADDED = frozenset({"count", "count_if", "sum"})
EXTREMES = {"min": "min", "max": "max", "bool_and": "min", "bool_or": "max"}
"""Aggregates that are one of the values, and by which order."""
_OF_LONG = decimal(20, 0)
"""Holds every BIGINT; sums of it have ten digits more."""


@dataclass(frozen=True, slots=True)
class Partials:
    """A grouping whose aggregates are all partial results, and the columns of the original one in terms of them.

    `alive` counts the rows of a group; `values` names the count of the values that a sum has, where some may be null.
    """

    plan: GroupBy
    results: tuple[Output, ...]
    alive: Column
    values: dict[str, Column]

    def finished(self, rows: Plan) -> Plan:
        """The original columns, from rows of partial results."""
        return Project(rows, self.results)


def partials(plan: GroupBy, fresh: FreshNames) -> Partials | None:
    """The partial results of a grouping, each once; None where one of its aggregates has none that can be added to.

    Those the grouping has already keep their names. Law: `partials(p.plan)` has the same plan, and passes its columns on.
    """
    if plan.sets is not None or not all(is_mergeable(each) for each in plan.aggregates):
        return None
    found = _AskedPartials(plan, fresh, {call: output for output, call in calls_of(plan) if call.function != "avg"})
    results = [*passed(key.column for key in plan.keys)]
    results += [Output(output.name, found.result(call)) for output, call in calls_of(plan)]
    alive = found.column(functions.aggregate("count", []))
    return Partials(replace(plan, aggregates=tuple(found.made.values())), tuple(results), alive, found.values)


def calls_of(plan: GroupBy) -> list[tuple[Output, AggregateCall]]:
    """The aggregates of a grouping, and their calls."""
    return [(output, output.expression) for output in plan.aggregates if isinstance(output.expression, AggregateCall)]


def is_sum(found: Partials) -> bool:
    """Whether all partial results are sums, of which what came and what went alike takes nothing but time."""
    return not any(call.function in EXTREMES for _, call in calls_of(found.plan))


def is_mergeable(output: Output) -> bool:
    """Whether an aggregate can be kept up to date from its partial results: sums of doubles would drift."""
    call = output.expression
    if not isinstance(call, AggregateCall) or call.distinct:
        return False
    if call.function in ("sum", "avg"):
        return call.arguments[0].type in INTEGERS or isinstance(call.arguments[0].type, Decimal)
    return call.function in ADDED or call.function in EXTREMES


def in_other_width(call: AggregateCall) -> AggregateCall | None:
    """The same sum of BIGINT values as a wide decimal, and of such a sum the BIGINT; None of any other call."""
    match call:
        case AggregateCall(function="sum", arguments=(Cast(type=wide, operand=operand),)) if wide == _OF_LONG:
            return replace(call, type=LONG, arguments=(operand,))
        case AggregateCall(function="sum", arguments=(operand,)) if operand.type == LONG:
            wider = functions.aggregate("sum", [Cast(_OF_LONG, operand)])
            return replace(call, type=wider.type, arguments=wider.arguments)
    return None


@dataclass(slots=True)
class _AskedPartials:
    """The partial results asked for so far."""

    plan: GroupBy
    fresh: FreshNames
    made: dict[AggregateCall, Output]
    values: dict[str, Column] = field(default_factory=dict)

    def column(self, call: AggregateCall) -> Column:
        if call not in self.made:
            self.made[call] = Output(self.fresh("part"), call)
        return self.made[call].column

    def result(self, call: AggregateCall) -> Expression:
        """An aggregate in terms of partial results."""
        if call.function == "sum":
            return self._total(call)
        if call.function != "avg":
            return self.column(call)
        count = self.column(AggregateCall(LONG, "count", call.arguments, False, call.where))
        if isinstance(call.type, Decimal):
            return Call(call.type, "average_of", (self._total(replace(call, type=sum_type(call), function="sum")), count))
        return Call(call.type, "average_of", (Cast(DOUBLE, self._total(self._whole_sum(call))), count))

    def _whole_sum(self, call: AggregateCall) -> AggregateCall:
        """The exact sum below an average of whole numbers. That of BIGINT passes its range where no average does."""
        total = replace(call, type=LONG, function="sum")
        wider = in_other_width(total)
        return total if wider is None or total in self.made else wider  # a sum that is asked for is in range, or is an error

    def _total(self, call: AggregateCall) -> Column:
        """A sum, with the count of its values: when they are all gone, it is null and not 0."""
        total = self.column(call)
        if not never_null(call.arguments[0], self.plan.child) or call.where is not None or not self.plan.keys:
            self.values[total.name] = self.column(AggregateCall(LONG, "count", call.arguments, False, call.where))
        return total


def weighted_partials(found: Partials, weight: Column) -> tuple[Output, ...]:
    """What a change adds to the partial results: sums of weights, and of extremes the best that came and the best that went."""
    outputs = []
    for output, call in calls_of(found.plan):
        if call.function in EXTREMES:
            order = replace(call, function=EXTREMES[call.function])
            came = functions.call(">", [weight, Literal(LONG, 0)])
            went = functions.call("<", [weight, Literal(LONG, 0)])
            outputs.append(Output(output.name, _where(order, came)))
            outputs.append(Output(gone_name(output), _where(order, went)))
        else:
            outputs.append(Output(output.name, _sum_of_weights(call, weight)))
    return tuple(outputs)


def gone_name(output: Output) -> str:
    """The name of the best value that went."""
    return f"{output.name}_gone"


def _sum_of_weights(call: AggregateCall, weight: Column) -> AggregateCall:
    if call.function == "sum":
        (value,) = call.arguments
        product = Call(call.type, "*", (value if isinstance(value.type, Decimal) else Cast(LONG, value), weight))
        return replace(call, arguments=(product,))
    counted = replace(call, function="sum", arguments=(weight,), type=LONG)
    tests = call.arguments if call.function == "count_if" else [functions.call("isnotnull", [each]) for each in call.arguments]
    for test in tests:
        counted = _where(counted, test)
    return counted


def _where(call: AggregateCall, test: Expression) -> AggregateCall:
    return replace(call, where=test if call.where is None else functions.call("and", [call.where, test]))
