"""`+ - * / div %` and unary minus, with Spark's result types."""

from __future__ import annotations

from collections.abc import Callable

from nearly.plan import types
from nearly.plan.expressions import Call, Expression, Literal
from nearly.plan.functions import datetimes
from nearly.plan.functions.casting import LIMITS, coerce
from nearly.plan.functions.coercion import numeric, operands
from nearly.plan.functions.signatures import Arguments, Function, refuse
from nearly.plan.types import DATETIMES, DOUBLE, INTEGERS, LONG, NULL, STRING, DataType, Decimal, IntervalType, is_numeric

MIN_DIVISION_SCALE = 6


def _sum_type(left: Decimal, right: Decimal) -> DataType:
    scale = max(left.scale, right.scale)
    return types.adjusted_decimal(max(left.whole_digits, right.whole_digits) + scale + 1, scale)


def _product_type(left: Decimal, right: Decimal) -> DataType:
    return types.adjusted_decimal(left.precision + right.precision + 1, left.scale + right.scale)


def _quotient_type(left: Decimal, right: Decimal) -> DataType:
    scale = max(MIN_DIVISION_SCALE, left.scale + right.precision + 1)
    return types.adjusted_decimal(left.whole_digits + right.scale + scale, scale)


def _remainder_type(left: Decimal, right: Decimal) -> DataType:
    scale = max(left.scale, right.scale)
    return types.adjusted_decimal(min(left.whole_digits, right.whole_digits) + scale, scale)


def _pair(name: str, arguments: Arguments) -> tuple[Expression, Expression]:
    """Both operands as numbers that fit together."""
    types = {each.type for each in arguments}
    if not all(is_numeric(type_) or type_ in (STRING, NULL) for type_ in types) or types <= {STRING, NULL}:
        raise refuse(name, arguments)
    left, right = operands(name, *arguments)
    if left.type == NULL:
        return coerce(left, right.type), right
    return (left, coerce(right, left.type)) if right.type == NULL else (left, right)


def _arithmetic(decimal_type: Callable[[Decimal, Decimal], DataType]) -> Callable[[str, Arguments], Expression]:
    """The rule of an operator that stays in the operands' type; `decimal_type` gives the result over two decimals."""

    def rule(name: str, arguments: Arguments) -> Expression:
        left, right = _pair(name, arguments)
        if isinstance(left.type, Decimal) and isinstance(right.type, Decimal):
            return Call(decimal_type(left.type, right.type), name, (left, right))
        return Call(left.type, name, (left, right))

    return rule


def _add_or_subtract(name: str, arguments: Arguments) -> Expression:
    if any(each.type in DATETIMES or isinstance(each.type, IntervalType) for each in arguments):
        return datetimes.add_or_subtract(name, arguments)
    return _arithmetic(_sum_type)(name, arguments)


def _divide(name: str, arguments: Arguments) -> Expression:
    """Decimals divide as decimals; everything else as double."""
    left, right = _pair(name, arguments)
    if isinstance(left.type, Decimal) and isinstance(right.type, Decimal):
        return Call(_quotient_type(left.type, right.type), name, (left, right))
    return Call(DOUBLE, name, (coerce(left, DOUBLE), coerce(right, DOUBLE)))


def _divide_whole(name: str, arguments: Arguments) -> Expression:
    """`div`: the quotient's whole part as bigint, over integers or decimals."""
    left, right = _pair(name, arguments)
    if isinstance(left.type, Decimal) and isinstance(right.type, Decimal):
        return Call(LONG, name, (left, right))
    if left.type not in INTEGERS:
        raise refuse(name, arguments)
    return Call(LONG, name, (coerce(left, LONG), coerce(right, LONG)))


def _negate(name: str, arguments: Arguments) -> Expression:
    """A negated literal is a literal, as in Spark's grammar."""
    operand = _as_number(name, arguments)
    if isinstance(operand, Literal) and operand.value is not None:
        folded = _negated(operand)
        if folded is not None:
            return folded
    return Call(operand.type, name, (operand,))


def _as_number(name: str, arguments: Arguments) -> Expression:
    """`+x` is the number that it is, or that a text says."""
    (argument,) = arguments
    return argument if isinstance(argument.type, IntervalType) else numeric(name, argument)


def _negated(operand: Literal) -> Literal | None:
    if isinstance(operand.type, Decimal):
        value = operand.value
        return Literal(operand.type, value if value == 0 else value.copy_negate())
    if operand.type in LIMITS and operand.value == -LIMITS[operand.type]:
        return None
    return Literal(operand.type, -operand.value)


FUNCTIONS = {
    **dict.fromkeys(("+", "-"), Function(2, 2, _add_or_subtract)),
    "*": Function(2, 2, _arithmetic(_product_type)),
    "/": Function(2, 2, _divide),
    "div": Function(2, 2, _divide_whole),
    **dict.fromkeys(("%", "pmod"), Function(2, 2, _arithmetic(_remainder_type))),
    "neg": Function(1, 1, _negate),
    "positive": Function(1, 1, _as_number),
}
