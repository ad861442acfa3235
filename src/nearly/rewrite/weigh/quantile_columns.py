"""Columns of an answer that are quantiles of the rows that came to the driver."""

from __future__ import annotations

from dataclasses import dataclass

from nearly.plan.expressions import AggregateCall, Call, Literal
from nearly.plan.functions.casting import coerce
from nearly.plan.nodes import Filter, GroupBy, Output, Plan, Project
from nearly.plan.properties import origins
from nearly.plan.types import BOOLEAN, DOUBLE
from nearly.rewrite.stream.cut import Gathered
from nearly.rewrite.stream.thin import QUANTILE
from nearly.rewrite.weigh.weigh import rows_with_units


@dataclass(frozen=True, slots=True)
class QuantileColumn:
    """A column is the quantile `p` of a value of the rows that an aggregate groups; `keys` are the columns with its keys."""

    aggregate: GroupBy
    call: AggregateCall
    p: float
    keys: tuple[str, ...]


def quantile_columns(plan: Plan) -> dict[str, QuantileColumn]:
    """The columns of a plan, by name, that are quantiles, unchanged, of an aggregate whose keys are columns of the plan, too."""
    origin_of = origins(plan)
    shown = {origin: name for name, origin in reversed(origin_of.items())}
    found = {}
    for node in plan.walk():
        if not isinstance(node, GroupBy) or node.sets is not None or not all(key.name in shown for key in node.keys):
            continue
        keys = tuple(shown[key.name] for key in node.keys)
        calls = {output.name: output.expression for output in node.aggregates}
        for name, origin in origin_of.items():
            call = calls.get(origin)
            p = _share(call)
            if p is not None and isinstance(call, AggregateCall):
                found[name] = QuantileColumn(node, call, p, keys)
    return found


def _share(expression: object) -> float | None:
    match expression:
        case AggregateCall(function=function, arguments=(_, Literal(value=value)), distinct=False) if function == QUANTILE:
            return float(value) if isinstance(value, int | float) or hasattr(value, "as_tuple") else None
    return None


def values_by_unit(column: QuantileColumn, stages: tuple[Gathered, ...]) -> Plan:
    """The values, with the keys and the unit group of each: columns `key_0`, ..., `unit_group` and `value`."""
    rows = rows_with_units(column.aggregate, stages)
    value = coerce(column.call.arguments[0], DOUBLE)
    wanted = rows.plan if column.call.where is None else Filter(rows.plan, column.call.where)
    present = Filter(wanted, Call(BOOLEAN, "isnotnull", (value,)))
    names = tuple(Output(f"key_{place}", key.expression) for place, key in enumerate(rows.keys))
    return Project(present, (*names, Output("unit_group", rows.unit), Output("value", value)))
