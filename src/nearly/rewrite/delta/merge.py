"""Groups kept up to date from their partial results: what was, and what the change adds, without looking at the other rows.

Only where the best value of a group went, and none as good came, its rows are looked at again.
"""

from __future__ import annotations

from decimal import Decimal as Number
from functools import reduce

from nearly.plan import functions
from nearly.plan.expressions import AggregateCall, Call, Column, Expression, Literal, conjunction
from nearly.plan.nodes import Filter, GroupBy, Output, Plan, Project, SetOperation, passed
from nearly.plan.types import BOOLEAN, INTEGERS, LONG
from nearly.rewrite.delta.changed import MINUS_ONE, ONE, ChangedRows, Deltas
from nearly.rewrite.delta.partials import EXTREMES, Partials, calls_of, gone_name, weighted_partials
from nearly.rewrite.delta.touched import Touched


def added_to(deltas: Deltas, plan: GroupBy, found: Partials) -> ChangedRows | None:
    """Groups whose partial results are all sums: what the change adds to them is small, and tells by itself what is touched.

    Rows that came and went alike need not be found first: they add nothing. Where all sums are 0, a group is what it was.
    """
    change = deltas.of(plan.child)
    if change is None:
        return None
    sums = GroupBy(change.plan, plan.keys, weighted_partials(found, change.weight))
    tests: list[Expression] = [Call(BOOLEAN, "<>", (each.column, _nothing(each.column))) for each in sums.aggregates]
    added = deltas.stage("added", Filter(sums, reduce(_or, tests)))
    names = tuple(Output(deltas.fresh("touched"), key.column) for key in plan.keys)
    touched = Touched(Project(added, names) if names else added, tuple(each.column for each in names))
    return merged(deltas, plan, found, added, touched)


def merged(deltas: Deltas, plan: GroupBy, found: Partials, added: Plan, touched: Touched) -> ChangedRows:
    """The touched groups as they are now, and those that were there as they were; `added` is what the change adds to them."""
    keys = [key.column for key in plan.keys]
    before = deltas.stage("before", touched.of(deltas, deltas.old(found.plan), keys))
    both = _together(deltas, found, before, added)
    both = both if keys else touched.of(deltas, both, ())
    alive = [functions.call(">", [found.alive, Literal(LONG, 0)])] if keys else []
    doubt = _doubt(found)
    if doubt is not None:  # they are read twice
        both = deltas.stage("merged", both)
    certain = conjunction([*alive, *([functions.call("not", [doubt])] if doubt is not None else [])])
    now = both if certain is None else Filter(both, certain)
    terms = [
        deltas.weighted(found.finished(before), plan.columns, MINUS_ONE),
        deltas.weighted(found.finished(_present(found, now)), plan.columns, ONE),
    ]
    if doubt is not None:
        doubtful = Project(Filter(both, conjunction([*alive, doubt]) or doubt), passed(keys))
        again = Touched(deltas.stage("doubtful", doubtful), tuple(keys))
        terms.append(deltas.weighted(again.of(deltas, deltas.computed(plan), keys), plan.columns, ONE))
    return deltas.union(plan.columns, terms)


def _together(deltas: Deltas, found: Partials, before: Plan, added: Plan) -> Plan:
    """Partial results before and those of the change, added up; of extremes also what was best, came best and went best."""
    keys = [key.column for key in found.plan.keys]
    old, new, sums = [*passed(keys)], [*passed(keys)], []
    for output, call in calls_of(found.plan):
        order = EXTREMES.get(call.function)
        sums.append(Output(output.name, AggregateCall(call.type, order or "sum", (output.column,))))
        old.append(Output(output.name, output.column))
        new.append(Output(output.name, output.column))
        for name, was, is_new in _best(output) if order is not None else ():
            nothing = Literal(call.type, None)
            old.append(Output(name, output.column if was else nothing))
            new.append(Output(name, is_new or nothing))
            sums.append(Output(name, AggregateCall(call.type, order or "min", (Column(call.type, name),))))
    sides = Project(before, tuple(old)), Project(added, tuple(new))
    rows = SetOperation(sides[0], sides[1], "union", True, sides[0].columns)
    return GroupBy(rows, passed(keys), tuple(sums))


def _best(output: Output) -> list[tuple[str, bool, Column | None]]:
    """Names for what was best, came best and went best; whether it is told by the old rows, or by which column of the change."""
    gone = gone_name(output)
    return [
        (_was_name(output), True, None),
        (_came_name(output), False, output.column),
        (gone, False, Column(output.expression.type, gone)),
    ]


def _was_name(output: Output) -> str:
    return f"{output.name}_was"


def _came_name(output: Output) -> str:
    return f"{output.name}_came"


def _doubt(found: Partials) -> Expression | None:
    """That some best value went and none as good came; None when no aggregate is an extreme."""
    tests = []
    for output, call in calls_of(found.plan):
        order = EXTREMES.get(call.function)
        if order is not None:
            was, came, gone = (Column(call.type, name) for name in (_was_name(output), _came_name(output), gone_name(output)))
            reached, worse = ("<=", ">") if order == "min" else (">=", "<")
            present = [functions.call("isnotnull", [each]) for each in (was, gone)]
            missed = functions.call("or", [functions.call("isnull", [came]), Call(BOOLEAN, worse, (came, was))])
            tests.append(reduce(_and, [*present, Call(BOOLEAN, reached, (gone, was)), missed]))
    return reduce(_or, tests) if tests else None


def _nothing(column: Column) -> Literal:
    return Literal(column.type, 0 if column.type in INTEGERS else Number(0))


def _or(left: Expression, right: Expression) -> Expression:
    return functions.call("or", [left, right])


def _and(left: Expression, right: Expression) -> Expression:
    return functions.call("and", [left, right])


def _present(found: Partials, rows: Plan) -> Plan:
    """Merged partial results as aggregates give them: a count of nothing is 0, a sum of no value is null."""
    outputs = [*passed(key.column for key in found.plan.keys)]
    for output, call in calls_of(found.plan):
        value, count = output.column, found.values.get(output.name)
        if count is not None:
            shown = functions.call("case", [functions.call(">", [count, Literal(LONG, 0)]), value, Literal(value.type, None)])
        elif call.function in ("count", "count_if"):
            shown = functions.call("coalesce", [value, Literal(LONG, 0)])
        else:
            shown = value
        outputs.append(Output(output.name, shown))
    return Project(rows, tuple(outputs))
