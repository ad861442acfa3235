"""Rows that SQL leaves open: LIMITs and windows that may give others each time they are read.

A LIMIT whose order is total keeps the same rows each time; of one whose columns nobody looks at, as of EXISTS, it does not matter.
A window that numbers rows or looks at neighbours is settled by an order in which no two different rows tie. What is stored must not
hang on ties: a partition that is computed again, as it was, would not be the one that is stored.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from nearly.plan.expressions import Call, Column, Expression, SortKey, WindowCall, columns_of
from nearly.plan.nodes import Filter, Limit, Output, Plan, Project, SetOperation, Sort, Window
from nearly.plan.properties import keys
from nearly.plan.schema import FindTable
from nearly.plan.types import is_simple
from nearly.rewrite.delta.strategy.drift import decides_by_drift

NUMBERED = frozenset({"row_number", "ntile", "lag", "lead"})
"""Functions that tell rows apart which tie, whatever the frame is."""
OF_FRAME = frozenset({"first_value", "last_value", "nth_value"})
"""Functions that are one row of a frame: of rows that tie and share it, which one is open."""


def has_open_limit(plan: Plan, find_table: FindTable) -> bool:
    """Whether a plan's rows hang on which rows some LIMIT keeps, and that is open; those on top are read once in each version."""
    while isinstance(plan, Project | Filter | Sort | Limit):
        plan = plan.child
    return _is_open(plan, plan.names, find_table)


def has_open_rows(plan: Plan, find_table: FindTable) -> bool:
    """Whether a plan may have other rows each time it is computed over the same tables: what is stored is one of several."""
    if _is_open(plan, plan.names, find_table):
        return True
    return any(decides_by_drift(node) or (isinstance(node, Window) and has_open_ties(node, find_table)) for node in plan.walk())


def _is_open(plan: Plan, seen: AbstractSet[str], find_table: FindTable) -> bool:
    """`seen` are the columns of the plan that someone looks at."""
    if isinstance(plan, Limit) and plan.count != 0 and seen & plan.names and not is_total(plan.child, find_table):
        return True
    read = {name for expression in plan.expressions() for name in columns_of(expression)} | seen
    every = isinstance(plan, SetOperation)
    return any(_is_open(child, child.names if every else read & child.names, find_table) for child in plan.children)


def is_total(plan: Plan, find_table: FindTable) -> bool:
    """Whether no two rows of a plan that differ tie in its order."""
    shown = set(plan.names)
    while isinstance(plan, Project):
        made = {output.name: columns_of(output.expression) for output in plan.outputs}
        shown = {column for name in shown for column in made[name]}
        plan = plan.child
    if not isinstance(plan, Sort):
        return False
    ordered = {key.expression.name for key in plan.keys if isinstance(key.expression, Column)}
    return shown <= ordered or any(key <= ordered for key in keys(plan.child, find_table))


def settle_ties(plan: Plan, find_table: FindTable) -> Plan:
    """The plan with further columns to order by, where rows may tie that a window tells apart.

    Law: the rows are some that the query may have, and the same ones however tables are read.
    """

    def change(node: Plan) -> Plan:
        if not isinstance(node, Window):
            return node
        return replace(node, outputs=tuple(_settled(each, node.child, find_table) for each in node.outputs))

    return plan.transform(change)


def has_open_ties(window: Window, find_table: FindTable) -> bool:
    """Whether some value of a window hangs on which of two rows that tie comes first."""
    calls = (each.expression for each in window.outputs)
    return any(isinstance(call, WindowCall) and _hangs_on_ties(call) and _lacking(call, window.child, find_table) for call in calls)


def _settled(output: Output, child: Plan, find_table: FindTable) -> Output:
    call = output.expression
    if not isinstance(call, WindowCall) or not call.order or not _tells_ties_apart(call):
        return output
    order = (*call.order, *(SortKey(column) for column in _lacking(call, child, find_table) if is_simple(column.type)))
    return replace(output, expression=replace(call, order=order))


def _tells_ties_apart(call: WindowCall) -> bool:
    """Whether rows that tie are told apart in any case, so that a longer order changes nothing but which is first."""
    return _function(call) in NUMBERED or (call.frame is not None and call.frame.unit.lower() == "rows")


def _hangs_on_ties(call: WindowCall) -> bool:
    return _tells_ties_apart(call) or _function(call) in OF_FRAME


def _function(call: WindowCall) -> str | None:
    return call.call.function if isinstance(call.call, Call) else None


def _lacking(call: WindowCall, child: Plan, find_table: FindTable) -> list[Column]:
    """The columns that an order lacks to tell the rows of a partition apart, save those that are the same in all columns."""
    used = {name for each in (*call.partition, *(key.expression for key in call.order)) for name in _name(each)}
    shortest = min((key - used for key in keys(child, find_table)), key=lambda key: (len(key), sorted(key)), default=None)
    missing = child.names - used if shortest is None else shortest
    return [column for column in child.columns if column.name in missing]


def _name(expression: Expression) -> tuple[str, ...]:
    return (expression.name,) if isinstance(expression, Column) else ()
