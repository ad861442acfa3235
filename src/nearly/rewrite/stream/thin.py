"""Quantiles of many rows from few: in each unit every so many-th row, in the order of the groups and of the values in each.

Law: every row is taken as often as any other, one in a step, whatever its group and its place in it. The quantiles of the rows
taken from a group differ from those of its rows in the unit by less than one step in rank; a group of fewer rows than a step gives
one row in some units and none in others. Exactly quantiles are computed from all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import AggregateCall, Call, Column, Expression, Literal, SortKey, WindowCall, same
from nearly.plan.functions import call
from nearly.plan.nodes import Filter, GroupBy, Join, Output, Plan, Project, Window, passed
from nearly.plan.types import BOOLEAN, INT, LONG

QUANTILE = "percentile"

GOLDEN = 0.618
"""Units begin at different places of a step, evenly spread however many there are; else their rows would lie at the same ranks."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The quantiles of an aggregate, all of one value, apart from its other aggregates."""

    plan: GroupBy
    value: Output
    quantiles: tuple[Output, ...]
    others: GroupBy | None
    where: Expression | None

    def thinned(self, unit: Column, step: int, fresh: FreshNames) -> Plan:
        """Keys, value and unit of every step-th row."""
        wanted = self.plan.child if self.where is None else Filter(self.plan.child, self.where)
        present = Filter(wanted, Call(BOOLEAN, "isnotnull", (self.value.expression,)))
        rows = Project(present, (*self.plan.keys, self.value, *passed((unit,))))
        order = (*(SortKey(key.column) for key in self.plan.keys), SortKey(self.value.column))
        ranking = Call(INT, "row_number", ())
        place = Output(fresh("place"), WindowCall(ranking.type, ranking, (unit,), order))
        return Project(Filter(Window(rows, (place,)), _is_taken(place.column, unit, step)), passed(rows.columns))

    def quantiles_of(self, rows: Plan) -> GroupBy:
        """The quantiles by key of rows such as the thinned ones."""
        return GroupBy(rows, passed(tuple(key.column for key in self.plan.keys)), self.quantiles)

    def together(self, quantiles: Plan, others: Plan, fresh: FreshNames) -> Plan:
        """The aggregate's columns from both parts; groups without a value have no quantile."""
        keys = [key.column for key in self.plan.keys]
        names = {key.name: fresh("key") for key in keys}
        renamed = Project(quantiles, tuple(Output(names.get(column.name, column.name), column) for column in quantiles.columns))
        condition = same(keys, [Column(key.type, names[key.name]) for key in keys])
        return Project(Join(others, renamed, "left" if keys else "cross", condition), passed(self.plan.columns))


def quantiles_apart(plan: GroupBy, fresh: FreshNames) -> Quantiles | None:
    """The quantiles and the rest; None when there is no quantile, or they are not all of one value."""
    calls = {output: output.expression for output in plan.aggregates if _is_quantile(output.expression)}
    over = {(each.arguments[0], each.where) for each in calls.values() if isinstance(each, AggregateCall)}
    if plan.sets is not None or len(over) != 1:
        return None
    ((argument, where),) = over
    value = Output(fresh("value"), argument)
    quantiles = tuple(
        Output(output.name, replace(each, arguments=(value.column, *each.arguments[1:]), where=None))
        for output, each in calls.items()
        if isinstance(each, AggregateCall)
    )
    rest = tuple(output for output in plan.aggregates if output not in calls)
    return Quantiles(plan, value, quantiles, replace(plan, aggregates=rest) if rest else None, where)


def _is_quantile(expression: Expression) -> bool:
    return isinstance(expression, AggregateCall) and expression.function == QUANTILE and not expression.distinct


def _is_taken(place: Column, unit: Column, step: int) -> Expression:
    offset = call("%", (call("*", (unit, Literal(LONG, round(GOLDEN * step)))), Literal(LONG, step)))
    return call("=", (call("%", (place, Literal(LONG, step))), offset))
