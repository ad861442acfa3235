"""Implicit casts by Spark's ANSI rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from nearly.errors import Unsupported
from nearly.plan import types
from nearly.plan.expressions import Expression, Literal
from nearly.plan.functions.casting import coerce
from nearly.plan.types import DATETIMES, INTEGERS, NULL, STRING, DataType, Decimal, is_numeric

_ANY: DataType | None = NULL
"""The type that has a common one with every type."""


def implicit(name: str, argument: Expression, wanted: DataType) -> Expression:
    """The argument as the type a parameter has; Unsupported when ANSI rules give no implicit cast."""
    given = argument.type
    if given == wanted:
        return argument
    numeric = is_numeric(given) and is_numeric(wanted)
    other = wanted if given == STRING else given
    text = STRING in (given, wanted) and (is_numeric(other) or other in (*DATETIMES, types.BOOLEAN))
    if given == NULL or numeric or text or (given in DATETIMES and wanted in DATETIMES):
        return coerce(argument, wanted)
    raise Unsupported(f"function {name!r} takes {wanted}, not {given}: not in nearly's verified set")


def common(name: str, arguments: Sequence[Expression], promote_strings: bool = True) -> tuple[Expression, ...]:
    """All arguments cast to their common type, folded from left to right as Spark does."""
    given = {each.type for each in arguments} - {NULL}
    found = reduce(lambda left, right: left and types.common_type(left, right), (each.type for each in arguments), _ANY)
    if found is None or (STRING in given and len(given) > 1 and not promote_strings):
        shown = ", ".join(str(each.type) for each in arguments)
        raise Unsupported(f"{name!r} over ({shown}): nearly knows no common type for these")
    return tuple(coerce(each, found) for each in arguments)


def operands(name: str, left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Both sides of a binary operator in a common type, except that two decimals keep their own.

    An integer literal beside a decimal becomes the smallest decimal that holds it: `1 - discount` over decimal(15,2) is
    decimal(1,0) - decimal(15,2), not decimal(10,0) - decimal(15,2).
    """
    if isinstance(left.type, Decimal) and isinstance(right.type, Decimal):
        return left, right
    if isinstance(left.type, Decimal) and right.type in INTEGERS:
        return left, as_decimal(right)
    if isinstance(right.type, Decimal) and left.type in INTEGERS:
        return as_decimal(left), right
    pair = common(name, (left, right))
    return pair[0], pair[1]


def as_decimal(operand: Expression) -> Expression:
    """An integer operand as a decimal: the smallest one for a literal, the one that holds its type otherwise."""
    if isinstance(operand, Literal) and operand.value is not None:
        return coerce(operand, types.decimal(len(str(abs(operand.value))), 0))
    return coerce(operand, types.decimal_for(operand.type))


def numeric(name: str, argument: Expression) -> Expression:
    """The argument of a function over numbers: strings and nulls count as double."""
    if argument.type in (STRING, NULL):
        return coerce(argument, types.DOUBLE)
    if not is_numeric(argument.type):
        raise Unsupported(f"function {name!r} over {argument.type} is not in nearly's verified set")
    return argument
