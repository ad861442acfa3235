"""Rough sizes of intermediate results, good enough to choose which side of a join moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nearly.plan.expressions import Call, Column, Expression, Literal, conjuncts
from nearly.plan.nodes import Filter, GroupBy, Join, Limit, Plan, Scan, SetOperation, Values
from nearly.plan.schema import FindTable

_BY_FUNCTION = {"=": 0.05, "in": 0.15, "like": 0.1, "<=>": 0.05, "isnull": 0.05, "<>": 0.9, "isnotnull": 0.95, "not": 0.7}
_RANGE = 0.4
_OTHER = 0.5
_GROUPS = 0.3
"""Groups per row."""


def selectivity(predicate: Expression | None) -> float:
    """The fraction of rows that a predicate is guessed to keep."""
    kept = 1.0
    for part in conjuncts(predicate):
        kept *= _one(part)
    return kept


def _one(part: Expression) -> float:
    if isinstance(part, Literal):
        return 1.0 if part.value else 0.0
    if not isinstance(part, Call):
        return _OTHER
    if part.function in ("<", "<=", ">", ">="):
        return _RANGE
    if part.function == "=" and all(isinstance(argument, Column) for argument in part.arguments):
        return _OTHER
    return _BY_FUNCTION.get(part.function, _OTHER)


@dataclass(frozen=True, slots=True)
class Size:
    """About how many rows a plan has, and how many its tables have without any filter."""

    rows: float
    base: float


def size(plan: Plan, find_table: FindTable, known: Mapping[Plan, Size] | None = None) -> Size:
    """A guess from row counts of tables and shapes of predicates; of some subplans it may be known."""
    if known and plan in known:
        return known[plan]

    def below(child: Plan) -> Size:
        return size(child, find_table, known)

    match plan:
        case Scan():
            rows = float(find_table(plan.table).rows)
            return Size(rows, rows)
        case Values():
            return Size(float(len(plan.rows)), float(len(plan.rows)))
        case Filter():
            found = below(plan.child)
            return Size(found.rows * selectivity(plan.predicate), found.base)
        case GroupBy():
            return grouped_size(plan, below(plan.child))
        case Join():
            return joined_size(plan, below(plan.left), below(plan.right))
        case SetOperation():
            left, right = below(plan.left), below(plan.right)
            return Size(left.rows + right.rows, left.base + right.base) if plan.kind == "union" else left
        case Limit():
            found = below(plan.child)
            return Size(min(found.rows, float(plan.count)), found.base) if plan.count is not None else found
    return below(plan.children[0]) if plan.children else Size(1.0, 1.0)


def grouped_size(plan: GroupBy, child: Size) -> Size:
    return Size(max(1.0, child.rows * _GROUPS), child.base) if plan.keys else Size(1.0, 1.0)


def joined_size(plan: Join, left: Size, right: Size) -> Size:
    """A join by a key of the smaller table keeps the share of the other's rows that this table's filters keep."""
    match plan.kind:
        case "semi" | "anti":
            return Size(left.rows * _OTHER, left.base)
        case "cross":
            return Size(left.rows * right.rows, left.base * right.base)
    rows = left.rows * right.rows / max(min(left.base, right.base), 1.0)
    return Size(max(rows, 1.0), max(left.base, right.base))
