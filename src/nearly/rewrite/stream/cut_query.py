"""The cut of a progressive query: what is computed per sampling unit, and what is done with the results of the units read.

Each subplan is `static` (its tables are read whole), per `units` (its rows come from streamed tables and know their unit) or at the
`driver` (it stands above rows or partial aggregates that were gathered, and evolves while units are read). A maximal subplan below
a gather is a select-project-join-aggregate block: a lineage block of iOLAP (section 6.1). A row of a unit that must meet an
evolving value of the driver (a nested aggregate) waits: the join, the tests and the expressions that need the value are put off,
everything else still happens per unit.

Laws: the tail over the stages' rows of all units is the plan. Rows equal in a column list of `by` come from the same unit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from nearly.errors import Unsupported
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import TRUE, AggregateCall, Call, Column, Expression, WindowCall, columns_of
from nearly.plan.nodes import (
    Apply,
    Field,
    Filter,
    GroupBy,
    Input,
    Join,
    Limit,
    Output,
    Plan,
    Project,
    Scan,
    SetOperation,
    Sort,
    Values,
    Window,
)
from nearly.plan.schema import FindTable
from nearly.plan.types import BOOLEAN, INT
from nearly.rewrite.sites.moments import by_moments
from nearly.rewrite.sites.split_aggregate import TwoSteps, split_aggregate
from nearly.rewrite.sites.split_distinct import split_distinct
from nearly.rewrite.stream.cut import UNIT, Cut, Gathered, Waiting, passed, pruned
from nearly.rewrite.stream.decide import Decision, decided_parts, decision
from nearly.rewrite.stream.joins import Joining
from nearly.rewrite.stream.layouts import Layouts, arrangements, shuffled
from nearly.rewrite.stream.places import DRIVER, STATIC, UNITS, At, Conflict, Extend, Lookup, Test, apply, reads_of
from nearly.rewrite.stream.thin import Quantiles, quantiles_apart

WORTH_STREAMING = 0.02
"""Tables below this share of the largest one's rows are read whole: they are soon read."""


GATHERED_ROWS = 2_000_000
"""Rows of streamed tables that may come to the driver as they are, for aggregates that cannot be merged."""

THINNED_ROWS = 30_000
"""About so many rows of a larger table come to the driver for quantiles of one value: few enough for replicates."""

THINNED_GROUPS = 240_000
"""The same for quantiles by group, which need rows of each."""


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
            return _Streamer(find_table, frozenset(chosen), layouts).cut(plan)
        except Conflict as conflict:
            chosen -= conflict.scans
    return None


def _worthwhile(scans: set[Scan], chosen: set[Scan], find_table: FindTable) -> bool:
    """Whether reading the other tables whole first is not most of the work already."""
    streamed = sum(find_table(scan.table).rows for scan in chosen)
    return 2 * streamed >= sum(find_table(scan.table).rows for scan in scans)


@dataclass(slots=True)
class _Streamer:
    find_table: FindTable
    chosen: frozenset[Scan]
    layouts: Layouts
    fresh: FreshNames = field(default_factory=lambda: FreshNames("stream"))
    stages: dict[Plan, Gathered] = field(default_factory=dict)
    known: dict[Plan, At] = field(default_factory=dict)
    ranged: bool = False
    mergeable: bool = True

    def cut(self, plan: Plan) -> Cut | None:
        top = self.place(plan)
        if top.where == STATIC:
            return None
        tail, stages = pruned(Project(self.gathered(top), passed(plan.columns)), tuple(self.stages.values()))
        scans = {node for stage in stages for node in stage.plan.walk() if isinstance(node, Scan) and node.share == "units"}
        ordered = tuple(sorted(scans, key=lambda scan: scan.fields[0].name))
        cut = Cut(tail, stages, ordered, self.ranged, self.mergeable)
        return cut if self.layouts else shuffled(cut, self.find_table)

    def place(self, plan: Plan) -> At:
        if plan not in self.known:
            rule = RULES.get(type(plan))
            if rule is None:
                raise Unsupported(f"{type(plan).__name__} has no rule for progressive answers")
            self.known[plan] = rule(self, plan)
        return self.known[plan]

    def scan(self, plan: Scan) -> At:
        if plan not in self.chosen:
            return At(plan, STATIC)
        table = self.find_table(plan.table)
        name = f"{plan.fields[0].name}_unit" if plan.fields else self.fresh("unit")
        unit = Field(name, UNIT, INT, nullable=False)
        hashed = self.layouts.get(plan.table)
        kept = table.ranges_of if hashed is None else hashed.columns[0]
        by = frozenset(each.name for each in plan.fields if each.source == kept)
        streamed = replace(plan, fields=(*plan.fields, unit), share="units", layout=hashed.name if hashed else plan.layout)
        return At(streamed, UNITS, frozenset({plan}), Column(INT, name), by)

    def values(self, plan: Values) -> At:
        return At(plan, STATIC)

    def filter(self, plan: Filter) -> At:
        child = self.place(plan.child)
        if child.needs_driver(plan.predicate):
            return replace(child, pending=(*child.pending, Test(plan.predicate)))
        return replace(child, plan=replace(plan, child=child.plan))

    def project(self, plan: Project) -> At:
        child = self.place(plan.child)
        if child.unit is None:
            return replace(child, plan=replace(plan, child=child.plan))
        renamed = {o.expression.name: o.name for o in plan.outputs if isinstance(o.expression, Column)}
        by = frozenset(renamed[name] for name in child.by if name in renamed)
        if not child.pending:
            return replace(child, plan=Project(child.plan, (*plan.outputs, *passed((child.unit,)))), by=by)
        later = tuple(output for output in plan.outputs if child.needs_driver(output.expression) and not _ispassed(output))
        now = tuple(o for o in plan.outputs if o not in later and o.name not in child.made and o.name not in child.plan.names)
        below = Project(child.plan, (*passed(child.plan.columns), *now)) if now else child.plan
        pending = (*child.pending, Extend(later)) if later else child.pending
        made = child.made | {output.name for output in later}
        return replace(child, plan=below, by=by, pending=pending, made=made)

    def join(self, plan: Join) -> At:
        return Joining(self, plan).placed()

    def aggregate(self, plan: GroupBy) -> At:
        child = self.place(plan.child)
        here = replace(plan, child=child.plan)
        if child.unit is None:
            return replace(child, plan=here)
        if child.pending:
            return self._dependent_aggregate(plan, child)
        kept = {key.expression.name: key.name for key in plan.keys if isinstance(key.expression, Column)}
        if plan.sets is None and child.by & kept.keys():
            self.ranged = True
            unit = Output(self.fresh("unit"), AggregateCall(INT, "min", (child.unit,)))
            whole = replace(here, aggregates=(*plan.aggregates, unit))
            return replace(child, plan=whole, unit=unit.column, by=frozenset(kept[name] for name in child.by if name in kept))
        return self._partial_aggregate(plan, child)

    def _partial_aggregate(self, plan: GroupBy, child: At) -> At:
        """Partial results per unit, merged at the driver; what has no merge is aggregated from rows there."""
        apart = split_distinct(replace(plan, child=child.plan), self.fresh)
        if apart is not None:
            inner = self._partial_aggregate(apart.inner, child)
            return At(apart.outer(inner.plan), DRIVER, child.scans)
        split = split_aggregate(replace(plan, child=child.plan), self.fresh)
        if split is None:
            return self._approximate_aggregate(plan, child)
        parts = self._by_unit(split.partial, child)
        keys = tuple(key.name for key in split.keys)
        return At(split.merged(self._gather(parts, child.unit, keys, partial=True)), DRIVER, child.scans)

    def _approximate_aggregate(self, plan: GroupBy, child: At) -> At:
        """Estimates of what has no exact merge: from sums, or, when there are not too many, from the rows themselves."""
        self.mergeable = False
        sums = by_moments(plan, self.fresh)
        if sums is not None:
            inner = self._partial_aggregate(sums.inner, child)
            return At(sums.outer(inner.plan), DRIVER, child.scans)
        rows = sum(self.find_table(scan.table).rows for scan in child.scans)
        apart = quantiles_apart(replace(plan, child=child.plan), self.fresh)
        kept = THINNED_GROUPS if plan.keys else THINNED_ROWS
        if apart is not None and rows > kept:
            return self._thinned_aggregate(apart, child, -(-rows // kept))
        if rows > GATHERED_ROWS:
            raise Unsupported("an aggregate without a merge over a large table; its exact answer comes at once")
        return At(replace(plan, child=self.gathered(child)), DRIVER, child.scans)

    def _thinned_aggregate(self, apart: Quantiles, child: At, step: int) -> At:
        """Quantiles from every step-th row of the units, beside the other aggregates."""
        assert child.unit is not None  # noqa: S101  partial aggregates are of units
        rows = replace(child, plan=apart.thinned(child.unit, step, self.fresh), by=frozenset())
        quantiles = apart.quantiles_of(self.gathered(rows))
        if apart.others is None:
            return At(quantiles, DRIVER, child.scans)
        others = self._partial_aggregate(apart.others, child)
        return At(apart.together(quantiles, others.plan, self.fresh), DRIVER, child.scans)

    def _dependent_aggregate(self, plan: GroupBy, child: At) -> At:
        """Rows that wait for a value of the driver are kept grouped by what the value decides on (iOLAP, appendix B).

        sum over a test of B and the value = sum, over groups by B that pass the test, of their sums.
        """
        reads = frozenset().union(*(columns_of(expression) for expression in _own_expressions(plan)))
        split = (
            None if plan.sets is not None or reads & child.made else split_aggregate(replace(plan, child=child.plan), self.fresh)
        )
        if split is None:
            return At(replace(plan, child=self.gathered(child)), DRIVER, child.scans)
        read = reads_of(child.pending) & child.plan.names
        made = {key.name for key in split.partial.keys}
        extra = tuple(output for output in passed(child.plan.columns) if output.name in read and output.name not in made)
        parts = self._by_unit(split.partial, child)
        decision_ = self._decision(child)
        if decision_ is None:
            grouped = replace(parts, keys=(*parts.keys, *extra))
            rows: Plan = self._gather(grouped, child.unit, _names_but(grouped.keys, child.unit), partial=True)
            return At(split.merged(apply(child.pending, rows)), DRIVER, child.scans)
        mark = Output(self.fresh("decided"), TRUE)
        grouped = decided_parts(parts, extra, mark, decision_)
        waiting = Waiting(decision_, tuple(output.name for output in extra), mark.name)
        gathered = self._gather(grouped, child.unit, _names_but(grouped.keys, child.unit), partial=True, waiting=waiting)
        return At(split.merged(self._decided_and_not(gathered, waiting, child, split)), DRIVER, child.scans)

    def _decision(self, child: At) -> Decision | None:
        """What the rows wait for, when it is one lookup and comparisons with what it finds."""
        match child.pending:
            case (Lookup() as lookup, *steps) if all(isinstance(step, Test) for step in steps):
                tests = tuple(step.predicate for step in steps if isinstance(step, Test))
                name = f"ranges_{len(self.stages) + 1}"
                return decision(name, lookup.kind, child.plan, lookup.right, lookup.condition, tests)
        return None

    def _decided_and_not(self, rows: Input, waiting: Waiting, child: At, split: TwoSteps) -> Plan:
        """Rows surely in as they are, and those of the others that pass the test now."""
        mark = Column(BOOLEAN, waiting.mark)
        names = {*(key.name for key in split.keys), *(each.name for each in split.partial.aggregates)}
        columns = tuple(column for column in rows.given if column.name in names or (child.unit and column.name == child.unit.name))
        surely = Project(Filter(rows, mark), passed(columns))
        perhaps = Project(apply(child.pending, Filter(rows, Call(BOOLEAN, "not", (mark,)))), passed(columns))
        return SetOperation(surely, perhaps, "union", True, columns)

    def _by_unit(self, plan: GroupBy, child: At) -> GroupBy:
        """The aggregate with the unit's group as one more key: the first, whose bit in a grouping id is the highest, always 0."""
        if child.unit is None:
            raise Unsupported("rows without a unit cannot be grouped by it")
        keys = (*passed((child.unit,)), *plan.keys)
        sets = None if plan.sets is None else tuple((0, *(place + 1 for place in places)) for places in plan.sets)
        return replace(plan, keys=keys, sets=sets)

    def window(self, plan: Window) -> At:
        child = self.place(plan.child)
        if child.unit is not None and not child.pending and self._within_units(plan, child):
            self.ranged = True
            return replace(child, plan=replace(plan, child=child.plan))
        if child.unit is None:
            return replace(child, plan=replace(plan, child=child.plan))
        return At(replace(plan, child=self.gathered(child)), DRIVER, child.scans)

    def _within_units(self, plan: Window, child: At) -> bool:
        calls = [output.expression for output in plan.outputs if isinstance(output.expression, WindowCall)]
        return all({each.name for each in call.partition if isinstance(each, Column)} & child.by for call in calls)

    def set_operation(self, plan: SetOperation) -> At:
        left, right = self.place(plan.left), self.place(plan.right)
        scans = left.scans | right.scans
        if left.where == right.where == STATIC:
            return At(replace(plan, left=left.plan, right=right.plan), STATIC)
        if plan.kind == "union" and plan.every and self._both_wait_for_nothing(left, right):
            return self._united(plan, left, right)
        sides = [Project(self.gathered(side), passed(old.columns)) for side, old in ((left, plan.left), (right, plan.right))]
        return At(replace(plan, left=sides[0], right=sides[1]), DRIVER, scans)

    def _both_wait_for_nothing(self, left: At, right: At) -> bool:
        return left.unit is not None and right.unit is not None and not left.pending and not right.pending

    def _united(self, plan: SetOperation, left: At, right: At) -> At:
        unit = Column(INT, self.fresh("unit"))
        sides = []
        for side, old in ((left, plan.left), (right, plan.right)):
            assert side.unit is not None  # noqa: S101  checked by the caller
            sides.append(Project(side.plan, (*passed(old.columns), Output(self.fresh("unit"), side.unit))))
        united = SetOperation(sides[0], sides[1], plan.kind, plan.every, (*plan.given, unit))
        return At(united, UNITS, left.scans | right.scans, unit)

    def sort(self, plan: Sort) -> At:
        child = self.place(plan.child)
        if child.unit is None:
            return replace(child, plan=replace(plan, child=child.plan))
        return At(replace(plan, child=self.gathered(child)), DRIVER, child.scans)

    def limit(self, plan: Limit) -> At:
        """Units send no more rows than the limit can take; the sort that decides which is repeated at the driver."""
        ordered = plan.child if isinstance(plan.child, Sort) else None
        child = self.place(ordered.child if ordered else plan.child)
        if child.where == STATIC:
            return At(self._static_input(self.place(plan.child).plan, plan), DRIVER)
        below = child.plan
        if child.unit is not None and not child.pending and plan.count is not None:
            below = Limit(replace(ordered, child=below) if ordered else below, plan.count + plan.offset)
        rows = self.gathered(replace(child, plan=below))
        return At(replace(plan, child=replace(ordered, child=rows) if ordered else rows), DRIVER, child.scans)

    def _static_input(self, child: Plan, plan: Limit) -> Plan:
        """Which rows a limit picks is open, so it is picked once."""
        return self._gather(replace(plan, child=child), None, ())

    def apply(self, plan: Apply) -> At:
        """A function that takes rows in pieces is given those of a unit; any other needs the rows of all units read."""
        child = self.place(plan.child)
        if child.unit is None:
            return replace(child, plan=replace(plan, child=child.plan))
        if plan.keys is not None or child.pending:
            return At(replace(plan, child=self.gathered(child)), DRIVER, child.scans)
        self.ranged = self.ranged or bool(child.by)
        return At(replace(plan, child=child.plan, by=child.unit), UNITS, child.scans, child.unit)

    def gathered(self, at: At) -> Plan:
        """The subplan at the driver."""
        match at.where:
            case "driver":
                return at.plan
            case "static":
                return self._gather(at.plan, None, ())
        return apply(at.pending, self._gather(at.plan, at.unit, ()))

    def _gather(
        self, plan: Plan, unit: Column | None, keys: tuple[str, ...], partial: bool = False, waiting: Waiting | None = None
    ) -> Input:
        if plan not in self.stages:
            name = f"stage_{len(self.stages) + 1}"
            self.stages[plan] = Gathered(name, plan, unit is not None, unit.name if unit else None, keys, partial, waiting)
        return Input(self.stages[plan].name, plan.columns)


def _names_but(keys: tuple[Output, ...], unit: Column | None) -> tuple[str, ...]:
    return tuple(key.name for key in keys if unit is None or key.name != unit.name)


def _ispassed(output: Output) -> bool:
    return isinstance(output.expression, Column) and output.expression.name == output.name


def _own_expressions(plan: GroupBy) -> tuple[Expression, ...]:
    return tuple(output.expression for output in (*plan.keys, *plan.aggregates))


RULES: dict[type[Plan], Callable[..., At]] = {
    Scan: _Streamer.scan,
    Values: _Streamer.values,
    Filter: _Streamer.filter,
    Project: _Streamer.project,
    Join: _Streamer.join,
    GroupBy: _Streamer.aggregate,
    Window: _Streamer.window,
    SetOperation: _Streamer.set_operation,
    Sort: _Streamer.sort,
    Limit: _Streamer.limit,
    Apply: _Streamer.apply,
}
