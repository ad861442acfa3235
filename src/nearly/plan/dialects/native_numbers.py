"""Arithmetic and mathematics in DuckDB, equal to Spark's ANSI results.

Decimals stay in DuckDB's own decimal operators for `+ - *`, with the scale Spark gives them; only their width may
differ until the outermost cast. Division is done exactly in 128-bit integers.
"""

from __future__ import annotations

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.dialects import sql
from nearly.plan.dialects.native_build import Builder, as_huge, cast, guard, literal_value, power_of_ten, renamed
from nearly.plan.dialects.sql import Node
from nearly.plan.expressions import Call, Expression, Literal
from nearly.plan.types import (
    DOUBLE,
    FRACTIONS,
    INTEGERS,
    LONG,
    MAX_PRECISION,
    STRING,
    DataType,
    Decimal,
    IntervalType,
    decimal,
    decimal_for,
)

FAST_DIGITS = 18
"""Decimals of so many digits are 64-bit integers in DuckDB."""

ROOMY_SCALE = 8
"""Up to this scale a product may stay in DuckDB's fast 18 digits: ten of them are whole, and it raises beyond."""

DIVISION_BY_ZERO = "division by zero"
MAX_ROUNDED_DIGITS = 18


def _scale(type_: DataType) -> int:
    return type_.scale if isinstance(type_, Decimal) else 0


def _decimal_result(call: Call, node: Node, scale: int) -> Node:
    """Round to the scale Spark keeps when the natural one does not fit in 38 digits."""
    return node if scale == _scale(call.type) else cast(node, call.type)


def _sum(kind: type[Node]) -> Builder:
    def build(call: Call, arguments: list[Node]) -> Node:
        if isinstance(call.type, IntervalType):
            raise Unsupported("a difference of moments is not in the native kernel's verified set; use datediff")
        if not isinstance(call.type, Decimal):
            return sql.binary(kind, *arguments)
        scale = max(_scale(each.type) for each in call.arguments)
        return _decimal_result(call, sql.binary(kind, *arguments), scale)

    return build


def _product(call: Call, arguments: list[Node]) -> Node:
    if not isinstance(call.type, Decimal):
        return sql.binary(exp.Mul, *arguments)
    scale = sum(_scale(each.type) for each in call.arguments)
    if scale > MAX_PRECISION:
        raise Unsupported("the native kernel does not multiply decimals with more than 38 digits after the point")
    left, right = arguments
    if scale > ROOMY_SCALE:
        left = cast(left, decimal(MAX_PRECISION, _scale(call.arguments[0].type)))
    return _decimal_result(call, sql.binary(exp.Mul, left, right), scale)


def _quotient(call: Call, arguments: list[Node]) -> Node:
    if isinstance(call.type, Decimal):
        return _divide_decimals(call, *arguments)
    dividend, divisor = arguments
    return _unless_zero(call.arguments[1], divisor, sql.binary(exp.Div, dividend, divisor.copy()))


def _unless_zero(typed: Expression, divisor: Node, value: Node) -> Node:
    """Floating point division by zero is an error in ANSI mode; a literal other than zero needs no test."""
    if isinstance(typed, Literal) and typed.value:
        return value
    return guard(sql.binary(exp.EQ, divisor, sql.integer(0)), value, DIVISION_BY_ZERO)


def _divide_decimals(call: Call, dividend: Node, divisor: Node) -> Node:
    """n / d rounded HALF_UP is (2n + sign(n)|d|) / 2d truncated: one 128-bit division. Beyond 128 bits it raises."""
    dividend_type, divisor_type = (decimal_for(each.type) for each in call.arguments)
    result = decimal_for(call.type)
    shift = result.scale + divisor_type.scale
    extra = max(0, dividend_type.scale - shift)
    n = scaled_integer(dividend, dividend_type, shift + extra)
    d = scaled_integer(divisor, divisor_type, divisor_type.scale + extra)
    size = sql.function("abs", d)
    half = sql.case([sql.binary(exp.LT, n, sql.integer(0)), exp.Neg(this=size)], size.copy())
    doubled = sql.binary(exp.Add, sql.binary(exp.Mul, sql.integer(2), n.copy()), half)
    quotient = sql.binary(exp.IntDiv, doubled, sql.binary(exp.Mul, sql.integer(2), d.copy()))
    return unscaled(quotient, result.scale, result)


def scaled_integer(node: Node, type_: Decimal, shift: int) -> Node:
    """node * 10**shift as a 128-bit integer, for shift >= scale.

    A decimal times a power of ten keeps its scale, so it needs room for that many digits more: in 64 bits for short
    decimals, in 128 bits for others. Without that room the digits are taken from the number's text, which is slower.
    """
    missing = as_huge(sql.text(str(10 ** (shift - type_.scale))))
    if type_.precision + type_.scale <= FAST_DIGITS:
        scaled = sql.binary(exp.Mul, cast(node, decimal(FAST_DIGITS, type_.scale)), power_of_ten(type_.scale))
        return sql.binary(exp.Mul, as_huge(cast(scaled, LONG)), missing)
    if type_.precision + shift <= MAX_PRECISION:
        wide = cast(node, decimal(MAX_PRECISION, type_.scale))
        return as_huge(sql.binary(exp.Mul, wide, power_of_ten(shift)) if shift else wide)
    digits = sql.function("replace", cast(cast(node, type_), STRING), sql.text("."), sql.text(""))
    return sql.binary(exp.Mul, as_huge(digits), missing)


def unscaled(node: Node, scale: int, result: Decimal) -> Node:
    """node / 10**scale rounded HALF_UP into the result type."""
    whole = cast(node, decimal(MAX_PRECISION, 0))
    return cast(sql.binary(exp.Mul, whole, power_of_ten(-scale)), result)


def _whole_quotient(call: Call, arguments: list[Node]) -> Node:
    """`div` truncates toward zero in both engines; decimals are brought to one scale first."""
    scale = max(_scale(each.type) for each in call.arguments)
    if not all(isinstance(each.type, Decimal) for each in call.arguments):
        return sql.binary(exp.IntDiv, *arguments)
    pairs = zip(arguments, call.arguments, strict=True)
    left, right = (scaled_integer(node, decimal_for(typed.type), scale) for node, typed in pairs)
    return cast(sql.binary(exp.IntDiv, left, right), LONG)


def _remainder(call: Call, arguments: list[Node]) -> Node:
    """Takes the dividend's sign in both engines; decimals that do not fit together go through integers."""
    types = [each.type for each in call.arguments]
    value = sql.binary(exp.Mod, *arguments)
    if call.type in FRACTIONS:
        return _unless_zero(call.arguments[1], arguments[1].copy(), value)
    scale = max(_scale(type_) for type_ in types)
    if all(type_.whole_digits + scale <= MAX_PRECISION for type_ in types if isinstance(type_, Decimal)):
        return value
    parts = zip(arguments, types, strict=True)
    left, right = (scaled_integer(node, decimal_for(type_), scale) for node, type_ in parts)
    return unscaled(sql.binary(exp.Mod, left, right), scale, decimal_for(call.type))


def _positive_remainder(call: Call, arguments: list[Node]) -> Node:
    """`pmod`: a negative remainder r becomes (r + n) % n."""
    remainder = _remainder(call, arguments)
    divisor = arguments[1].copy()
    moved = sql.binary(exp.Mod, sql.binary(exp.Add, remainder.copy(), divisor), divisor.copy())
    return sql.case([sql.binary(exp.LT, remainder, sql.integer(0)), moved], remainder.copy())


def _negate(call: Call, arguments: list[Node]) -> Node:
    if call.type in INTEGERS:
        return sql.binary(exp.Sub, cast(sql.integer(0), call.type), arguments[0])
    return exp.Neg(this=sql.operand(arguments[0]))


def _to_whole(name: str) -> Builder:
    """`ceil` and `floor` of a double give a bigint; the cast raises where the value is out of range."""
    return lambda call, arguments: cast(sql.function(name, *arguments), call.type)


def _round(call: Call, arguments: list[Node]) -> Node:
    """HALF_UP; a double is rounded in its shortest decimal form, as Java writes it."""
    digits = int(literal_value(call, 1))
    operand = call.arguments[0].type
    if operand in FRACTIONS:
        return _round_double(call, arguments[0], digits)
    if isinstance(operand, Decimal) and digits >= 0:
        return cast(arguments[0], call.type)
    if operand in INTEGERS and digits >= 0:
        return arguments[0]
    return _round_whole(call, arguments[0], -digits)


def _round_double(call: Call, node: Node, digits: int) -> Node:
    """A double of 2**53 or more has no fraction; NaN and the infinities stay as they are."""
    if call.type != DOUBLE or not 0 <= digits <= MAX_ROUNDED_DIGITS:
        raise Unsupported(f"round over {call.type} to {digits} digits is not in the native kernel's verified set")
    large = sql.binary(exp.GTE, sql.function("abs", node), cast(sql.text(str(2**53)), DOUBLE))
    rounded = cast(cast(node.copy(), STRING), decimal(MAX_PRECISION, digits))
    return sql.case([large, node.copy()], cast(rounded, DOUBLE))


def _round_whole(call: Call, node: Node, zeros: int) -> Node:
    """Rounding to tens, hundreds and so on: in decimals, so that the way back raises when it does not fit."""
    operand = call.arguments[0].type
    wide = cast(node, decimal(MAX_PRECISION, _scale(operand)))
    scale = _scale(operand) + zeros
    if scale >= MAX_PRECISION:
        raise Unsupported(f"rounding to {zeros} zeros is not in the native kernel's verified set")
    moved = cast(sql.binary(exp.Mul, wide, power_of_ten(-zeros)), decimal(MAX_PRECISION, 0))
    return cast(sql.binary(exp.Mul, moved, power_of_ten(zeros)), call.type)


def _is_nan(call: Call, arguments: list[Node]) -> Node:
    """False for null."""
    return sql.function("coalesce", sql.function("isnan", *arguments), exp.false())


def _angle(call: Call, arguments: list[Node]) -> Node:
    """Spark adds zero to both sides first, which turns -0.0 into 0.0."""
    return sql.function("atan2", *(sql.binary(exp.Add, each, sql.integer(0)) for each in arguments))


def _positive_only(name: str) -> Builder:
    """Logarithms are null for zero and below in Spark, errors in DuckDB."""

    def build(call: Call, arguments: list[Node]) -> Node:
        (value,) = arguments
        return sql.case([sql.binary(exp.GT, value, sql.integer(0)), sql.function(name, value.copy())], cast(exp.Null(), call.type))

    return build


def _square_root(call: Call, arguments: list[Node]) -> Node:
    """NaN below zero, as in Java; DuckDB would raise."""
    (value,) = arguments
    nan = cast(sql.text("NaN"), call.type)
    return sql.case([sql.binary(exp.LT, value, sql.integer(0)), nan], sql.function("sqrt", value.copy()))


def _sign(call: Call, arguments: list[Node]) -> Node:
    """DuckDB's sign is a byte that loses NaN and the sign of zero."""
    (value,) = arguments
    odd = sql.binary(exp.Or, sql.function("isnan", value), sql.binary(exp.EQ, value.copy(), sql.integer(0)))
    return sql.case([odd, value.copy()], cast(sql.function("sign", value.copy()), call.type))


LOWERINGS: dict[str, Builder] = {
    "+": _sum(exp.Add),
    "-": _sum(exp.Sub),
    "*": _product,
    "/": _quotient,
    "div": _whole_quotient,
    "%": _remainder,
    "pmod": _positive_remainder,
    "neg": _negate,
    "abs": renamed("abs"),
    "ceil": _to_whole("ceil"),
    "floor": _to_whole("floor"),
    "round": _round,
    "sqrt": _square_root,
    "exp": renamed("exp"),
    "ln": _positive_only("ln"),
    "log10": _positive_only("log10"),
    "log2": _positive_only("log2"),
    "power": renamed("pow"),
    "sign": _sign,
    "isnan": _is_nan,
    "cbrt": renamed("cbrt"),
    "degrees": renamed("degrees"),
    "radians": renamed("radians"),
    "atan": renamed("atan"),
    "atan2": _angle,
}
