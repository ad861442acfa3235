"""Which groups of an answer are surely there although rows of theirs wait for a decision (iOLAP, section 5.2).

A group is there for good as soon as one of its rows is surely in; one whose rows are all undecided may come or go.

Law: as long as every value stays in its range, the final answer over the rows read has all `firm` groups, and others only of the
`open` ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from nearly.plan.expressions import Column, columns_of
from nearly.plan.functions import call
from nearly.plan.nodes import Filter, GroupBy, Input, Plan, Project, SetOperation, Sort
from nearly.plan.properties import origins
from nearly.plan.types import BOOLEAN
from nearly.rewrite.stream.cut import Gathered


@dataclass(frozen=True, slots=True)
class FirmGroups:
    """Keys of groups with rows surely in, and of those with undecided ones; the answer shows them at some places."""

    firm: Plan
    open: Plan
    places: tuple[int, ...]


def firm_groups(tail: Plan, stages: tuple[Gathered, ...]) -> FirmGroups | None:
    """The groups that are the rows of an answer; None where these are no groups of rows that wait."""
    aggregate = _topmost(tail)
    if aggregate is None or not aggregate.keys or aggregate.sets is not None or not isinstance(aggregate.child, SetOperation):
        return None
    sources = {node.source for node in aggregate.child.left.walk() if isinstance(node, Input)}
    stage = next((each for each in stages if each.waiting is not None and each.name in sources), None)
    shown = [origins(tail).get(column.name) for column in tail.columns]
    names = [key.name for key in aggregate.keys]
    if stage is None or stage.waiting is None or any(name not in shown for name in names):
        return None
    rows = Input(stage.name, stage.plan.columns)
    if not all(columns_of(key.expression) <= rows.names for key in aggregate.keys):
        return None
    mark = Column(BOOLEAN, stage.waiting.mark)
    firm, open_ = (GroupBy(Filter(rows, test), aggregate.keys, ()) for test in (mark, call("not", (mark,))))
    return FirmGroups(firm, open_, tuple(shown.index(name) for name in names))


def _topmost(plan: Plan) -> GroupBy | None:
    """The aggregate whose groups are the rows of a plan, one each."""
    while isinstance(plan, Project | Sort):
        plan = plan.child
    return plan if isinstance(plan, GroupBy) else None
