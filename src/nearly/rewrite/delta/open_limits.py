"""LIMITs of which it is open which rows they keep: reading them twice may give other rows.

One whose order is total keeps the same rows each time, and of one whose columns nobody looks at, as of EXISTS, it does not matter.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from nearly.plan.expressions import Column, columns_of
from nearly.plan.nodes import Filter, Limit, Plan, Project, SetOperation, Sort
from nearly.plan.properties import keys
from nearly.plan.schema import FindTable


def has_open_limit(plan: Plan, find_table: FindTable) -> bool:
    """Whether a plan's rows hang on which rows some LIMIT keeps, and that is open; those on top are read once in each version."""
    while isinstance(plan, Project | Filter | Sort | Limit):
        plan = plan.child
    return _is_open(plan, plan.names, find_table)


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
