"""The cut of a progressive query: what is computed per sampling unit, and what is done with the results of the units read.

Laws: the tail over the stages' rows of all units is the plan; tables that are streamed together meet inside units.
"""

from __future__ import annotations

from nearly.plan.binding.scope import FreshNames
from nearly.plan.nodes import Filter, GroupBy, Join, Limit, Plan, Project, Scan, Sort, Values, passed
from nearly.plan.schema import FindTable
from nearly.rewrite.placement import Place, Placement
from nearly.rewrite.sites.split_aggregate import split_aggregate
from nearly.rewrite.stream.cut import Cut, pruned
from nearly.rewrite.stream.layouts import Layouts, arrangements, shuffled
from nearly.rewrite.stream.places import CannotMeet
from nearly.rewrite.stream.unit_policy import UnitPolicy

WORTH_STREAMING = 0.02
"""Tables below this share of the largest one's rows are read whole: they are soon read."""

WORTH_SAMPLING = 0.25
SAMPLED_ROWS = 8_000_000
"""A second table is sampled, too, when this share of all rows would have to be read whole, and so many: fewer are soon read."""


def stream(plan: Plan, find_table: FindTable, wanted: frozenset[str] | None = None) -> Cut | None:
    """The cut that streams the largest tables which can be streamed together; None when there is nothing to stream.

    `wanted` names the tables to stream instead. Where the others would be much to read whole, one of them is sampled by itself.
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
    return _beside(plan, scans, find_table, best) or best if wanted is None else best


def _beside(plan: Plan, scans: set[Scan], find_table: FindTable, best: Cut | None) -> Cut | None:
    """The cut that samples the two largest tables by themselves, where rows meet in one inner join below one aggregate.

    Of two samples of a share t each, only t^2 of the pairs are there, so reading one table whole is better while that is cheap.
    """
    largest = sorted(scans, key=lambda scan: (-find_table(scan.table).rows, scan.table))[:2]
    if len({scan.table for scan in largest}) < 2 or not _is_one_aggregate_of_joins(plan):
        return None
    rows = sum(find_table(scan.table).rows for scan in scans)
    streamed = sum(find_table(scan.table).rows for scan in best.scans) if best is not None else 0
    if rows - streamed < max(WORTH_SAMPLING * rows, SAMPLED_ROWS) or not _worthwhile(scans, set(largest), find_table):
        return None
    try:
        found = _cut_by(UnitPolicy(find_table, frozenset(largest), {}, frozenset({largest[1].table})), plan)
    except CannotMeet:
        return None
    return found if found is not None and {stage.beside for stage in found.stages} == {True, False} else None


def _is_one_aggregate_of_joins(plan: Plan) -> bool:
    """Whether a plan is one aggregate that can be merged, over inner joins of tables."""
    aggregates = [node for node in plan.walk() if isinstance(node, GroupBy)]
    joins = all(node.kind in ("inner", "cross") for node in plan.walk() if isinstance(node, Join))
    plain = all(isinstance(node, Scan | Values | Filter | Project | Join | GroupBy | Sort | Limit) for node in plan.walk())
    if not joins or not plain or len(aggregates) != 1 or aggregates[0].sets is not None:
        return False
    return split_aggregate(aggregates[0], FreshNames("tried")) is not None


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
    cut = Cut(tail, stages, ordered, policy.ranged, policy.mergeable, policy.beside)
    return cut if policy.layouts else shuffled(cut, policy.find_table)
