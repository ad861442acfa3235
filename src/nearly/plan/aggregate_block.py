"""The form of most questions: aggregates over tables, with conditions and groups, in terms of the tables' own columns.

Whoever answers such questions in another way than by running the plan reads them here, and refuses the rest with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nearly.errors import Unsupported
from nearly.plan.expressions import Expression, conjuncts, has_subquery, substitute
from nearly.plan.nodes import Filter, GroupBy, Join, Limit, Output, Plan, Project, Scan, Sort, passed


@dataclass(frozen=True, slots=True)
class AggregateBlock:
    """`SELECT outputs FROM scans WHERE predicates GROUP BY keys ORDER BY ...`.

    Keys, aggregates and predicates read columns of the scans; outputs read those that keys and aggregates make.
    """

    scans: tuple[Scan, ...]
    predicates: tuple[Expression, ...]
    keys: tuple[Output, ...]
    aggregates: tuple[Output, ...]
    outputs: tuple[Output, ...]
    order: Sort | None


def aggregate_block(plan: Plan) -> AggregateBlock:
    """The parts of a plan of this form; `Unsupported` with the reason for any other."""
    order = plan if isinstance(plan, Sort) else None
    while isinstance(plan, Sort):
        plan = plan.child
    if isinstance(plan, Limit):
        raise Unsupported("LIMIT: which groups come first is not known; leave it out")
    outputs = None
    if isinstance(plan, Project):
        outputs, plan = plan.outputs, plan.child
    if isinstance(plan, Filter) and isinstance(plan.child, GroupBy):
        raise Unsupported("HAVING: which groups pass is not known; leave it out and look at the bounds")
    if not isinstance(plan, GroupBy):
        raise Unsupported("only aggregates are known, with WHERE and GROUP BY, over tables and inner joins")
    if plan.sets is not None:
        raise Unsupported("ROLLUP, CUBE or GROUPING SETS; ask for each grouping by itself")
    below = flat_rows(plan.child)
    return AggregateBlock(
        below.scans,
        below.predicates,
        tuple(Output(key.name, _in_terms_of(key.expression, below)) for key in plan.keys),
        tuple(Output(each.name, _in_terms_of(each.expression, below)) for each in plan.aggregates),
        passed(plan.columns) if outputs is None else outputs,
        order,
    )


@dataclass(frozen=True, slots=True)
class FlatRows:
    """Tables joined and filtered; `values` are the columns that come out, in terms of those of the scans."""

    scans: tuple[Scan, ...]
    predicates: tuple[Expression, ...]
    values: Mapping[str, Expression]


def flat_rows(plan: Plan) -> FlatRows:
    """The rows of a plan as those of tables, joined and filtered; `Unsupported` where there is anything else."""
    match plan:
        case Scan():
            return FlatRows((plan,), (), {column.name: column for column in plan.columns})
        case Filter():
            below = flat_rows(plan.child)
            return FlatRows(below.scans, (*below.predicates, *_parts(plan.predicate, below)), below.values)
        case Project():
            below = flat_rows(plan.child)
            values = {output.name: substitute(output.expression, dict(below.values)) for output in plan.outputs}
            return FlatRows(below.scans, below.predicates, values)
        case Join(kind="inner" | "cross"):
            left, right = flat_rows(plan.left), flat_rows(plan.right)
            both = FlatRows((*left.scans, *right.scans), (*left.predicates, *right.predicates), {**left.values, **right.values})
            condition = () if plan.condition is None else _parts(plan.condition, both)
            return FlatRows(both.scans, (*both.predicates, *condition), both.values)
        case Join():
            raise Unsupported(f"a {plan.kind} join; inner joins are known")
    raise Unsupported(f"{type(plan).__name__} below the aggregate; tables, WHERE and inner joins are known")


def _parts(predicate: Expression, below: FlatRows) -> tuple[Expression, ...]:
    return conjuncts(_in_terms_of(predicate, below))


def _in_terms_of(expression: Expression, below: FlatRows) -> Expression:
    replaced = substitute(expression, dict(below.values))
    if has_subquery(replaced):
        raise Unsupported("a subquery in a condition or an aggregate")
    return replaced
