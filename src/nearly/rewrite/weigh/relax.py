"""Expressions over estimates: where an exact sum is a decimal or an integer, its estimate is a double.

An estimate of a count is no whole number, and rounding it before a division would bias the ratio; so numbers that are estimated are
doubles all the way, and only the finished answer gets the types of the exact one. A division by an estimate that is still zero is
null, not an error: the error, if it is one, is the exact answer's to raise.
"""

from __future__ import annotations

from dataclasses import replace

from nearly.errors import Unsupported
from nearly.plan.expressions import AggregateCall, Call, Cast, Column, Expression, SortKey, UserCall, WindowCall
from nearly.plan.functions import aggregate, call, cast
from nearly.plan.functions.casting import coerce
from nearly.plan.nodes import Output
from nearly.plan.types import DOUBLE, INTEGERS, is_numeric

_INTERNAL = frozenset({"average_of", "raise_error"})


def relaxed(expression: Expression, doubles: frozenset[str]) -> Expression:
    """The expression when the columns in `doubles` are doubles, typed anew."""
    match expression:
        case Column():
            return replace(expression, type=DOUBLE) if expression.name in doubles else expression
        case Cast():
            operand = relaxed(expression.operand, doubles)
            if operand == expression.operand:
                return expression
            return operand if is_numeric(expression.type) else replace(expression, operand=operand)
        case Call():
            arguments = tuple(relaxed(each, doubles) for each in expression.arguments)
            return expression if arguments == expression.arguments else _call(expression, arguments)
        case UserCall():
            arguments = tuple(relaxed_to(each, doubles) for each in expression.arguments)
            return replace(expression, arguments=arguments)
        case AggregateCall():
            arguments = tuple(relaxed(each, doubles) for each in expression.arguments)
            where = None if expression.where is None else relaxed(expression.where, doubles)
            if arguments == expression.arguments:
                return replace(expression, where=where)
            return aggregate(expression.function, arguments, expression.distinct, where)
        case WindowCall():
            inner = relaxed(expression.call, doubles)
            return WindowCall(
                inner.type,
                inner,
                tuple(relaxed(each, doubles) for each in expression.partition),
                relaxed_keys(expression.order, doubles),
                expression.frame,
            )
    return expression


def relaxed_to(expression: Expression, doubles: frozenset[str]) -> Expression:
    """The relaxed expression in its own type again, as a user's function expects it; whole numbers are rounded."""
    found = relaxed(expression, doubles)
    if found.type == expression.type or not is_numeric(expression.type):
        return found
    return cast(call("round", (found,)) if expression.type in INTEGERS else found, expression.type)


def relaxed_keys(keys: tuple[SortKey, ...], doubles: frozenset[str]) -> tuple[SortKey, ...]:
    return tuple(replace(key, expression=relaxed(key.expression, doubles)) for key in keys)


def _call(expression: Call, arguments: tuple[Expression, ...]) -> Expression:
    if expression.function in ("/", "average_of") and any(each.type == DOUBLE for each in arguments):
        return Call(DOUBLE, "average_of", tuple(coerce(each, DOUBLE) for each in arguments))
    if expression.function in _INTERNAL:
        return replace(expression, arguments=arguments)
    if expression.function in ("div", "%"):
        raise Unsupported(f"{expression.function!r} of an estimate has no meaning before it is exact")
    return call(expression.function, arguments)


def became_double(new: Output, old: Output) -> bool:
    return new.expression.type == DOUBLE and old.expression.type != DOUBLE and is_numeric(old.expression.type)
