"""Arithmetic and mathematics in DuckDB, equal to Spark's ANSI results.

Decimals stay in DuckDB's own decimal operators for `+ - *`, with the scale Spark gives them; only their width may
differ until the outermost cast. Division is done exactly in 128-bit integers.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.dialects import sql
from nearly.plan.dialects.native_build import cast, guarded, literal_value, power_of_ten, renamed, retyped, tree, type_name, written
from nearly.plan.dialects.sql import Builder, Node
from nearly.plan.expressions import Call, Literal
from nearly.plan.types import DOUBLE, FRACTIONS, INTEGERS, MAX_PRECISION, Decimal, IntervalType, decimal, decimal_for, scale_of

FAST_DIGITS = 18
"""Decimals of so many digits are 64-bit integers in DuckDB."""

ROOMY_SCALE = 8
"""Up to this scale a product may stay in DuckDB's fast 18 digits: ten of them are whole, and it raises beyond."""

MAX_ROUNDED_DIGITS = 18


def _decimal_result(call: Call, node: Node, scale: int) -> Node:
    """Round to the scale Spark keeps when the natural one does not fit in 38 digits."""
    return node if scale == scale_of(call.type) else cast(node, call.type)


def _sum(kind: type[Node]) -> Builder:
    def build(call: Call, arguments: list[Node]) -> Node:
        if isinstance(call.type, IntervalType):
            raise Unsupported("a difference of moments is not in the native kernel's verified set; use datediff")
        return _decimal_result(call, sql.binary(kind, *arguments), max(scale_of(each.type) for each in call.arguments))

    return build


def _product(call: Call, arguments: list[Node]) -> Node:
    scale = sum(scale_of(each.type) for each in call.arguments)
    if scale > MAX_PRECISION:
        raise Unsupported("the native kernel does not multiply decimals with more than 38 digits after the point")
    left, right = arguments
    if scale > ROOMY_SCALE:
        left = cast(left, decimal(MAX_PRECISION, scale_of(call.arguments[0].type)))
    return _decimal_result(call, sql.binary(exp.Mul, left, right), scale)


def _quotient(call: Call, arguments: list[Node]) -> Node:
    """Of decimals n / d rounded HALF_UP is (2n + sign(n)|d|) / 2d truncated: one 128-bit division. Beyond 128 bits it raises."""
    a, b = arguments
    if not isinstance(call.type, Decimal):
        return tree(_unless_zero("a / b", call), a=a, b=b)
    dividend, divisor = (decimal_for(each.type) for each in call.arguments)
    shift = call.type.scale + divisor.scale
    extra = max(0, dividend.scale - shift)
    n, d = scaled_integer("a", dividend, shift + extra), scaled_integer("b", divisor, divisor.scale + extra)
    quotient = f"((2 * {n}) + (CASE WHEN {n} < 0 THEN -abs({d}) ELSE abs({d}) END)) // (2 * {d})"
    return tree(unscaled(quotient, call.type.scale, call.type), a=a, b=b)


def _unless_zero(value: str, call: Call) -> str:
    """Floating point division by zero is an error in ANSI mode; a literal other than zero needs no test."""
    divisor = call.arguments[1]
    tested = not isinstance(divisor, Literal) or not divisor.value
    return guarded("b = 0", value, "division by zero") if tested else value


def scaled_integer(x: str, type_: Decimal, shift: int) -> str:
    """x * 10**shift as a 128-bit integer, for shift >= scale.

    A decimal times a power of ten keeps its scale, so it needs room for that many digits more: in 64 bits for short
    decimals, in 128 bits for others. Without that room the digits are taken from the number's text, which is slower.
    """
    missing = f"CAST('{10 ** (shift - type_.scale)}' AS HUGEINT)"
    if type_.precision + type_.scale <= FAST_DIGITS:
        fast = f"CAST({x} AS DECIMAL({FAST_DIGITS}, {type_.scale})) * {power_of_ten(type_.scale)}"
        return f"(CAST(CAST({fast} AS BIGINT) AS HUGEINT) * {missing})"
    if type_.precision + shift <= MAX_PRECISION:
        wide = f"CAST({x} AS DECIMAL({MAX_PRECISION}, {type_.scale}))"
        return f"CAST({wide} * {power_of_ten(shift)} AS HUGEINT)" if shift else f"CAST({wide} AS HUGEINT)"
    digits = f"replace(CAST(CAST({x} AS {type_name(type_)}) AS VARCHAR), '.', '')"
    return f"(CAST({digits} AS HUGEINT) * {missing})"


def unscaled(x: str, scale: int, result: Decimal) -> str:
    """x / 10**scale rounded HALF_UP into the result type."""
    return f"CAST(CAST({x} AS DECIMAL({MAX_PRECISION}, 0)) * {power_of_ten(-scale)} AS {type_name(result)})"


def _on_one_scale(operator: str, call: Call) -> str:
    left, right = (decimal_for(each.type) for each in call.arguments)
    scale = max(left.scale, right.scale)
    return f"{scaled_integer('a', left, scale)} {operator} {scaled_integer('b', right, scale)}"


def _whole_quotient(call: Call, arguments: list[Node]) -> Node:
    """`div` truncates toward zero in both engines; decimals are brought to one scale first."""
    a, b = arguments
    decimals = all(isinstance(each.type, Decimal) for each in call.arguments)
    return tree(f"CAST({_on_one_scale('//', call)} AS BIGINT)" if decimals else "a // b", a=a, b=b)


def _remainder(call: Call) -> str:
    """Takes the dividend's sign in both engines; decimals that do not fit together go through integers."""
    if call.type in FRACTIONS:
        return _unless_zero("a % b", call)
    operands = [each.type for each in call.arguments]
    scale = max(map(scale_of, operands))
    if all(type_.whole_digits + scale <= MAX_PRECISION for type_ in operands if isinstance(type_, Decimal)):
        return "a % b"
    return unscaled(_on_one_scale("%", call), scale, decimal_for(call.type))


def _positive_remainder(call: Call) -> str:
    """`pmod`: a negative remainder r becomes (r + n) % n."""
    r = f"({_remainder(call)})"
    return f"CASE WHEN {r} < 0 THEN ({r} + b) % b ELSE {r} END"


def _of_two(text: Callable[[Call], str]) -> Builder:
    return lambda call, arguments: tree(text(call), a=arguments[0], b=arguments[1])


def _negate(call: Call, arguments: list[Node]) -> Node:
    return tree(f"CAST(0 AS {type_name(call.type)}) - a" if call.type in INTEGERS else "-a", a=arguments[0])


def _round(call: Call, arguments: list[Node]) -> Node:
    """HALF_UP; a double is rounded in its shortest decimal form, as Java writes it."""
    digits, operand = int(literal_value(call, 1)), call.arguments[0].type
    if operand in FRACTIONS:
        return _round_double(call, arguments[0], digits)
    if digits < 0:
        return _round_whole(call, arguments[0], -digits)
    return cast(arguments[0], call.type) if isinstance(operand, Decimal) else arguments[0]


def _round_double(call: Call, node: Node, digits: int) -> Node:
    """A double of 2**53 or more has no fraction; NaN and the infinities stay as they are."""
    if call.type != DOUBLE or not 0 <= digits <= MAX_ROUNDED_DIGITS:
        raise Unsupported(f"round over {call.type} to {digits} digits is not in the native kernel's verified set")
    rounded = f"CAST(CAST(CAST(x AS VARCHAR) AS DECIMAL({MAX_PRECISION}, {digits})) AS DOUBLE)"
    return tree(f"CASE WHEN abs(x) >= CAST('{2**53}' AS DOUBLE) THEN x ELSE {rounded} END", x=node)


def _round_whole(call: Call, node: Node, zeros: int) -> Node:
    """Rounding to tens, hundreds and so on: in decimals, so that the way back raises when it does not fit."""
    scale = scale_of(call.arguments[0].type)
    if scale + zeros >= MAX_PRECISION:
        raise Unsupported(f"rounding to {zeros} zeros is not in the native kernel's verified set")
    moved = f"CAST(CAST(x AS DECIMAL({MAX_PRECISION}, {scale})) * {power_of_ten(-zeros)} AS DECIMAL({MAX_PRECISION}, 0))"
    return tree(f"CAST({moved} * {power_of_ten(zeros)} AS {type_name(call.type)})", x=node)


LOWERINGS: dict[str, Builder] = {
    "+": _sum(exp.Add),
    "-": _sum(exp.Sub),
    "*": _product,
    "/": _quotient,
    "div": _whole_quotient,
    "%": _of_two(_remainder),
    "pmod": _of_two(_positive_remainder),
    "neg": _negate,
    "power": renamed("pow"),
    "round": _round,
    **{name: renamed(name) for name in ("abs", "exp", "cbrt", "degrees", "radians", "atan")},
    **{name: retyped(name) for name in ("ceil", "floor")},
    # null for zero and below in Spark, errors in DuckDB
    **{name: written(f"CASE WHEN a > 0 THEN {name}(a) ELSE CAST(NULL AS TYPE) END") for name in ("ln", "log10", "log2")},
    # NaN below zero, as in Java
    "sqrt": written("CASE WHEN a < 0 THEN CAST('NaN' AS TYPE) ELSE sqrt(a) END"),
    # DuckDB's sign is a byte that loses NaN and the sign of zero
    "sign": written("CASE WHEN isnan(a) OR a = 0 THEN a ELSE CAST(sign(a) AS TYPE) END"),
    # false for null
    "isnan": written("coalesce(isnan(a), FALSE)"),
    # Spark adds zero to both sides first, which turns -0.0 into 0.0
    "atan2": written("atan2(a + 0, b + 0)"),
}
