"""Which queries have ranges: aggregates over one table, or over an inner join, with WHERE and GROUP BY."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nearly.errors import Unsupported
from nearly.plan.expressions import (
    AggregateCall,
    Column,
    Expression,
    columns_of,
    conjuncts,
    has_subquery,
    substitute,
)
from nearly.plan.nodes import BoundQuery, Filter, GroupBy, Join, Limit, Plan, Project, Scan, Sort

FUNCTIONS = ("sum", "count", "avg", "min", "max")


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A column of the answer: a grouping key (its expression over the tables), or an aggregate."""

    key: Expression | None
    call: AggregateCall | None


@dataclass(frozen=True, slots=True)
class RangeQuery:
    """`SELECT keys, aggregates FROM scans WHERE predicates GROUP BY keys`, in terms of the scans' columns."""

    scans: tuple[Scan, ...]
    predicates: tuple[Expression, ...]
    items: tuple[AnswerColumn, ...]
    keys: tuple[Expression, ...]

    @property
    def aggregates(self) -> list[int]:
        """The places of the aggregates among the columns of the answer."""
        return [place for place, item in enumerate(self.items) if item.call is not None]


@dataclass(frozen=True, slots=True)
class _Flat:
    scans: tuple[Scan, ...]
    predicates: tuple[Expression, ...]
    values: Mapping[str, Expression]


def range_query(query: BoundQuery) -> RangeQuery:
    """The parts of a bound query, or `Unsupported` with the reason."""
    plan = query.plan
    while isinstance(plan, Sort):
        plan = plan.child
    if isinstance(plan, Limit):
        raise Unsupported("a range of a query with LIMIT: which groups come first is not known; leave it out")
    outputs = None
    if isinstance(plan, Project):
        outputs, plan = plan.outputs, plan.child
    if isinstance(plan, Filter) and isinstance(plan.child, GroupBy):
        raise Unsupported("a range of a query with HAVING: which groups pass is not known; leave it out and look at the bounds")
    if not isinstance(plan, GroupBy):
        raise Unsupported(
            "only aggregates have a range: SUM, COUNT, AVG, MIN and MAX, with WHERE and GROUP BY, over tables and inner joins"
        )
    if plan.sets is not None:
        raise Unsupported("ranges with ROLLUP, CUBE or GROUPING SETS; ask for each grouping by itself")
    flat = _flatten(plan.child)
    below = dict(flat.values)
    made = {output.name: _item(output.expression, below) for output in plan.aggregates}
    made |= {key.name: AnswerColumn(substitute(key.expression, below), None) for key in plan.keys}
    shown = list(plan.columns) if outputs is None else [output.expression for output in outputs]
    items = []
    for expression in shown:
        if not isinstance(expression, Column) or expression.name not in made:
            raise Unsupported("an expression over aggregates has no range of its own; select the aggregates themselves")
        items.append(made[expression.name])
    return RangeQuery(flat.scans, flat.predicates, tuple(items), tuple(substitute(key.expression, below) for key in plan.keys))


def _item(call: Expression, below: dict[str, Expression]) -> AnswerColumn:
    if not isinstance(call, AggregateCall):
        raise Unsupported("a range of something that is no aggregate")
    if call.function not in FUNCTIONS:
        raise Unsupported(f"a range of {call.function}(); SUM, COUNT, AVG, MIN and MAX have one")
    if call.distinct and call.function not in ("min", "max"):
        raise Unsupported(f"a range of {call.function}(DISTINCT ...)")
    if len(call.arguments) > 1:
        raise Unsupported(f"a range of {call.function}() of several columns")
    replaced = substitute(call, below)
    if has_subquery(replaced) or not isinstance(replaced, AggregateCall):
        raise Unsupported("a range of an aggregate with a subquery")
    return AnswerColumn(None, replaced)


def _flatten(plan: Plan) -> _Flat:
    match plan:
        case Scan():
            return _Flat((plan,), (), {column.name: column for column in plan.columns})
        case Filter():
            below = _flatten(plan.child)
            return _Flat(below.scans, (*below.predicates, *_above(plan.predicate, below)), below.values)
        case Project():
            below = _flatten(plan.child)
            values = {output.name: substitute(output.expression, dict(below.values)) for output in plan.outputs}
            return _Flat(below.scans, below.predicates, values)
        case Join(kind="inner" | "cross"):
            left, right = _flatten(plan.left), _flatten(plan.right)
            both = _Flat((*left.scans, *right.scans), (*left.predicates, *right.predicates), {**left.values, **right.values})
            condition = () if plan.condition is None else _above(plan.condition, both)
            return _Flat(both.scans, (*both.predicates, *condition), both.values)
        case Join():
            raise Unsupported(f"a range over a {plan.kind} join; inner joins have one")
    raise Unsupported(f"a range over {type(plan).__name__} below the aggregate; tables, WHERE and inner joins have one")


def _above(predicate: Expression, below: _Flat) -> tuple[Expression, ...]:
    if has_subquery(predicate):
        raise Unsupported("a range of a query with a subquery in its condition")
    return conjuncts(substitute(predicate, dict(below.values)))


def belongs_to(expression: Expression, scan: Scan) -> bool:
    """Whether the expression reads columns of this scan only."""
    return columns_of(expression) <= scan.names
