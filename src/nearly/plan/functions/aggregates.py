"""Aggregate functions with Spark's result types."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nearly.errors import Unsupported
from nearly.plan.expressions import AggregateCall, Expression, Literal
from nearly.plan.functions.casting import coerce
from nearly.plan.functions.coercion import implicit, numeric
from nearly.plan.functions.signatures import Arguments, check_arity, refuse
from nearly.plan.types import BOOLEAN, DATETIMES, DOUBLE, INTEGERS, LONG, STRING, DataType, Decimal, bounded_decimal, is_numeric

ALIASES = {
    "mean": "avg", "stddev_samp": "stddev", "std": "stddev", "var_samp": "variance", "every": "bool_and",
    "some": "bool_or", "any": "bool_or",
}  # fmt: skip
_UNVERIFIED = {
    "first", "first_value", "last", "last_value", "any_value", "approx_count_distinct", "approx_percentile",
    "percentile_approx", "percentile_cont", "percentile_disc", "max_by", "min_by", "mode", "skewness", "kurtosis",
    "collect_list", "collect_set", "array_agg", "listagg", "string_agg", "bit_and", "bit_or", "bit_xor", "regr_slope",
    "regr_intercept", "regr_r2", "regr_count", "regr_avgx", "regr_avgy", "try_sum", "try_avg", "product",
    "count_min_sketch", "histogram_numeric",
}  # fmt: skip
"""Aggregates of Spark that are known as such, so that they are refused as aggregates and not as scalar functions."""

Typed = tuple[DataType, Arguments]


def _sum(name: str, arguments: Arguments) -> Typed:
    operand = numeric(name, arguments[0])
    if isinstance(operand.type, Decimal):
        return bounded_decimal(operand.type.precision + 10, operand.type.scale), (operand,)
    return (LONG if operand.type in INTEGERS else DOUBLE), (operand,)


def _average(name: str, arguments: Arguments) -> Typed:
    """`avg` keeps four more digits of a decimal on both sides of the point."""
    operand = numeric(name, arguments[0])
    if isinstance(operand.type, Decimal):
        return bounded_decimal(operand.type.precision + 4, operand.type.scale + 4), (operand,)
    return DOUBLE, (operand,)


def _extreme(name: str, arguments: Arguments) -> Typed:
    (operand,) = arguments
    if not (is_numeric(operand.type) or operand.type in (STRING, BOOLEAN, *DATETIMES)):
        raise refuse(name, arguments)
    return operand.type, arguments


def _statistic(name: str, arguments: Arguments) -> Typed:
    return DOUBLE, tuple(coerce(numeric(name, each), DOUBLE) for each in arguments)


def _of_truth(type_: DataType) -> Callable[[str, Arguments], Typed]:
    return lambda name, arguments: (type_, (implicit(name, arguments[0], BOOLEAN),))


def _percentile(name: str, arguments: Arguments) -> Typed:
    value = coerce(numeric(name, arguments[0]), DOUBLE)
    share = coerce(arguments[1], DOUBLE) if len(arguments) > 1 else Literal(DOUBLE, 0.5)
    if not isinstance(share, Literal) or share.value is None or not 0 <= share.value <= 1:
        raise Unsupported(f"{name!r}: the percentage must be a literal from 0 to 1")
    return DOUBLE, (value, share)


_RULES: dict[str, tuple[int, int | None, Callable[[str, Arguments], Typed]]] = {
    "count": (0, None, lambda _name, arguments: (LONG, arguments)),
    "sum": (1, 1, _sum),
    "avg": (1, 1, _average),
    **dict.fromkeys(("min", "max"), (1, 1, _extreme)),
    **dict.fromkeys(("stddev", "stddev_pop", "variance", "var_pop"), (1, 1, _statistic)),
    **dict.fromkeys(("corr", "covar_samp", "covar_pop"), (2, 2, _statistic)),
    "count_if": (1, 1, _of_truth(LONG)),
    **dict.fromkeys(("bool_and", "bool_or"), (1, 1, _of_truth(BOOLEAN))),
    "median": (1, 1, _percentile),
    "percentile": (2, 2, _percentile),
}


def is_aggregate(name: str) -> bool:
    """Whether Spark has an aggregate of this name that nearly knows of."""
    lowered = name.lower()
    return lowered in _RULES or lowered in ALIASES or lowered in _UNVERIFIED


def aggregate(name: str, arguments: Sequence[Expression], distinct: bool = False, where: Expression | None = None) -> AggregateCall:
    """The typed call of an aggregate; `count` without arguments is `count(*)`."""
    function = ALIASES.get(name.lower(), name.lower())
    if function not in _RULES:
        raise Unsupported(f"aggregate {name!r} is not in nearly's verified set")
    least, most, rule = _RULES[function]
    check_arity(function, len(arguments), least, most)
    type_, typed = rule(function, tuple(arguments))
    if distinct and not typed:
        raise Unsupported("count(DISTINCT *) is not in nearly's verified set; name the columns")
    matters = distinct and function not in ("min", "max", "bool_and", "bool_or")
    condition = None if where is None else implicit(function, where, BOOLEAN)
    return AggregateCall(type_, "percentile" if function == "median" else function, typed, matters, condition)
