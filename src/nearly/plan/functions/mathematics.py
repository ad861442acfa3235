"""Functions over numbers."""

from __future__ import annotations

from nearly.errors import Unsupported
from nearly.plan.expressions import Call, Expression, Literal
from nearly.plan.functions.casting import coerce
from nearly.plan.functions.coercion import numeric
from nearly.plan.functions.signatures import Arguments, Function, fixed, refuse
from nearly.plan.types import BOOLEAN, DOUBLE, FRACTIONS, INT, INTEGERS, LONG, STRING, Decimal, bounded_decimal


def _keep_type(name: str, arguments: Arguments) -> Expression:
    operand = numeric(name, arguments[0])
    return Call(operand.type, name, (operand,))


def _to_whole(name: str, arguments: Arguments) -> Expression:
    """`ceil` and `floor`: decimals stay decimals without a fraction, everything else becomes bigint."""
    if len(arguments) > 1:
        raise Unsupported(f"{name!r} with a scale is not in nearly's verified set; use round, or {name} of a multiple")
    operand = numeric(name, arguments[0])
    if isinstance(operand.type, Decimal):
        whole = operand.type.whole_digits + (1 if operand.type.scale else 0)
        return Call(bounded_decimal(whole, 0), name, (operand,))
    if operand.type in INTEGERS:
        return coerce(operand, LONG)
    return Call(LONG, name, (coerce(operand, DOUBLE),))


def _round(name: str, arguments: Arguments) -> Expression:
    """HALF_UP to a literal number of digits; the decimal type shrinks by Spark's rule."""
    operand = numeric(name, arguments[0])
    digits = arguments[1] if len(arguments) > 1 else Literal(INT, 0)
    if not isinstance(digits, Literal) or not isinstance(digits.value, int) or digits.type == BOOLEAN or abs(digits.value) > 18:
        raise refuse(name, arguments)
    count = digits.value
    type_ = operand.type
    if isinstance(type_, Decimal):
        scale = min(type_.scale, max(count, 0))
        type_ = bounded_decimal(max(type_.whole_digits + 1, -count + 1) + scale, scale)
    return Call(type_, name, (operand, Literal(INT, count)))


def _logarithm(name: str, arguments: Arguments) -> Expression:
    """`log(x)` is the natural one, `log(base, x)` any other."""
    values = tuple(coerce(numeric(name, each), DOUBLE) for each in arguments)
    return Call(DOUBLE, "ln" if len(values) == 1 else "log", values)


def _is_nan(name: str, arguments: Arguments) -> Expression:
    operand = arguments[0]
    if operand.type not in FRACTIONS:
        operand = coerce(numeric(name, operand) if operand.type != STRING else operand, DOUBLE)
    return Call(BOOLEAN, name, (operand,))


FUNCTIONS = {
    "abs": Function(1, 1, _keep_type),
    **dict.fromkeys(("ceil", "floor"), Function(1, 2, _to_whole)),
    "round": Function(1, 2, _round),
    "log": Function(1, 2, _logarithm),
    "isnan": Function(1, 1, _is_nan),
    **dict.fromkeys(("power", "atan2"), fixed(DOUBLE, DOUBLE, DOUBLE)),
    **{
        name: fixed(DOUBLE, DOUBLE)
        for name in (
            "sqrt", "exp", "ln", "log10", "log2", "sign", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan",
            "degrees", "radians",
        )
    },
}  # fmt: skip
