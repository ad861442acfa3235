"""Which column of a table's change the values of a stage's column are among, as far as the plans of stages tell.

Law: every value of a traced column, null included, is a value of that column of the change.
"""

from __future__ import annotations

from collections.abc import Mapping

from nearly.plan.expressions import Column, Expression
from nearly.plan.nodes import Filter, GroupBy, Input, Join, Limit, Output, Plan, Project, SetOperation, Sort, Window
from nearly.plan.properties import equated
from nearly.rewrite.delta.changed import CHANGE

Domain = tuple[str, str]
"""The name by which stages read a change, and one of its columns."""


def domain(source: str, column: str, stages: Mapping[str, Plan]) -> Domain | None:
    """The column of a change that has all values of a column of a stage; None where that is not known."""
    if source.endswith(CHANGE):
        return source, column
    return _traced(stages[source], column, stages) if source in stages else None


def _traced(plan: Plan, name: str, stages: Mapping[str, Plan]) -> Domain | None:
    match plan:
        case Input():
            return domain(plan.source, name, stages)
        case Project():
            return _passed(plan.child, _made(plan.outputs, name), stages)
        case GroupBy(sets=None):
            return _passed(plan.child, _made(plan.keys, name), stages)
        case Filter() | Sort() | Limit():
            return _traced(plan.child, name, stages)
        case Window():
            return _traced(plan.child, name, stages) if name in plan.child.names else None
        case Join():
            return _of_side(plan, name, stages)
        case SetOperation(kind="union"):
            place = next(at for at, each in enumerate(plan.given) if each.name == name)
            left, right = (_traced(side, side.columns[place].name, stages) for side in (plan.left, plan.right))
            return left if left == right else None
    return None


def _made(outputs: tuple[Output, ...], name: str) -> Expression | None:
    return next((each.expression for each in outputs if each.name == name), None)


def _passed(child: Plan, made: Expression | None, stages: Mapping[str, Plan]) -> Domain | None:
    return _traced(child, made.name, stages) if isinstance(made, Column) else None


def _of_side(plan: Join, name: str, stages: Mapping[str, Plan]) -> Domain | None:
    """From the side that has it, unless that side's rows may be padded with nulls; or from what it must be equal to."""
    if name in plan.left.names:
        found = _traced(plan.left, name, stages) if plan.kind not in ("right", "full") else None
    else:
        found = _traced(plan.right, name, stages) if plan.kind in ("inner", "cross", "right") else None
    return found if found is not None or plan.kind not in ("inner", "semi") else _equal(plan, name, stages)


def _equal(plan: Join, name: str, stages: Mapping[str, Plan]) -> Domain | None:
    """Rows of an inner or semi join have a column's values only where the column that it is compared with has them."""
    side = plan.right if name in plan.left.names else plan.left
    for mine, theirs in (pair for a, b in equated(plan, ("=", "<=>")) for pair in ((a, b), (b, a))):
        if isinstance(mine, Column) and mine.name == name and isinstance(theirs, Column) and theirs.type == mine.type:
            found = _traced(side, theirs.name, stages)
            if found is not None:
                return found
    return None
