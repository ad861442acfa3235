"""Comparisons, truth and nulls."""

from __future__ import annotations

from nearly.plan.expressions import Call, Expression
from nearly.plan.functions.casting import coerce
from nearly.plan.functions.coercion import common, operands
from nearly.plan.functions.signatures import Arguments, Function, fixed, refuse
from nearly.plan.types import BOOLEAN, Decimal, is_simple, wider_decimal


def compare(name: str, arguments: Arguments) -> Expression:
    """Both sides in one type: an integer literal beside a decimal is narrowed first, then decimals widen together."""
    if not all(is_simple(each.type) for each in arguments):
        raise refuse(name, arguments)
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
    if not all(is_simple(each.type) for each in arguments):
        raise refuse(name, arguments)
    return Call(BOOLEAN, name, common(name, arguments))


def _test_null(name: str, arguments: Arguments) -> Expression:
    return Call(BOOLEAN, name, arguments)


FUNCTIONS = {
    **{name: Function(2, 2, compare) for name in ("=", "<=>", "<", ">", "<=", ">=", "<>")},
    "and": fixed(BOOLEAN, BOOLEAN, BOOLEAN),
    "or": fixed(BOOLEAN, BOOLEAN, BOOLEAN),
    "not": fixed(BOOLEAN, BOOLEAN),
    "isnull": Function(1, 1, _test_null),
    "isnotnull": Function(1, 1, _test_null),
    "in": Function(2, None, _is_in),
    "between": Function(3, 3, _between),
}
