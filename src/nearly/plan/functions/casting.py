"""`CAST`: which pairs of types are modelled, and casts of literals done at once."""

from __future__ import annotations

import datetime as dt
import re
from contextlib import suppress
from decimal import Decimal as Number
from fractions import Fraction
from typing import Any

from nearly.errors import Unsupported
from nearly.plan import types
from nearly.plan.expressions import Cast, E, Expression, Literal
from nearly.plan.types import DATETIMES, INTEGERS, STRING, DataType, Decimal, is_numeric, is_simple

LIMITS = {types.BYTE: 2**7, types.SHORT: 2**15, types.INT: 2**31, types.LONG: 2**63}
"""An integer type holds -limit to limit - 1."""


def cast(operand: Expression, type_: DataType, safe: bool = False) -> Expression:
    """A CAST that stands in the query; the operand itself when it has that type, a literal where the value is sure.

    A cast to an integer type stays a cast, since Spark treats integer literals beside decimals in a way of their own.
    """
    if operand.type == type_:
        return operand
    if type_ in INTEGERS and isinstance(operand, Literal) and operand.value is not None:
        return Cast(type_, _checked(operand, type_), safe)
    return coerce(operand, type_, safe)


def coerce(operand: Expression, type_: DataType, safe: bool = False) -> Expression:
    """A cast that Spark inserts by itself; literals are cast at once where the value is sure.

    >>> coerce(Literal(types.INT, 5), types.LONG)
    Literal(type=DataType(name='bigint'), value=5)
    """
    if operand.type == type_:
        return operand
    folded = _fold(_checked(operand, type_), type_) if isinstance(operand, Literal) else None
    return Cast(type_, _checked(operand, type_), safe) if folded is None else folded


def _checked(operand: E, type_: DataType) -> E:
    if not is_castable(operand.type, type_):
        raise Unsupported(f"CAST from {operand.type} to {type_} is not in nearly's verified set")
    return operand


def is_castable(source: DataType, target: DataType) -> bool:
    """Whether Spark's ANSI CAST between these types is modelled."""
    if source == types.NULL:
        return is_simple(target)
    plain = (STRING, types.BOOLEAN)
    if is_numeric(source):
        return is_numeric(target) or target in (*plain, types.TIMESTAMP)
    if source in DATETIMES:
        return target in (*DATETIMES, STRING) or (source == types.TIMESTAMP and is_numeric(target))
    return source in plain and (is_numeric(target) or target in plain or (source == STRING and target in DATETIMES))


def _fold(literal: Literal, target: DataType) -> Literal | None:
    """The cast literal, when the cast loses nothing and every engine agrees on it; None otherwise."""
    value = _fold_value(literal.value, literal.type, target)
    return Literal(target, value) if value is not None or literal.value is None else None


def _fold_value(value: Any, source: DataType, target: DataType) -> Any:
    if value is None:
        return None
    if source in INTEGERS or isinstance(source, Decimal):
        return _fold_exact_number(Number(value), target)
    if source == STRING and target == types.DATE and re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        with suppress(ValueError):
            return dt.date.fromisoformat(value)
    if source == STRING and target in INTEGERS and re.fullmatch(r"-?\d{1,18}", value):
        return _fold_exact_number(Number(value), target)
    return None


def _fold_exact_number(value: Number, target: DataType) -> Any:
    if target in INTEGERS:
        limit = LIMITS[target]
        return int(value) if value == int(value) and -limit <= value < limit else None
    if isinstance(target, Decimal):
        unscaled = Fraction(value) * 10**target.scale
        fits = unscaled.denominator == 1 and abs(unscaled) < 10**target.precision
        return number(int(unscaled), target.scale) if fits else None
    return float(value) if target == types.DOUBLE else None


def number(unscaled: int, scale: int) -> Number:
    """The decimal `unscaled / 10**scale`, exactly and with that scale."""
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return Number((1 if unscaled < 0 else 0, digits, -scale))
