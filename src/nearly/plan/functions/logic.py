"""Comparisons, truth and nulls."""

from __future__ import annotations

from nearly.plan.expressions import Call, Expression
from nearly.plan.functions.casting import coerce
from nearly.plan.functions.coercion import common, operands
from nearly.plan.functions.signatures import Arguments, Function, fixed, refuse_opaque
from nearly.plan.types import BOOLEAN, Decimal, wider_decimal


def compare(name: str, arguments: Arguments) -> Expression:
    """Both sides in one type: an integer literal beside a decimal is narrowed first, then decimals widen together."""
    refuse_opaque(name, arguments)
    left, right = operands(name, *arguments)
    if isinstance(left.type, Decimal) and isinstance(right.type, Decimal):
        type_ = wider_decimal(left.type, right.type)
        left, right = coerce(left, type_), coerce(right, type_)
    return Call(BOOLEAN, name, (left, right))


def _between(name: str, arguments: Arguments) -> Expression:
    """`x BETWEEN low AND high` is `x >= low AND x <= high`."""
    value, low, high = arguments
    return Call(BOOLEAN, "and", (compare(">=", (value, low)), compare("<=", (value, high))))


def _is_in(name: str, arguments: Arguments) -> Expression:
    refuse_opaque(name, arguments)
    return Call(BOOLEAN, name, common(name, arguments))


FUNCTIONS = {
    **{name: Function(2, 2, compare) for name in ("=", "<=>", "<", ">", "<=", ">=", "<>")},
    **dict.fromkeys(("and", "or"), fixed(BOOLEAN, BOOLEAN, BOOLEAN)),
    "not": fixed(BOOLEAN, BOOLEAN),
    **dict.fromkeys(("isnull", "isnotnull"), Function(1, 1, lambda name, arguments: Call(BOOLEAN, name, arguments))),
    "in": Function(2, None, _is_in),
    "between": Function(3, 3, _between),
}
