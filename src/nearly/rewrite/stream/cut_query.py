"""The cut of a progressive query: what is computed per sampling unit, and what is done with the results of the units read.

Laws: the tail over the stages' rows of all units is the plan; tables that are streamed together meet inside units.
"""

from __future__ import annotations

from nearly.plan.nodes import Plan, Project, Scan, passed
from nearly.plan.schema import FindTable
from nearly.rewrite.placement import Place, Placement
from nearly.rewrite.stream.cut import Cut, pruned
from nearly.rewrite.stream.layouts import Layouts, arrangements, shuffled
from nearly.rewrite.stream.places import CannotMeet
from nearly.rewrite.stream.unit_policy import UnitPolicy

WORTH_STREAMING = 0.02
"""Tables below this share of the largest one's rows are read whole: they are soon read."""


def stream(plan: Plan, find_table: FindTable, wanted: frozenset[str] | None = None) -> Cut | None:
    """The cut that streams the largest tables which can be streamed together; None when there is nothing to stream.

    `wanted` names the tables to stream instead.
    """
    scans = {node for node in plan.walk() if isinstance(node, Scan) and find_table(node.table).blocks > 1}
    if wanted is not None:
        chosen = {scan for scan in scans if scan.table in wanted}
    else:
        largest = max((find_table(scan.table).rows for scan in scans), default=0)
        chosen = {scan for scan in scans if find_table(scan.table).rows >= WORTH_STREAMING * largest}
    best, most = None, (0, False)
    for layouts in arrangements(chosen, find_table):
        fitting = {scan for scan in chosen if not layouts or scan.table in layouts}
        found = _cut(plan, scans, fitting, layouts, find_table, forced=wanted is not None)
        worth = (0, False) if found is None else (sum(find_table(scan.table).rows for scan in found.scans), found.ranged)
        if worth > most:
            best, most = found, worth
    return best


def _cut(
    plan: Plan, scans: set[Scan], chosen: set[Scan], layouts: Layouts, find_table: FindTable, forced: bool
) -> Cut | None:  # fmt: skip
    """The cut that streams as many of the chosen tables as can be, in these layouts."""
    while chosen and (forced or _worthwhile(scans, chosen, find_table)):
        try:
            return _cut_by(UnitPolicy(find_table, frozenset(chosen), layouts), plan)
        except CannotMeet as refusal:
            chosen -= refusal.scans
    return None


def _worthwhile(scans: set[Scan], chosen: set[Scan], find_table: FindTable) -> bool:
    """Whether reading the other tables whole first is not most of the work already."""
    streamed = sum(find_table(scan.table).rows for scan in chosen)
    return 2 * streamed >= sum(find_table(scan.table).rows for scan in scans)


def _cut_by(policy: UnitPolicy, plan: Plan) -> Cut | None:
    top = Placement(policy).place(plan)
    if top.place is Place.EVERYWHERE:
        return None
    tail, stages = pruned(Project(policy.met(top).plan, passed(plan.columns)), tuple(policy.stages.values()))
    scans = {node for stage in stages for node in stage.plan.walk() if isinstance(node, Scan) and node.share == "units"}
    ordered = tuple(sorted(scans, key=lambda scan: [each.name for each in scan.fields]))
    cut = Cut(tail, stages, ordered, policy.ranged, policy.mergeable)
    return cut if policy.layouts else shuffled(cut, policy.find_table)
