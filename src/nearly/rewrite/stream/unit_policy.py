"""The policy of units: what of a progressive query is computed per unit, by the walk of `rewrite.placement`.

What is everywhere is `static`: its tables are read whole. What is apart comes from streamed tables and knows its unit. What is
together is at the driver, above rows or partial aggregates that were gathered, and evolves while units are read. A maximal subplan
below a gather is a select-project-join-aggregate block: a lineage block of iOLAP (section 6.1). A row of a unit that must meet an
evolving value of the driver (a nested aggregate) waits: the join, the tests and the expressions that need the value are put off,
everything else still happens per unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from nearly.errors import Unsupported
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import TRUE, AggregateCall, Call, Column, columns_of
from nearly.plan.nodes import Apply, Field, Filter, GroupBy, Input, Join, Limit, Output, Plan, Project, Scan, SetOperation, passed
from nearly.plan.schema import FindTable
from nearly.plan.types import BOOLEAN, INT
from nearly.rewrite.placement import KEEPS_RIGHT, NOTHING, Place, Policy, joined_by
from nearly.rewrite.sites.moments import by_moments
from nearly.rewrite.sites.split_aggregate import TwoSteps, split_aggregate
from nearly.rewrite.sites.split_distinct import split_distinct
from nearly.rewrite.stream.cut import UNIT, Gathered, Waiting
from nearly.rewrite.stream.decide import decided_parts, decision
from nearly.rewrite.stream.layouts import Layouts
from nearly.rewrite.stream.places import CannotMeet, PendingColumns, PendingFilter, PendingJoin, Streamed, apply, reads_of
from nearly.rewrite.stream.thin import Quantiles, quantiles_apart

GATHERED_ROWS = 2_000_000
"""Rows of streamed tables that may come to the driver as they are, for aggregates that cannot be merged."""

THINNED_ROWS = 30_000
"""About so many rows of a larger table come to the driver for quantiles of one value: few enough for replicates."""

THINNED_GROUPS = 240_000
"""The same for quantiles by group, which need rows of each."""


@dataclass
class UnitPolicy(Policy[Streamed]):
    """Rows of units that must meet are gathered at the driver; `stages` are what was gathered so far."""

    purpose: ClassVar[str] = "progressive answers"
    find_table: FindTable
    chosen: frozenset[Scan]
    layouts: Layouts
    beside: frozenset[str] = frozenset()
    fresh: FreshNames = field(default_factory=lambda: FreshNames("stream"))
    stages: dict[Plan, Gathered] = field(default_factory=dict)
    ranged: bool = False
    mergeable: bool = True

    def scan(self, plan: Scan) -> Streamed:
        if plan not in self.chosen:
            return Streamed(plan, Place.EVERYWHERE)
        table = self.find_table(plan.table)
        name = f"{plan.fields[0].name}_unit" if plan.fields else self.fresh("unit")
        unit = Field(name, UNIT, INT, nullable=False)
        hashed = self.layouts.get(plan.table)
        kept = table.ranges_of if hashed is None else hashed.columns[0]
        by = frozenset((each.name,) for each in plan.fields if each.source == kept)
        streamed = replace(plan, fields=(*plan.fields, unit), share="units", layout=hashed.name if hashed else plan.layout)
        return Streamed(streamed, Place.APART, by, frozenset({plan}), Column(INT, name))

    def constant(self, plan: Plan, rows: int) -> Streamed:  # noqa: ARG002
        return Streamed(plan, Place.EVERYWHERE)

    def met(self, child: Streamed) -> Streamed:
        """The subplan at the driver."""
        if child.place is Place.TOGETHER:
            return child
        return self._together(apply(child.pending, self._gather(child.plan, child.unit, ())), child)

    def once(self, placed: Streamed) -> Streamed:
        """Which rows a limit picks is open, so they are picked once."""
        return self.met(placed) if isinstance(placed.plan, Limit) else placed

    def rely(self) -> None:
        self.ranged = True

    def on(self, plan: Plan, child: Streamed) -> Streamed:
        return super().on(replace(plan, by=child.unit) if isinstance(plan, Apply) and child.apart else plan, child)

    def filter(self, plan: Filter, child: Streamed) -> Streamed:
        if child.needs_driver(plan.predicate):
            return replace(child, pending=(*child.pending, PendingFilter(plan.predicate)))
        return self.on(plan, child)

    def project(self, plan: Project, child: Streamed) -> Streamed:
        if not child.apart:
            return super().project(plan, child)
        if child.ready:
            return replace(child, plan=Project(child.plan, (*plan.outputs, *passed((child.own_unit,)))))
        later = tuple(output for output in plan.outputs if child.needs_driver(output.expression) and not _is_passed(output))
        now = tuple(o for o in plan.outputs if o not in later and o.name not in child.made and o.name not in child.plan.names)
        below = Project(child.plan, (*passed(child.plan.columns), *now)) if now else child.plan
        pending = (*child.pending, PendingColumns(later)) if later else child.pending
        return replace(child, plan=below, pending=pending, made=child.made | {output.name for output in later})

    def union_apart(self, plan: SetOperation, left: Streamed, right: Streamed) -> Streamed:
        unit = Column(INT, self.fresh("unit"))
        sides = [
            Project(side.plan, (*passed(old.columns), Output(self.fresh("unit"), side.own_unit)))
            for side, old in ((left, plan.left), (right, plan.right))
        ]
        united = SetOperation(sides[0], sides[1], plan.kind, plan.every, (*plan.given, unit))
        return Streamed(united, Place.APART, NOTHING, left.scans | right.scans, unit)

    def set_operation(self, plan: SetOperation, left: Streamed, right: Streamed) -> Streamed:
        if left.place is right.place is Place.EVERYWHERE:
            return replace(left, plan=replace(plan, left=left.plan, right=right.plan))
        if plan.kind == "union" and all(side.apart and side.ready for side in (left, right)):
            every = replace(plan, every=True)  # each row once: the keys of all of them, which can be counted
            return self.group_apart(GroupBy(every, passed(plan.given), ()), self.union_apart(every, left, right))
        sides = [Project(self.met(side).plan, passed(old.columns)) for side, old in ((left, plan.left), (right, plan.right))]
        return self._together(replace(plan, left=sides[0], right=sides[1]), left, right)

    def meet(self, plan: Join, left: Streamed, right: Streamed) -> bool:
        return plan.kind != "full" and self._is_beside(left) == self._is_beside(right) and super().meet(plan, left, right)

    def _is_beside(self, child: Streamed) -> bool:
        """Whether rows come of a table that is sampled by itself."""
        return any(scan.table in self.beside for scan in child.scans)

    def join(self, plan: Join, left: Streamed, right: Streamed) -> Streamed:
        joined = replace(plan, left=left.plan, right=right.plan)
        if left.apart and right.apart:
            unit = right.unit if plan.kind == "right" else left.unit
            return Streamed(joined, Place.APART, joined_by(plan, left.by, right.by), left.scans | right.scans, unit)
        if left.needs_driver(plan.condition):
            return self._put_off(plan, left, self.met(right).plan)
        if not right.ready:
            return self._join_at_driver(plan, left, right)
        return replace(right if right.apart else left, plan=joined)

    def join_apart(self, plan: Join, left: Streamed, right: Streamed) -> Streamed:
        match left.place, right.place:
            case (Place.APART, Place.APART) if plan.kind == "inner" and self._is_beside(left) != self._is_beside(right):
                self.mergeable = False
                return self._join_at_driver(plan, left, right)
            case (Place.APART, Place.APART):
                raise CannotMeet(self._given_up(plan, left, right))
            case (Place.APART, Place.EVERYWHERE) | (Place.EVERYWHERE, Place.APART):
                raise CannotMeet(left.scans | right.scans)
            case (Place.APART, Place.TOGETHER) if plan.kind not in KEEPS_RIGHT:
                return self._put_off(plan, left, right.plan)
            case (Place.TOGETHER, Place.APART) if plan.kind in ("inner", "cross"):
                return self._put_off(plan, right, left.plan)
        return self._join_at_driver(plan, left, right)

    def _given_up(self, plan: Join, left: Streamed, right: Streamed) -> frozenset[Scan]:
        """Which side is read whole instead: the one that only decides about rows of the other, else the smaller."""
        if plan.kind in ("left", "semi", "anti"):
            return right.scans
        if plan.kind in KEEPS_RIGHT:
            return left.scans
        return left.scans if self._rows(left) < self._rows(right) else right.scans

    def _rows(self, child: Streamed) -> int:
        return sum(self.find_table(scan.table).rows for scan in child.scans)

    def _put_off(self, plan: Join, rows: Streamed, found: Plan) -> Streamed:
        """A join of rows of units with what the driver finds."""
        made = frozenset() if plan.kind in ("semi", "anti") else found.names
        pending = (*rows.pending, PendingJoin(plan.kind, found, plan.condition))
        return replace(rows, pending=pending, made=rows.made | made)

    def _join_at_driver(self, plan: Join, left: Streamed, right: Streamed) -> Streamed:
        return self._together(replace(plan, left=self.met(left).plan, right=self.met(right).plan), left, right)

    def group(self, plan: GroupBy, child: Streamed) -> Streamed:
        if not child.apart:
            return replace(child, plan=replace(plan, child=child.plan))
        unit = Output(self.fresh("unit"), AggregateCall(INT, "min", (child.own_unit,)))
        whole = replace(plan, child=child.plan, aggregates=(*plan.aggregates, unit))
        return replace(child, plan=whole, unit=unit.column)

    def group_apart(self, plan: GroupBy, child: Streamed) -> Streamed:
        return self._partial_aggregate(plan, child) if child.ready else self._dependent_aggregate(plan, child)

    def _partial_aggregate(self, plan: GroupBy, child: Streamed) -> Streamed:
        """Partial results per unit, merged at the driver; what has no merge is aggregated from rows there."""
        apart = split_distinct(replace(plan, child=child.plan), self.fresh)
        if apart is not None:
            inner = self._partial_aggregate(apart.partial, child)
            return self._together(apart.merged(inner.plan), child)
        split = split_aggregate(replace(plan, child=child.plan), self.fresh)
        if split is None:
            return self._approximate_aggregate(plan, child)
        parts = self._by_unit(split.partial, child)
        keys = tuple(key.name for key in split.keys)
        return self._together(split.merged(self._gather(parts, child.unit, keys, partial=True)), child)

    def _approximate_aggregate(self, plan: GroupBy, child: Streamed) -> Streamed:
        """Estimates of what has no exact merge: from sums, or, when there are not too many, from the rows themselves."""
        self.mergeable = False
        sums = by_moments(plan, self.fresh)
        if sums is not None:
            inner = self._partial_aggregate(sums.inner, child)
            return self._together(sums.outer(inner.plan), child)
        rows = self._rows(child)
        apart = quantiles_apart(replace(plan, child=child.plan), self.fresh)
        kept = THINNED_GROUPS if plan.keys else THINNED_ROWS
        if apart is not None and rows > kept:
            return self._thinned_aggregate(apart, child, -(-rows // kept))
        if rows > GATHERED_ROWS:
            raise Unsupported("an aggregate without a merge over a large table; its exact answer comes at once")
        return self.on(plan, self.met(child))

    def _thinned_aggregate(self, apart: Quantiles, child: Streamed, step: int) -> Streamed:
        """Quantiles from every step-th row of the units, beside the other aggregates."""
        rows = replace(child, plan=apart.thinned(child.own_unit, step, self.fresh), by=NOTHING)
        quantiles = apart.quantiles_of(self.met(rows).plan)
        if apart.others is None:
            return self._together(quantiles, child)
        others = self._partial_aggregate(apart.others, child)
        return self._together(apart.together(quantiles, others.plan, self.fresh), child)

    def _dependent_aggregate(self, plan: GroupBy, child: Streamed) -> Streamed:
        """Rows that wait for a value of the driver are kept grouped by what the value decides on (iOLAP, appendix B).

        sum over a test of B and the value = sum, over groups by B that pass the test, of their sums.
        """
        reads = frozenset().union(*(columns_of(expression) for expression in plan.expressions()))
        split = (
            None if plan.sets is not None or reads & child.made else split_aggregate(replace(plan, child=child.plan), self.fresh)
        )
        if split is None:
            return self.on(plan, self.met(child))
        read = reads_of(child.pending) & child.plan.names
        made = {key.name for key in split.partial.keys}
        extra = tuple(output for output in passed(child.plan.columns) if output.name in read and output.name not in made)
        parts = self._by_unit(split.partial, child)
        decision_ = decision(f"ranges_{len(self.stages) + 1}", child.plan, child.pending, self.find_table)
        if decision_ is None:
            grouped = replace(parts, keys=(*parts.keys, *extra))
            rows: Plan = self._gather(grouped, child.unit, _names_but(grouped.keys, child.unit), partial=True)
            return self._together(split.merged(apply(child.pending, rows)), child)
        mark = Output(self.fresh("decided"), TRUE)
        grouped = decided_parts(parts, extra, mark, decision_)
        waiting = Waiting(decision_, tuple(output.name for output in extra), mark.name)
        gathered = self._gather(grouped, child.unit, _names_but(grouped.keys, child.unit), partial=True, waiting=waiting)
        return self._together(split.merged(self._decided_and_not(gathered, waiting, child, split)), child)

    def _decided_and_not(self, rows: Input, waiting: Waiting, child: Streamed, split: TwoSteps) -> Plan:
        """Rows surely in as they are, and those of the others that pass the test now."""
        mark = Column(BOOLEAN, waiting.mark)
        names = {*(key.name for key in split.keys), *(each.name for each in split.partial.aggregates)}
        columns = tuple(column for column in rows.given if column.name in names or (child.unit and column.name == child.unit.name))
        surely = Project(Filter(rows, mark), passed(columns))
        perhaps = Project(apply(child.pending, Filter(rows, Call(BOOLEAN, "not", (mark,)))), passed(columns))
        return SetOperation(surely, perhaps, "union", True, columns)

    def _by_unit(self, plan: GroupBy, child: Streamed) -> GroupBy:
        """The aggregate with the unit's group as one more key: the first, whose bit in a grouping id is the highest, always 0."""
        keys = (*passed((child.own_unit,)), *plan.keys)
        sets = None if plan.sets is None else tuple((0, *(place + 1 for place in places)) for places in plan.sets)
        return replace(plan, keys=keys, sets=sets)

    def _together(self, plan: Plan, *made_of: Streamed) -> Streamed:
        return Streamed(plan, Place.TOGETHER, scans=frozenset().union(*(each.scans for each in made_of)))

    def _gather(
        self, plan: Plan, unit: Column | None, keys: tuple[str, ...], partial: bool = False, waiting: Waiting | None = None
    ) -> Input:
        if plan not in self.stages:
            name = f"stage_{len(self.stages) + 1}"
            beside = any(isinstance(node, Scan) and node.share == "units" and node.table in self.beside for node in plan.walk())
            self.stages[plan] = Gathered(name, plan, unit is not None, unit.name if unit else None, keys, partial, waiting, beside)
        return Input(self.stages[plan].name, plan.columns)


def _names_but(keys: tuple[Output, ...], unit: Column | None) -> tuple[str, ...]:
    return tuple(key.name for key in keys if unit is None or key.name != unit.name)


def _is_passed(output: Output) -> bool:
    return isinstance(output.expression, Column) and output.expression.name == output.name
