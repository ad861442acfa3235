"""Columns of an answer that count the keys of an aggregate: `count(distinct x)`, by group or not, or all rows of a grouping.

An average of a sum or count over such keys is a total, which does not depend on the keys, divided by their number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nearly.plan.expressions import AggregateCall, Call, Column, Expression, WindowCall
from nearly.plan.functions.casting import coerce
from nearly.plan.nodes import Filter, GroupBy, Limit, Output, Plan, Project, Sort, Window
from nearly.plan.types import BOOLEAN, DOUBLE, LONG
from nearly.rewrite.stream.cut import Gathered
from nearly.rewrite.weigh.weigh import rows_with_units


@dataclass(frozen=True, slots=True)
class CountedKeys:
    """The keys of an aggregate are counted; `present` names those of its keys that must not be null for that.

    They are counted by some of its keys, `by`, which are the columns `shown` of the answer. With a `total`, the column is the sum
    of that over all rows, divided by the number of keys that have one.
    """

    aggregate: GroupBy
    present: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    total: Expression | None = None


def distinct_counts(plan: Plan) -> dict[str, CountedKeys]:
    """The columns of a plan, by name, that count the keys of an aggregate below, with nothing in between that drops any."""
    match plan:
        case Sort() | Limit() | Filter():
            return distinct_counts(plan.child)
        case Project():
            columns = [(o.name, o.expression.name) for o in plan.outputs if isinstance(o.expression, Column)]
            shown = {below: name for name, below in reversed(columns)}
            found = distinct_counts(plan.child)
            return {
                name: replace(found[below], shown=tuple(shown[key] for key in found[below].shown))
                for name, below in columns
                if below in found and all(key in shown for key in found[below].shown)
            }
        case GroupBy(sets=None):
            return _counts(plan)
    return {}


def _counts(plan: GroupBy) -> dict[str, CountedKeys]:
    child, names = plan.child, {column.name: column.name for column in plan.child.columns}
    while isinstance(child, Project):
        passed = {o.name: o.expression.name for o in child.outputs if isinstance(o.expression, Column)}
        names = {name: passed[below] for name, below in names.items() if below in passed}
        child = child.child
    if not isinstance(child, GroupBy) or not child.keys or child.sets is not None:
        return {}
    keys = {key.name for key in child.keys}
    by = tuple(names.get(key.expression.name, "") if isinstance(key.expression, Column) else "" for key in plan.keys)
    if not keys.issuperset(by):
        return {}
    shown = tuple(key.name for key in plan.keys)
    found = {}
    for output in plan.aggregates:
        call = output.expression
        if not isinstance(call, AggregateCall) or call.function not in ("count", "avg") or call.distinct or call.where is not None:
            continue
        if call.function == "avg":
            total = _total(child, names, call.arguments[0])
            if total is not None:
                found[output.name] = CountedKeys(child, (), by, shown, total)
            continue
        columns = [names.get(each.name) if isinstance(each, Column) else None for each in call.arguments]
        present = tuple(name for name in columns if name in keys)
        if len(present) == len(columns):
            found[output.name] = CountedKeys(child, present, by, shown)
    return found


def _total(keyed: GroupBy, names: dict[str, str], averaged: Expression) -> Expression | None:
    """What the averaged column sums up for each key, if it is a sum."""
    name = names.get(averaged.name) if isinstance(averaged, Column) else None
    call = next((output.expression for output in keyed.aggregates if output.name == name), None)
    match call:
        case AggregateCall(function="sum", arguments=(summed,), distinct=False, where=None):
            return summed
    return None


def totals_by_unit(counted: CountedKeys, total: Expression, stages: tuple[Gathered, ...]) -> Plan:
    """The sum of the total over the rows of each unit group: columns `key_0`, ..., `unit_group` and `total`."""
    rows = rows_with_units(counted.aggregate, stages)
    expressions = {key.name: key.expression for key in rows.keys}
    by = tuple(Output(f"key_{place}", expressions[name]) for place, name in enumerate(counted.by))
    summed = Output("total", AggregateCall(DOUBLE, "sum", (coerce(total, DOUBLE),)))
    return GroupBy(rows.plan, (*by, Output("unit_group", rows.unit)), (summed,))


def keys_by_unit(counted: CountedKeys, stages: tuple[Gathered, ...]) -> Plan:
    """How many keys of each unit group were seen in how many of them: columns `key_0`, ..., `unit_group`, `seen_in` and `keys`."""
    rows = rows_with_units(counted.aggregate, stages)
    keys = rows.keys
    unit = Output("unit_group", rows.unit)
    counting = rows.plan if counted.total is None else Filter(rows.plan, Call(BOOLEAN, "isnotnull", (counted.total,)))
    pairs: Plan = GroupBy(counting, (*keys, unit), ())
    for name in counted.present:
        key = next(each.column for each in keys if each.name == name)
        pairs = Filter(pairs, Call(BOOLEAN, "isnotnull", (key,)))
    count = AggregateCall(LONG, "count", ())
    seen = Output("seen_in", WindowCall(LONG, count, tuple(key.column for key in keys), ()))
    columns = {key.name: key.column for key in keys}
    by = tuple(Output(f"key_{place}", columns[name]) for place, name in enumerate(counted.by))
    passed = (*by, replace(unit, expression=unit.column), replace(seen, expression=seen.column))
    return GroupBy(Window(pairs, (seen,)), passed, (Output("keys", count),))
