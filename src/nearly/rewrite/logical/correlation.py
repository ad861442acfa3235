"""Pulling correlation up: a subquery's plan without its references to the enclosing query, and the predicates they stood in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from nearly.errors import Unsupported
from nearly.plan import functions
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import Call, Expression, columns_of, conjunction, conjuncts
from nearly.plan.nodes import Filter, GroupBy, Join, Limit, Output, Plan, Project, Sort, passed


@dataclass(frozen=True, slots=True)
class Pulled:
    """Law: for each row of the enclosing query, the subquery's rows are the rows of `plan` that satisfy all `predicates`.

    With `ungrouped` the subquery is an aggregate without keys: it has one row also where `plan` has none.
    """

    plan: Plan
    predicates: tuple[Expression, ...]
    ungrouped: GroupBy | None = None


@dataclass(frozen=True, slots=True)
class Equality:
    """`inner = outer`: an expression over the subquery and one over the enclosing query."""

    inner: Expression
    outer: Expression


def pull_up(plan: Plan, fresh: FreshNames) -> Pulled:
    """Take all correlated predicates out of a subquery's plan; correlation anywhere else is `Unsupported`."""
    outer = plan.outer_columns()
    pulled = _Puller(outer, fresh).pull(plan) if outer else Pulled(plan, ())
    if pulled.plan.outer_columns():
        raise Unsupported("a subquery correlated outside its WHERE clauses, or across two levels")
    return pulled


def equalities(predicates: Iterable[Expression], outer: frozenset[str]) -> list[Equality]:
    """The predicates as equalities between the two sides; any other predicate is `Unsupported`."""
    found = []
    for predicate in predicates:
        equality = as_equality(predicate, outer)
        if equality is None:
            raise Unsupported("a correlated subquery whose correlation is not an equality")
        found.append(equality)
    return found


def correlated_keys(
    predicates: Iterable[Expression], outer: frozenset[str], fresh: FreshNames, name: str = "correlated"
) -> tuple[tuple[Output, ...], tuple[Expression, ...]]:
    """The inner sides of equalities as keys of a grouping, and the equalities in terms of these."""
    found = [(Output(fresh(name), each.inner), each.outer) for each in equalities(predicates, outer)]
    return tuple(key for key, _ in found), tuple(functions.call("=", [key.column, other]) for key, other in found)


def as_equality(predicate: Expression, outer: frozenset[str]) -> Equality | None:
    if not isinstance(predicate, Call) or predicate.function != "=":
        return None
    left, right = predicate.arguments
    for inner, other in ((left, right), (right, left)):
        reads = columns_of(inner)
        if reads and not reads & outer and columns_of(other) <= outer:
            return Equality(inner, other)
    return None


@dataclass(frozen=True, slots=True)
class _Puller:
    outer: frozenset[str]
    fresh: FreshNames

    def pull(self, plan: Plan) -> Pulled:
        if not plan.outer_columns():
            return Pulled(plan, (), plan if isinstance(plan, GroupBy) and not plan.keys else None)
        match plan:
            case Filter():
                return self._filter(plan)
            case Project():
                return self._project(plan)
            case Join():
                return self._join(plan)
            case GroupBy():
                return self._aggregate(plan)
            case Sort():
                return self.pull(plan.child)
        raise Unsupported(f"a correlated subquery with {type(plan).__name__.upper()} above its correlation")

    def _filter(self, plan: Filter) -> Pulled:
        below = self.pull(plan.child)
        if below.ungrouped is not None:
            raise Unsupported("a correlated subquery with HAVING")
        kept, theirs = self._apart(plan.predicate)
        child = below.plan if kept is None else Filter(below.plan, kept)
        return Pulled(child, (*below.predicates, *theirs))

    def _project(self, plan: Project) -> Pulled:
        below = self.pull(plan.child)
        reads = frozenset(name for part in below.predicates for name in columns_of(part))
        wanted = reads - self.outer - {output.name for output in plan.outputs}
        more = passed(column for column in below.plan.columns if column.name in wanted)
        return replace(below, plan=Project(below.plan, (*plan.outputs, *more)))

    def _join(self, plan: Join) -> Pulled:
        """Both sides of an inner join, the kept side of the others: filtering before or after the join is the same there."""
        kinds = {"inner": (True, True), "cross": (True, True), "left": (True, False), "semi": (True, False),
                 "anti": (True, False), "right": (False, True), "full": (False, False)}  # fmt: skip
        sides = []
        for side, allowed in zip((plan.left, plan.right), kinds[plan.kind], strict=True):
            if not allowed and side.outer_columns():
                raise Unsupported(f"a subquery correlated on the null-giving side of a {plan.kind} join")
            sides.append(self.pull(side) if allowed else Pulled(side, ()))
            if sides[-1].ungrouped is not None and sides[-1].predicates:
                raise Unsupported("a join with a correlated aggregate")
        condition, theirs = self._apart(plan.condition)
        if theirs and plan.kind != "inner":
            raise Unsupported(f"a subquery correlated in the condition of a {plan.kind} join")
        kind = "cross" if condition is None else plan.kind
        joined = Join(sides[0].plan, sides[1].plan, kind, condition)
        return Pulled(joined, (*sides[0].predicates, *sides[1].predicates, *theirs))

    def _aggregate(self, plan: GroupBy) -> Pulled:
        """Correlation below a grouping by equality becomes more keys of the grouping."""
        if any(self._is_correlated(expression) for expression in plan.expressions()) or plan.sets is not None:
            raise Unsupported("a correlated subquery that aggregates outer columns")
        below = self.pull(plan.child)
        if below.ungrouped is not None:
            raise Unsupported("a correlated aggregate of an aggregate")
        keys, predicates = correlated_keys(below.predicates, self.outer, self.fresh)
        grouped = GroupBy(below.plan, (*plan.keys, *keys), plan.aggregates)
        return Pulled(grouped, predicates, plan if not plan.keys else None)

    def _apart(self, predicate: Expression | None) -> tuple[Expression | None, list[Expression]]:
        """What of a predicate is about the subquery alone, and the parts that are not."""
        theirs = [part for part in conjuncts(predicate) if self._is_correlated(part)]
        return conjunction([part for part in conjuncts(predicate) if part not in theirs]), theirs

    def _is_correlated(self, expression: Expression) -> bool:
        return bool(columns_of(expression) & self.outer)


def existing(plan: Plan) -> Plan:
    """A plan that has rows exactly when this one has: EXISTS cares neither for order nor for a limit of one row or more."""
    while isinstance(plan, Sort) or (isinstance(plan, Limit) and plan.count != 0 and not plan.offset):
        plan = plan.child
    return plan
