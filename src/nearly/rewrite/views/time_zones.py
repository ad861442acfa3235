"""Whether a query means something else in another time zone: it reads clocks off moments, or moments off clocks.

Moments themselves, compared, counted or passed on, are the same everywhere.
"""

from __future__ import annotations

from nearly.plan.expressions import AggregateCall, Call, Column, Expression, WindowCall, children, walk
from nearly.plan.nodes import Plan
from nearly.plan.types import TIMESTAMP

SAME_EVERYWHERE = frozenset({
    "=", "<>", "<=>", "<", "<=", ">", ">=", "in", "isnull", "isnotnull", "and", "or", "not", "case", "if", "coalesce", "nullif",
    "count", "count_if", "min", "max", "rank", "dense_rank", "row_number", "lag", "lead", "first_value", "last_value", "nth_value",
})  # fmt: skip
"""Functions that treat moments as values without asking for the time of day."""


def hangs_on_zone(plan: Plan) -> bool:
    """Whether some expression of a plan gives other values in another time zone; where that is not known, it does."""
    return any(_is_local(part) for node in plan.walk() for top in node.expressions() for part in walk(top))


def _is_local(expression: Expression) -> bool:
    match expression:
        case Column() | WindowCall():
            return False
        case Call() | AggregateCall() if expression.function in SAME_EVERYWHERE:
            return False
    return expression.type == TIMESTAMP or any(each.type == TIMESTAMP for each in children(expression))
