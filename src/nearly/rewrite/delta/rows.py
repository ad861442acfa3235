"""Operators that treat every row by itself: their delta is what they make of the delta below.

Law: f(a + b) = f(a) + f(b) for bags of rows, so f(new) - f(old) = f(new - old).
"""

from __future__ import annotations

from dataclasses import replace

from nearly.plan.expressions import Column
from nearly.plan.nodes import Apply, Filter, Input, Output, Project, Scan, SetOperation, Sort, Values, passed
from nearly.plan.types import LONG
from nearly.rewrite.delta.changed import WEIGHT, ChangedRows, Deltas
from nearly.rewrite.delta.whole import whole


def scan(deltas: Deltas, plan: Scan) -> ChangedRows | None:
    """What came and went in the table."""
    change = deltas.changes[plan.table.lower()]
    read = dict.fromkeys([*(Column(each.type, each.source) for each in plan.fields), Column(LONG, WEIGHT)])
    weight = Output(deltas.fresh("weight"), Column(LONG, WEIGHT))
    outputs = tuple(Output(each.name, Column(each.type, each.source)) for each in plan.fields)
    return ChangedRows(Project(Input(change.source, tuple(read)), (*outputs, weight)), weight.column, change.grew)


def values(deltas: Deltas, plan: Values) -> None:
    """Constants do not change."""


def filtered(deltas: Deltas, plan: Filter) -> ChangedRows | None:
    below = deltas.of(plan.child)
    return below and replace(below, plan=Filter(below.plan, plan.predicate))


def project(deltas: Deltas, plan: Project) -> ChangedRows | None:
    below = deltas.of(plan.child)
    return below and replace(below, plan=Project(below.plan, (*plan.outputs, *passed([below.weight]))))


def sort(deltas: Deltas, plan: Sort) -> ChangedRows | None:
    """A bag has no order."""
    return deltas.of(plan.child)


def union_all(deltas: Deltas, plan: SetOperation) -> ChangedRows | None:
    """Both sides' changes, under the columns of the union."""
    terms = []
    for side in (plan.left, plan.right):
        found = deltas.of(side)
        if found is not None:
            renamed = tuple(Output(new.name, old) for new, old in zip(plan.given, side.columns, strict=True))
            terms.append(replace(found, plan=Project(found.plan, (*renamed, *passed([found.weight])))))
    return deltas.union(plan.given, terms) if terms else None


def apply(deltas: Deltas, plan: Apply) -> ChangedRows | None:
    """A function that may be given rows in pieces is given those of each weight; any other sees all rows again."""
    if plan.keys is not None or plan.by is not None:
        return whole(deltas, plan)
    below = deltas.kept(plan.child)
    return below and ChangedRows(replace(plan, child=below.plan, by=below.weight), below.weight)
