"""Set operations: rows that came or went on either side are the only ones that can be decided differently.

Law: how often a row is in a set operation depends on how often it is in both sides, and on nothing else.
"""

from __future__ import annotations

from nearly.plan.nodes import GroupBy, Output, Plan, Project, SetOperation, passed
from nearly.rewrite.delta.changed import MINUS_ONE, ONE, ChangedRows, Deltas
from nearly.rewrite.delta.restrict import Match, restrict
from nearly.rewrite.delta.rows import union_all


def set_operation(deltas: Deltas, plan: SetOperation) -> ChangedRows | None:
    match plan:
        case SetOperation(kind="union", every=True):
            return union_all(deltas, plan)
        case SetOperation(kind="union"):
            both = SetOperation(plan.left, plan.right, "union", True, plan.given)
            return deltas.of(GroupBy(both, passed(plan.given), ()))
    return _by_touched_rows(deltas, plan)


def _by_touched_rows(deltas: Deltas, plan: SetOperation) -> ChangedRows | None:
    touched = _touched(deltas, plan)
    if touched is None:
        return None
    matches = [Match(mine, key) for mine, key in zip(plan.given, touched.columns, strict=True)]
    terms = []
    for version, weight in ((deltas.now(plan), ONE), (deltas.old(plan), MINUS_ONE)):
        terms.append(deltas.weighted(restrict(version, matches, touched, deltas.fresh), plan.given, weight))
    return deltas.union(plan.given, terms)


def _touched(deltas: Deltas, plan: SetOperation) -> Plan | None:
    """The rows that changed on some side, each once."""
    names = [deltas.fresh("touched") for _ in plan.given]
    sides: list[Plan] = []
    for side in (plan.left, plan.right):
        change = deltas.kept(side)
        if change is not None:
            outputs = [Output(name, column) for name, column in zip(names, side.columns, strict=True)]
            sides.append(Project(change.plan, tuple(outputs)))
    if not sides:
        return None
    rows = sides[0] if len(sides) == 1 else SetOperation(sides[0], sides[1], "union", True, sides[0].columns)
    return deltas.stage("touched", GroupBy(rows, passed(rows.columns), ()))
