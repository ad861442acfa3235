"""The tail of a progressive query over weighted rows: estimates instead of exact values, and replicates of them.

A row of a unit that was read stands for N/n rows (its weight), so sums and counts become weighted sums (iOLAP's Q(D_i, m_i)).
A replicate leaves the units of one group out and weighs the rest up. The replicate's number is one more key column: joins equate
it, groupings and windows keep it, and so every operator above carries uncertainty without knowing.

A key that was seen in few units might as well have been missed, so scaling its aggregate by N/n overshoots: it is multiplied by
share(k) as well, and its row then stands for 1/share(k) rows, k being the number of unit groups with the key. Totals are the same
either way: sum(weight * value) is unbiased.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from nearly.errors import Unsupported
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import AggregateCall, Call, Column, Expression, Literal, WindowCall, columns_of, same
from nearly.plan.functions.casting import coerce
from nearly.plan.nodes import Apply, Filter, GroupBy, Input, Join, Limit, Output, Plan, Project, SetOperation, Sort, Window, passed
from nearly.plan.types import BOOLEAN, DOUBLE, INT, LONG
from nearly.rewrite.stream.cut import Gathered
from nearly.rewrite.weigh.aggregate import Aggregation
from nearly.rewrite.weigh.pairs import PairAggregation
from nearly.rewrite.weigh.relax import became_double, relaxed, relaxed_keys, relaxed_to
from nearly.rewrite.weigh.union import Uniting
from nearly.rewrite.weigh.weighted import FINAL, OPEN, REPLICATES, THEMSELVES, WEIGHTS, Growths, OfPieces, OfUnits, Weighted


def weigh(
    tail: Plan, stages: tuple[Gathered, ...], weight: float, growths: Growths, beside: float = 1.0,
    unlike: frozenset[GroupBy] = frozenset(),
) -> Weighted:  # fmt: skip
    """The tail as a point estimate: every row of a unit weighs the same, or `beside`, if it is of a table sampled by itself.

    `unlike` are aggregates most of whose keys may be in units unlike those read.
    """
    return _Weigher({stage.name: stage for stage in stages}, growths, weight, beside, unlike).visit(tail)


def replicate(tail: Plan, stages: tuple[Gathered, ...], growths: Growths) -> Weighted:
    """The tail for all replicates at once, over the inputs `weights` and `replicates`; its order and limit are left out."""
    return _Weigher({stage.name: stage for stage in stages}, growths, None).visit(_unordered(tail))


def keyed_aggregates(tail: Plan, stages: tuple[Gathered, ...]) -> tuple[GroupBy, ...]:
    """The aggregates by keys whose input rows know their unit: those whose keys may not all have been seen."""
    streamed = {stage.name for stage in stages if stage.unit is not None}
    aggregates = (node for node in dict.fromkeys(tail.walk()) if isinstance(node, GroupBy) and node.keys and node.sets is None)
    return tuple(node for node in aggregates if _over_units(node.child, streamed))


def incidence(plan: GroupBy, stages: tuple[Gathered, ...]) -> Plan:
    """How many keys of an aggregate were seen in how many unit groups: columns `seen_in` and `keys`."""
    rows = rows_with_units(plan, stages)
    seen = Output("seen", AggregateCall(LONG, "groups_seen", (rows.unit,)))
    counted = GroupBy(rows.plan, rows.keys, (seen,))
    return GroupBy(counted, (Output("seen_in", seen.column),), (Output("keys", AggregateCall(LONG, "count", ())),))


@dataclass(frozen=True, slots=True)
class UnitRows:
    """The rows that an aggregate groups, the column with their unit, and the aggregate's keys over them."""

    plan: Plan
    unit: Column
    keys: tuple[Output, ...]


def rows_with_units(plan: GroupBy, stages: tuple[Gathered, ...]) -> UnitRows:
    """What an aggregate groups, where that are rows of units."""
    rows = _Weigher({stage.name: stage for stage in stages}, {}, 1.0).visit(plan.child)
    if not isinstance(rows.standing, OfUnits):
        raise Unsupported("rows without a unit have no incidence")
    keys = tuple(replace(key, expression=relaxed(key.expression, rows.doubles)) for key in plan.keys)
    return UnitRows(rows.plan, rows.standing.unit, keys)


def _over_units(plan: Plan, streamed: set[str]) -> bool:
    match plan:
        case Input():
            return plan.source in streamed
        case GroupBy() | Apply() | Window() | Limit():
            return False
        case Join():  # pairs of rows of two samples have no unit
            return sum(_over_units(child, streamed) for child in plan.children) == 1
    return any(_over_units(child, streamed) for child in plan.children)


def _unordered(tail: Plan) -> Plan:
    """The tail without the order and limit at its top: they pick rows for show, and do not change values."""
    match tail:
        case Sort() | Limit():
            return _unordered(tail.child)
        case Project():
            return replace(tail, child=_unordered(tail.child))
    return tail


@dataclass(slots=True)
class _Weigher:
    """`weight` is the weight of every row of a unit; None when replicates each have their own."""

    stages: dict[str, Gathered]
    growths: Growths
    weight: float | None
    beside: float = 1.0
    unlike: frozenset[GroupBy] = frozenset()
    fresh: FreshNames = field(default_factory=lambda: FreshNames("weigh"))

    @property
    def paired(self) -> bool:
        """Whether two tables are sampled by themselves. Then rows are weighed after they were aggregated by pairs of units."""
        return any(stage.beside for stage in self.stages.values())

    def visit(self, plan: Plan) -> Weighted:
        rule = RULES.get(type(plan))
        if rule is None or (self.paired and isinstance(plan, Window | SetOperation | Apply)):
            raise Unsupported(f"{type(plan).__name__} has no rule for estimates")
        return rule(self, plan)

    def input(self, plan: Input) -> Weighted:
        stage = self.stages.get(plan.source)
        if stage is None or stage.unit is None:
            return Weighted(plan, rows=OPEN if stage is not None and stage.streamed else FINAL)
        unit = Column(INT, stage.unit)
        if self.weight is not None or self.paired:
            weight = self.beside if stage.beside else self.weight
            return Weighted(plan, OfUnits(Literal(DOUBLE, 1.0 if weight is None else weight), unit, stage.beside), rows=OPEN)
        names = [Output(self.fresh(column.name), column) for column in WEIGHTS.given]
        weights = Project(WEIGHTS, tuple(names))
        joined = Join(plan, weights, "inner", Call(BOOLEAN, "=", (unit, names[1].column)))
        return Weighted(joined, OfUnits(names[2].column, unit), names[0].column)

    def filter(self, plan: Filter) -> Weighted:
        child = self.visit(plan.child)
        return _hanging(replace(child, plan=Filter(child.plan, relaxed(plan.predicate, child.doubles))), plan.predicate)

    def project(self, plan: Project) -> Weighted:
        return self._projected(plan, self.visit(plan.child))

    def _projected(self, plan: Project, child: Weighted) -> Weighted:
        outputs = tuple(replace(each, expression=relaxed(each.expression, child.doubles)) for each in plan.outputs)
        evolving = frozenset(o.name for o in plan.outputs if child.evolves(o.expression))
        doubles = frozenset(new.name for new, old in zip(outputs, plan.outputs, strict=True) if became_double(new, old))
        kept = {output.name for output in outputs}
        extremes = frozenset(o.name for o in plan.outputs if columns_of(o.expression) & child.extremes)
        evidence = {o.name: child.contributing(columns_of(o.expression)) for o in plan.outputs if o.name in evolving}
        curved = frozenset(o.name for o in plan.outputs if child.bends(o.expression))
        made = replace(child, evolving=evolving, doubles=doubles, extremes=extremes, evidence=evidence, curved=curved)
        extra = tuple(output for output in made.carried if output.name not in kept)
        return replace(made, plan=Project(child.plan, (*outputs, *extra)))

    def join(self, plan: Join) -> Weighted:
        left, right = self.visit(plan.left), self.visit(plan.right)
        if right.replicate is not None and left.replicate is None:
            left = self._in_every_replicate(left)
        doubles = left.doubles | right.doubles
        condition = None if plan.condition is None else relaxed(plan.condition, doubles)
        kind = plan.kind
        if left.replicate is not None and right.replicate is not None:
            same = Call(BOOLEAN, "=", (left.replicate, right.replicate))
            condition = same if condition is None else Call(BOOLEAN, "and", (same, condition))
            kind = "inner" if kind == "cross" else kind
        if kind in ("right", "full") or (self.paired and kind not in ("inner", "cross")):
            raise Unsupported(f"a {kind} join of estimates")
        joined = Join(left.plan, right.plan, kind, condition)
        if kind in ("semi", "anti"):
            if self.weight is not None and right.deciding and isinstance(left.standing, OfUnits):
                left = self._with_what_decides(left, right)
                joined = replace(joined, left=left.plan)
            found = _hanging(replace(left, plan=joined), plan.condition, right)
            return found if right.rows.final else replace(found, rows=found.rows.hanging())
        standing = left.standing_with(right)
        evolving, extremes = left.evolving | right.evolving, left.extremes | right.extremes
        both = left.rows.and_of(right.rows)
        found = Weighted(
            joined, standing, left.replicate or right.replicate, evolving, doubles, extremes,
            {**left.evidence, **right.evidence}, left.present | right.present,
            both.hanging() if kind == "left" and not right.rows.final else both, left.by_extremes or right.by_extremes,
            left.of_picked or right.of_picked, left.deciding | right.deciding, left.curved | right.curved,
        )  # fmt: skip
        return _hanging(found, plan.condition)

    def _with_what_decides(self, rows: Weighted, others: Weighted) -> Weighted:
        """Rows that others pick, with what most of these hang on themselves."""
        calls = (AggregateCall(LONG, "groups_of_most", (Column(LONG, name),)) for name in sorted(others.deciding))
        outputs = tuple(Output(self.fresh("groups"), each) for each in calls)
        plan = Join(rows.plan, GroupBy(others.plan, (), outputs), "cross")
        return replace(rows, plan=plan, deciding=rows.deciding | {output.name for output in outputs})

    def _in_every_replicate(self, rows: Weighted) -> Weighted:
        name = Output(self.fresh("replicate"), REPLICATES.given[0])
        return replace(rows, plan=Join(rows.plan, Project(REPLICATES, (name,)), "cross"), replicate=name.column)

    def aggregate(self, plan: GroupBy) -> Weighted:
        child = self.visit(plan.child)
        if plan.sets is not None and child.replicate is not None:
            raise Unsupported("grouping sets of estimates")
        if self.paired:
            return self._projected(*PairAggregation(self.fresh, plan, child, self.weight is None).weighted())
        return Aggregation(self.fresh, plan, child, self.growths.get(plan), plan in self.unlike).weighted()

    def window(self, plan: Window) -> Weighted:
        child = self.visit(plan.child)
        outputs = []
        for output in plan.outputs:
            expression = relaxed(output.expression, child.doubles)
            if isinstance(expression, WindowCall) and child.replicate is not None:
                expression = replace(expression, partition=(*expression.partition, child.replicate))
            outputs.append(replace(output, expression=expression))
        names = {output.name for output in outputs}
        doubles = {new.name for new, old in zip(outputs, plan.outputs, strict=True) if became_double(new, old)}
        evidence = {o.name: child.contributing(columns_of(o.expression)) for o in plan.outputs if _is_total(o.expression)}
        curved = frozenset(o.name for o in plan.outputs if columns_of(o.expression) & child.curved)
        return replace(
            child, plan=Window(child.plan, tuple(outputs)), evolving=child.evolving | names, doubles=child.doubles | doubles,
            evidence={**child.evidence, **evidence}, curved=child.curved | curved,
        )  # fmt: skip

    def set_operation(self, plan: SetOperation) -> Weighted:
        left, right = self.visit(plan.left), self.visit(plan.right)
        of_units = [side.standing for side in (left, right) if isinstance(side.standing, OfUnits)]
        if plan.kind == "union" and plan.every and len(of_units) == 2:
            return Uniting(self.fresh, plan, left, right).rows(*of_units)
        if plan.kind == "union" and plan.every and not of_units:
            if left.replicate is not None or right.replicate is not None:
                left, right = (side if side.replicate is not None else self._in_every_replicate(side) for side in (left, right))
            return Uniting(self.fresh, plan, left, right).estimates()
        if left.replicate is not None or right.replicate is not None or left.weight or right.weight:
            raise Unsupported(f"{plan.kind} of estimates")
        places = [
            place for place, (a, b) in enumerate(zip(plan.left.columns, plan.right.columns, strict=True))
            if a.name in left.doubles or b.name in right.doubles
        ]  # fmt: skip
        given = tuple(replace(each, type=DOUBLE) if place in places else each for place, each in enumerate(plan.given))
        sides = [_as_doubles(side.plan, old.columns, places) for side, old in ((left, plan.left), (right, plan.right))]
        evolving = {
            each.name for each, a, b in zip(given, plan.left.columns, plan.right.columns, strict=True)
            if a.name in left.evolving or b.name in right.evolving
        }  # fmt: skip
        united = SetOperation(sides[0], sides[1], plan.kind, plan.every, given)
        rows = left.rows.and_of(right.rows)
        return Weighted(
            united, evolving=frozenset(evolving), doubles=frozenset(given[place].name for place in places),
            rows=rows if rows.final or (plan.kind == "union" and plan.every) else rows.hanging(),
        )  # fmt: skip

    def sort(self, plan: Sort) -> Weighted:
        child = self.visit(plan.child)
        return replace(child, plan=Sort(child.plan, relaxed_keys(plan.keys, child.doubles)))

    def limit(self, plan: Limit) -> Weighted:
        child = self.visit(plan.child)
        if child.replicate is not None:
            raise Unsupported("a limit below other operators has no replicates")
        ordered = plan.child.keys if isinstance(plan.child, Sort) else ()
        settled = child.rows.final and not any(child.evolves(key.expression) for key in ordered)
        return replace(child, plan=replace(plan, child=child.plan), rows=child.rows if settled else child.rows.hanging())

    def apply(self, plan: Apply) -> Weighted:
        """A user's function over estimates sees them in their own types; what it gives is as it is, neither scaled nor bounded.

        One that aggregates rows of units may tell more.
        """
        child = self.visit(plan.child)
        if plan.keys is not None and isinstance(child.standing, OfUnits) and not any(child.evolves(each) for each in plan.taken):
            return self._aggregated_by_user(plan, child, child.standing)
        streamed = any(isinstance(node, Input) and self.stages[node.source].streamed for node in plan.walk())
        if child.replicate is not None or isinstance(child.weight, Column) or (streamed and self.weight is None):
            raise Unsupported("a Python function over estimates has no replicates")
        inputs = tuple(Output(self.fresh("taken"), relaxed_to(column, child.doubles)) for column in plan.taken)
        by = () if plan.by is None else (Output(plan.by.name, plan.by),)
        applied = replace(plan, child=Project(child.plan, (*inputs, *by)), taken=tuple(each.column for each in inputs))
        if plan.keys is not None and streamed:
            return Weighted(applied, evolving=frozenset(column.name for column in plan.given[plan.keys :]), rows=OPEN)
        changes = any(column.name in child.evolving for column in plan.taken)
        rows = FINAL if child.rows.final and not changes else OPEN
        standing = THEMSELVES if child.weight is None else OfPieces(child.weight)
        return Weighted(applied, standing, evolving=applied.names if changes else frozenset(), rows=rows)

    def _aggregated_by_user(self, plan: Apply, child: Weighted, units: OfUnits) -> Weighted:
        """A user's aggregate of the rows of units, in each replicate: totals are scaled, what is neither mean nor total is open."""
        by = child.replicate
        number = () if by is None else (by,)
        rows = Project(child.plan, passed((*plan.taken, *number)))
        made: Plan = replace(plan, child=rows, by=by)
        weight = units.weight
        if by is not None and "total" in plan.estimates:
            made, weight = self._with_weights(made, child.plan, weight, by)
        keys, values = plan.given[: plan.keys], plan.given[plan.keys :]
        kinds = dict(zip((value.name for value in values), plan.estimates or (None,) * len(values), strict=True))
        totals = frozenset(name for name, kind in kinds.items() if kind == "total")
        outputs = [*passed((*keys, *number))]
        for value in values:
            scaled = Call(DOUBLE, "*", (coerce(value, DOUBLE), weight)) if value.name in totals else value
            outputs.append(Output(value.name, scaled))
        unknown = frozenset(name for name, kind in kinds.items() if kind is None)
        found = Weighted(
            made, replicate=by, evolving=frozenset(kinds), doubles=totals, extremes=unknown, rows=OPEN if keys else FINAL
        )
        if by is None:
            found = self._with_evidence(found, plan, child.plan, units.unit)
        return replace(found, plan=Project(found.plan, (*outputs, *(each for each in found.carried if each.expression != by))))

    def _with_evidence(self, made: Weighted, plan: Apply, rows: Plan, unit: Column) -> Weighted:
        """Rows of a user's aggregate with the unit groups of their keys."""
        keys = plan.taken[: plan.keys]
        names = [Output(self.fresh("key"), key) for key in keys]
        mask = Output(self.fresh("groups"), AggregateCall(LONG, "groups_of", (unit,)))
        condition = same([*plan.given[: plan.keys]], [name.column for name in names])
        joined = Join(made.plan, GroupBy(rows, tuple(names), (mask,)), "cross" if condition is None else "inner", condition)
        return replace(made, plan=joined, evidence=dict.fromkeys(made.evolving, frozenset({mask.name})))

    def _with_weights(self, made: Plan, rows: Plan, weight_: Expression, by: Column) -> tuple[Plan, Expression]:
        """Rows of replicates with what a row weighs in each."""
        name = Output(self.fresh("replicate"), by)
        weight = Output(self.fresh("weight"), AggregateCall(DOUBLE, "max", (weight_,)))
        weights = GroupBy(rows, (name,), (weight,))
        return Join(made, weights, "inner", Call(BOOLEAN, "=", (by, name.column))), weight.column


def _hanging(found: Weighted, condition: Expression | None, *others: Weighted) -> Weighted:
    """Rows that a condition picks: where it compares estimates, they hang on them."""
    names = frozenset() if condition is None else columns_of(condition)
    if not any(names & each.evolving for each in (found, *others)):
        return found
    by_extremes = found.by_extremes or any(names & each.extremes or each.by_extremes for each in (found, *others))
    behind = found.contributing(names)
    return replace(
        found, rows=found.rows.hanging(), present=found.present | behind, by_extremes=bool(by_extremes),
        deciding=found.deciding | behind,
    )  # fmt: skip


def _is_total(expression: Expression) -> bool:
    """Whether a window computes a total or average; places in an order are no smooth function of sums."""
    return isinstance(expression, WindowCall) and isinstance(expression.call, AggregateCall)


def _as_doubles(plan: Plan, columns: tuple[Column, ...], places: list[int]) -> Plan:
    by_name = {column.name: column for column in plan.columns}
    return Project(plan, tuple(
        Output(column.name, coerce(by_name[column.name], DOUBLE) if place in places else by_name[column.name])
        for place, column in enumerate(columns)
    ))  # fmt: skip


RULES: dict[type[Plan], Callable[..., Weighted]] = {
    Input: _Weigher.input,
    Filter: _Weigher.filter,
    Project: _Weigher.project,
    Join: _Weigher.join,
    GroupBy: _Weigher.aggregate,
    Window: _Weigher.window,
    SetOperation: _Weigher.set_operation,
    Sort: _Weigher.sort,
    Limit: _Weigher.limit,
    Apply: _Weigher.apply,
}
