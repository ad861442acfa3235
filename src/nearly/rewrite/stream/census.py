"""How many keys a grouping has in all: a plan that reads only what decides about them.

An estimate can never tell that no key is missing. Where the key columns are a small part of what a query reads, counting the keys
exactly is cheaper than reading the rest, and it is a proof.
"""

from __future__ import annotations

from dataclasses import replace

from nearly.plan.expressions import AggregateCall
from nearly.plan.nodes import GroupBy, Input, Output, Plan, Scan
from nearly.plan.types import LONG
from nearly.rewrite.logical.prune import prune
from nearly.rewrite.stream.cut import UNIT, Gathered

KEYS = "keys"
"""The one column of a census."""


def census(merge: GroupBy, stages: tuple[Gathered, ...]) -> Plan | None:
    """The number of keys of an aggregate of the tail; None where its rows are no partial results of a stage by the same keys.

    Law: once every unit is read, the aggregate has so many rows.
    """
    stage = next((each for each in stages if isinstance(merge.child, Input) and each.name == merge.child.source), None)
    if stage is None or not stage.partial or stage.waiting is not None or not isinstance(stage.plan, GroupBy):
        return None
    if stage.plan.sets is not None or {key.name for key in merge.keys} != {key.name for key in stage.plan.keys} - {stage.unit}:
        return None
    keys = tuple(key for key in stage.plan.keys if key.name != stage.unit)
    counted = GroupBy(GroupBy(stage.plan.child, keys, ()), (), (Output(KEYS, AggregateCall(LONG, "count", ())),))
    return prune(counted).transform(_whole)


def _whole(node: Plan) -> Plan:
    """A streamed scan as one of the whole table."""
    if not isinstance(node, Scan) or node.share != "units":
        return node
    return replace(node, fields=tuple(each for each in node.fields if each.source != UNIT), share="all", layout="base")
