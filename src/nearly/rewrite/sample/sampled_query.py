"""A query over one view in parts: what is linear in the view's rows, and what is done with the aggregates of them.

Law: an aggregate of the core is the same function of sums over the view's rows, whatever weights these have. So rows of a sample
with weights estimate it, and so do rows of a stale view with the changes of a sample, weighed up (SVC's correction).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from nearly.errors import Unsupported
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import AggregateCall, Call, Column, Expression, Literal, columns_of
from nearly.plan.functions.casting import coerce
from nearly.plan.nodes import Filter, GroupBy, Join, Limit, Output, Plan, Project, Scan, Sort, passed
from nearly.plan.types import BOOLEAN, DOUBLE, INT, LONG, is_numeric
from nearly.rewrite.sites.moments import ByMoments, by_moments
from nearly.rewrite.sites.split_aggregate import TwoSteps, split_aggregate

UNIT = Column(INT, "sample_unit")
"""Which part of the view a row is of; see `views.strata`."""
ROWS = "sample_rows"
"""The hidden aggregate: how many rows a group has."""

_LINEAR = frozenset({"sum", "count", "count_if", "avg", "variance", "stddev", "var_pop", "stddev_pop",
                     "covar_samp", "covar_pop", "corr"})  # fmt: skip
_VIEW_SIDES = {"inner": (True, True), "cross": (True, True), "left": (True, False), "right": (False, True),
               "semi": (True, False), "anti": (True, False), "full": (False, False)}  # fmt: skip
"""For each kind of join, on which sides the view's rows may be: there the rows of the join add up as its rows do."""


@dataclass(frozen=True, slots=True)
class SampledQuery:
    """`finish` are the nodes above the aggregate `core`, the topmost first; `scan` is the one place where the view is read."""

    finish: tuple[Plan, ...]
    core: GroupBy
    scan: Scan

    @property
    def filtered(self) -> bool:
        """Whether which groups are shown hangs on their aggregates."""
        return any(isinstance(node, Filter) for node in self.finish)

    @property
    def limited(self) -> bool:
        return any(isinstance(node, Limit) for node in self.finish)

    @property
    def decisive(self) -> frozenset[str]:
        """The view's columns that decide whether a row counts, and in which group."""
        found = set().union(*(columns_of(key.expression) for key in self.core.keys))
        for node in self.core.child.walk():  # what is above comes first
            match node:
                case Project():
                    made = [each for each in node.outputs if each.name in found]
                    found |= set().union(*(columns_of(each.expression) for each in made))
                case Scan():
                    pass
                case _:
                    found |= set().union(*map(columns_of, node.expressions()))
        return frozenset(each.source for each in self.scan.fields if each.name in found)

    def rows(self, view: Plan) -> Plan:
        """What the core groups, over other rows of the view, which have the scan's columns and a unit; the unit is passed on."""
        return _with_unit(self.core.child, self.scan, view)

    def plain_rows(self, view: Plan) -> Plan:
        """What the core groups, over other rows of the view, which have the scan's columns."""
        return self.core.child.transform(lambda node: view if node == self.scan else node)


def sampled_query(plan: Plan, view: str) -> SampledQuery:
    """The parts of a rewritten plan; `Unsupported` tells why a sample says nothing of it."""
    finish: list[Plan] = []
    node = plan
    while isinstance(node, Project | Filter | Sort | Limit):
        finish.append(node)
        node = node.child
    if not isinstance(node, GroupBy):
        raise Unsupported("only aggregates of a view are estimated from a sample of it")
    if node.sets is not None:
        raise Unsupported("GROUPING SETS are not estimated from a sample; ask for each set by itself")
    scans = [each for each in plan.walk() if isinstance(each, Scan) and each.table.lower() == view.lower()]
    if len(scans) != 1:
        raise Unsupported(f"a sample of {view!r} serves queries that name it once, not {len(scans)} times")
    _check_path(node.child, scans[0])
    return SampledQuery(tuple(finish), node, scans[0])


def _check_path(plan: Plan, scan: Scan) -> None:
    """Refuse what makes something else than a sum of parts from the view's rows."""
    if plan == scan:
        return
    match plan:
        case Filter() | Project():
            _check_path(plan.child, scan)
        case Join():
            left = any(node == scan for node in plan.left.walk())
            if not _VIEW_SIDES[plan.kind][0 if left else 1]:
                raise Unsupported(
                    f"a {plan.kind} join that keeps rows which meet no row of the view is not estimated from a sample"
                )
            _check_path(plan.left if left else plan.right, scan)
        case _:
            raise Unsupported(f"{type(plan).__name__} below the last aggregate is not estimated from a sample of the view")


def _with_unit(plan: Plan, scan: Scan, view: Plan) -> Plan:
    if plan == scan:
        return view
    if not any(node == scan for node in plan.walk()):
        return plan
    changed = plan.map_children(lambda child: _with_unit(child, scan, view))
    return replace(changed, outputs=(*changed.outputs, *passed((UNIT,)))) if isinstance(changed, Project) else changed


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile `p` of a value, among the rows that have it and for which `where` holds."""

    name: str
    value: Expression
    p: float
    where: Expression | None


@dataclass(frozen=True, slots=True)
class Counted:
    """The number of different values."""

    name: str
    value: Expression
    where: Expression | None


@dataclass(frozen=True, slots=True)
class Extreme:
    """The least or greatest value; `mean` and `variance` name the aggregates that tell how numbers spread."""

    name: str
    function: str
    mean: str | None
    variance: str | None


@dataclass(frozen=True, slots=True)
class CoreParts:
    """The aggregates of a core by how they are estimated."""

    keys: tuple[Output, ...]
    steps: TwoSteps
    moments: ByMoments | None
    linear: tuple[Column, ...]
    extremes: tuple[Extreme, ...] = ()
    extreme_outputs: tuple[Output, ...] = ()
    quantiles: tuple[Quantile, ...] = ()
    distinct: tuple[Counted, ...] = ()

    def partial(self, rows: Plan) -> GroupBy:
        """Partial results by group and unit."""
        return GroupBy(rows, (*self.keys, Output(UNIT.name, UNIT)), self.steps.partial.aggregates)

    def results(self, merged: Plan) -> Plan:
        """The linear aggregates from merged partial results."""
        found = Project(merged, self.steps.results)
        return found if self.moments is None else self.moments.outer(found)

    def values(self, quantile: Quantile, rows: Plan) -> Plan:
        """Group, unit and value of each row that a quantile is of."""
        value = coerce(quantile.value, DOUBLE)
        present = _present(rows, value, quantile.where)
        return Project(present, (*self.keys, Output(UNIT.name, UNIT), Output("sample_value", value)))

    def different(self, counted: Counted, rows: Plan) -> Plan:
        """Group, unit and each value that occurs there, with how often it does."""
        present = _present(rows, counted.value, counted.where)
        times = Output("sample_times", AggregateCall(LONG, "count", ()))
        return GroupBy(present, (*self.keys, Output(UNIT.name, UNIT), Output("sample_value", counted.value)), (times,))


def _present(rows: Plan, value: Expression, where: Expression | None) -> Plan:
    wanted = rows if where is None else Filter(rows, where)
    return Filter(wanted, Call(BOOLEAN, "isnotnull", (value,)))


@dataclass(slots=True)
class _Sorting:
    """The aggregates found so far, by kind."""

    fresh: FreshNames
    linear: list[Output] = field(default_factory=list)
    extremes: list[Extreme] = field(default_factory=list)
    extreme_outputs: list[Output] = field(default_factory=list)
    quantiles: list[Quantile] = field(default_factory=list)
    distinct: list[Counted] = field(default_factory=list)

    def take(self, output: Output) -> None:
        call = output.expression
        match call:
            case AggregateCall(function="count", distinct=True, arguments=(value,)):
                self.distinct.append(Counted(output.name, value, call.where))
            case AggregateCall(function="percentile", distinct=False, arguments=(value, Literal(value=p))):
                self.quantiles.append(Quantile(output.name, value, float(p), call.where))
            case AggregateCall(function="min" | "max"):
                self._extreme(output, call)
            case AggregateCall(distinct=False) if call.function in _LINEAR:
                self.linear.append(output)
            case _:
                raise Unsupported(f"{getattr(call, 'function', 'this')} has no estimate from a sample of a view")

    def _extreme(self, output: Output, call: AggregateCall) -> None:
        names: list[str | None] = [None, None]
        if is_numeric(call.arguments[0].type):
            value = coerce(call.arguments[0], DOUBLE)
            spread = [
                Output(self.fresh(name), AggregateCall(DOUBLE, name, (value,), False, call.where)) for name in ("avg", "var_pop")
            ]
            self.linear += spread
            names = [each.name for each in spread]
        self.extremes.append(Extreme(output.name, call.function, names[0], names[1]))
        self.extreme_outputs.append(output)


def core_parts(core: GroupBy, fresh: FreshNames) -> CoreParts:
    """The aggregates of a core, and the number of rows of each group."""
    found = _Sorting(fresh)
    for output in core.aggregates:
        found.take(output)
    counted = Output(ROWS, AggregateCall(LONG, "count", ()))
    whole = GroupBy(core.child, core.keys, (*found.linear, counted))
    moments = by_moments(whole, fresh)
    steps = split_aggregate(whole if moments is None else moments.inner, fresh)
    if steps is None:
        raise Unsupported("an aggregate that has no parts is not estimated from a sample of a view")
    linear = tuple(output.column for output in (*found.linear, counted))
    return CoreParts(
        core.keys, steps, moments, linear, tuple(found.extremes), tuple(found.extreme_outputs),
        tuple(found.quantiles), tuple(found.distinct),
    )  # fmt: skip
