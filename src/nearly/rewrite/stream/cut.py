"""What `rewrite.stream.cut_query` makes of a plan: stages that are computed per unit, and the tail over their rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nearly.plan.expressions import Column, columns_of
from nearly.plan.nodes import Apply, GroupBy, Input, Plan, Project, Scan, SetOperation, Window, passed
from nearly.rewrite.logical.prune import prune
from nearly.rewrite.stream.decide import Decision

UNIT = "@unit"
"""The source name of the column that a streamed scan adds: the group of units a row belongs to."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """A stage: what is computed from some units, or, when it is not `streamed`, once.

    `unit` names the column with the unit's group; None where the tail needs no weights of the rows. `partial` tells that the rows
    are partial aggregates by `keys`, to be merged. `beside` tells that they come of a table that is sampled by itself.
    """

    name: str
    plan: Plan
    streamed: bool
    unit: str | None
    keys: tuple[str, ...] = ()
    partial: bool = False
    waiting: Waiting | None = None
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """Rows of a stage may wait for a decision: `columns` are what it is made on, and `mark` tells whether it is made."""

    decision: Decision
    columns: tuple[str, ...]
    mark: str


@dataclass(frozen=True, slots=True)
class Cut:
    """Stages and the tail over them; `ranged` when units must be ranges of the clustering column, not mere runs of blocks.

    `mergeable` tells that the tail over all units is the exact answer; else that one needs a run of its own. Tables in `beside` are
    sampled by themselves: their rows meet others only in the tail.
    """

    tail: Plan
    stages: tuple[Gathered, ...]
    scans: tuple[Scan, ...]
    ranged: bool
    mergeable: bool = True
    beside: frozenset[str] = frozenset()


def pruned(tail: Plan, stages: tuple[Gathered, ...]) -> tuple[Plan, tuple[Gathered, ...]]:
    """Only columns that the tail reads are computed and sent; units' groups always are."""
    tail = prune(tail)
    wanted: dict[str, set[str]] = {}
    for node in tail.walk():
        if isinstance(node, Input):
            wanted.setdefault(node.source, set()).update(_read_above(tail, node))
    kept = []
    for stage in stages:
        if stage.name not in wanted:
            continue
        if not _weighed(tail, stage.name, False):
            stage = replace(stage, unit=None)  # noqa: PLW2901
        names = wanted[stage.name] | {stage.unit} | set(stage.keys)
        columns = tuple(column for column in stage.plan.columns if column.name in names)
        kept.append(replace(stage, plan=prune(_selected(stage.plan, columns))))
    by_name = {stage.name: stage for stage in kept}

    def renewed(plan: Plan) -> Plan:
        return plan.transform(
            lambda node: Input(node.source, by_name[node.source].plan.columns) if isinstance(node, Input) else node
        )

    finished = []
    for stage in kept:
        waiting = stage.waiting
        if waiting is not None:
            lookups = tuple(replace(each, found=renewed(prune(each.values).children[0])) for each in waiting.decision.lookups)
            waiting = replace(waiting, decision=replace(waiting.decision, lookups=lookups))
        finished.append(replace(stage, waiting=waiting))
    return renewed(tail), tuple(finished)


def _weighed(plan: Plan, stage: str, inside: bool) -> bool:
    """Whether rows of a stage are aggregated or ranked by the tail, perhaps by a user's function, and so need a weight."""
    if isinstance(plan, Input):
        return inside and plan.source == stage
    inside = inside or isinstance(plan, GroupBy | Window) or (isinstance(plan, Apply) and plan.keys is not None)
    return any(_weighed(child, stage, inside) for child in plan.children)


def _read_above(tail: Plan, leaf: Input) -> set[str]:
    """Columns of a stage that any node of the tail mentions; set operations read by position, so they read all."""
    used = set(tail.names)
    for node in tail.walk():
        for expression in () if isinstance(node, Input) else node.expressions():
            used |= columns_of(expression)
        if isinstance(node, SetOperation):
            used |= node.left.names | node.right.names
    return used & leaf.names


def _selected(plan: Plan, columns: tuple[Column, ...]) -> Plan:
    if {column.name for column in columns} == plan.names:
        return plan
    if isinstance(plan, GroupBy):
        names = {column.name for column in columns}
        return replace(plan, aggregates=tuple(each for each in plan.aggregates if each.name in names))
    return Project(plan, passed(columns))
