"""Which expressions can never be null, from what the data is known to hold and from how rows are made."""

from __future__ import annotations

from nearly.plan.expressions import AggregateCall, Call, Cast, Column, Expression, Literal, conjuncts
from nearly.plan.nodes import Filter, GroupBy, Join, Plan, Project, Scan, SetOperation, Values
from nearly.plan.properties import after_join

_STRICT = frozenset({"+", "-", "*", "neg", "=", "<>", "<", "<=", ">", ">=", "and", "or", "not"})
"""Functions that are null only when an argument is (errors apart)."""


def never_null(expression: Expression, plan: Plan) -> bool:
    """Whether the expression is known to be non-null on every row of the plan."""
    return _never_null(expression, non_null_columns(plan))


def _never_null(expression: Expression, safe: frozenset[str]) -> bool:
    match expression:
        case Literal():
            return expression.value is not None
        case Column():
            return expression.name in safe
        case Cast(safe=False):
            return _never_null(expression.operand, safe)
        case Call() if expression.function in _STRICT:
            return all(_never_null(argument, safe) for argument in expression.arguments)
        case Call(function="isnull" | "isnotnull"):
            return True
        case Call(function="coalesce"):
            return any(_never_null(argument, safe) for argument in expression.arguments)
        case AggregateCall(function="count"):
            return True
    return False


def non_null_columns(plan: Plan) -> frozenset[str]:
    """Names of the plan's columns that hold no null."""
    match plan:
        case Scan():
            return frozenset(field.name for field in plan.fields if not field.nullable)
        case Values():
            return frozenset(
                column.name
                for place, column in enumerate(plan.given)
                if all(_never_null(row[place], frozenset()) for row in plan.rows)
            )
        case Filter():
            return non_null_columns(plan.child) | _required(plan.predicate)
        case Project():
            safe = non_null_columns(plan.child)
            return frozenset(output.name for output in plan.outputs if _never_null(output.expression, safe))
        case Join():
            required = _required(plan.condition) if plan.kind == "inner" and plan.condition else frozenset()
            return after_join(plan, non_null_columns(plan.left), non_null_columns(plan.right)) | required
        case GroupBy():
            safe = non_null_columns(plan.child) if plan.sets is None else frozenset()
            outputs = (*plan.keys, *plan.aggregates)
            return frozenset(output.name for output in outputs if _never_null(output.expression, safe))
        case SetOperation(kind="union"):
            sides = [non_null_columns(side) for side in (plan.left, plan.right)]
            trios = zip(plan.given, plan.left.columns, plan.right.columns, strict=True)
            return frozenset(c.name for c, left, right in trios if left.name in sides[0] and right.name in sides[1])
    return non_null_columns(plan.children[0]) if len(plan.children) == 1 else frozenset()


def _required(predicate: Expression) -> frozenset[str]:
    """Columns that a true predicate shows to be non-null."""
    found: set[str] = set()
    for part in conjuncts(predicate):
        if isinstance(part, Call) and part.function in ("=", "<>", "<", "<=", ">", ">=", "isnotnull", "like", "in"):
            tested = part.arguments[:1] if part.function == "in" else part.arguments[:2]
            found |= {argument.name for argument in tested if isinstance(argument, Column)}
    return frozenset(found)
