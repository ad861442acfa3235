"""The delta of a plan: ordered stages, and a plan whose rows are the plan's columns and how often each came or went.

Rules are a dict from node to function. What is not in it is made by the engine after rewriting (`Exchange`) or stands for rows that
are given (`Input`): these have no versions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from nearly.plan.nodes import Apply, Filter, GroupBy, Join, Limit, Plan, Project, Scan, SetOperation, Sort, Values, Window
from nearly.rewrite.delta.additions import Addition, addition
from nearly.rewrite.delta.changed import ChangedRows, Delta, Deltas, DeltaStage, Rule, TableChange, net_rows
from nearly.rewrite.delta.groups import grouped
from nearly.rewrite.delta.joins import join
from nearly.rewrite.delta.rows import apply, filtered, project, scan, sort, values
from nearly.rewrite.delta.sets import set_operation
from nearly.rewrite.delta.waiting import Renewal, renewal
from nearly.rewrite.delta.whole import limit
from nearly.rewrite.delta.windows import window

PartDelta = ChangedRows | Addition | Renewal | None
"""How a part changes: by rows, by what is added to its groups, or by all its rows; None where none of its tables changed."""

RULES: dict[type[Plan], Rule] = {
    Scan: scan,
    Values: values,
    Filter: filtered,
    Project: project,
    Sort: sort,
    Join: join,
    GroupBy: grouped,
    SetOperation: set_operation,
    Window: window,
    Limit: limit,
    Apply: apply,
}


def delta(
    plan: Plan,
    changes: Mapping[str, TableChange],
    stored: Mapping[Plan, Plan] | None = None,
    large: Collection[str] = (),
    parts: Sequence[Plan] = (),
    keys: Mapping[str, tuple[str, ...]] | None = None,
) -> Delta | None:
    """How the rows of a rewritten plan change, and those of some parts of it; None when none of its tables did.

    `changes` are the tables that changed, by their names in lower case. `stored` tells where the old rows of parts of the plan lie.
    Tables that are `large` are read by keys wherever these are known. `keys` tell the rows of tables apart, by their names in lower
    case.
    """
    deltas = Deltas(RULES, changes, stored or {}, large, keys or {})
    found = deltas.of(plan)
    if found is None:
        return None
    kept = tuple(change and deltas.as_stage(change) for change in map(deltas.kept, parts))
    net = net_rows(found, deltas.fresh)
    return Delta(tuple(deltas.stages), net.plan, net.weight, kept)


def deltas_of(
    plans: Sequence[Plan],
    changes: Mapping[str, TableChange],
    stored: Mapping[Plan, Plan],
    large: Collection[str] = (),
    keys: Mapping[str, tuple[str, ...]] | None = None,
    few: Collection[Plan] = (),
) -> tuple[tuple[DeltaStage, ...], tuple[PartDelta, ...]]:
    """How the rows of several parts of one plan change, in common stages; parts come before what they are parts of.

    Groups whose change no other part needs to know are told what is added to them, and anti joins that have few rows all of these.
    Such an addition or renewal reads stored rows as they were.
    """
    deltas = Deltas(RULES, changes, stored, large, keys or {})
    inner = {node for plan in plans for child in plan.children for node in child.walk()}

    def changed(plan: Plan) -> PartDelta:
        own = None if plan in inner else addition(deltas, plan) or (renewal(deltas, plan) if plan in few else None)
        return own or deltas.kept(plan)

    found = tuple(map(changed, plans))
    return tuple(deltas.stages), found
