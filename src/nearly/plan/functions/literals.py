"""Constants as Spark types them."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal as Number

from nearly.errors import SchemaError, Unsupported
from nearly.plan.expressions import Literal
from nearly.plan.functions.casting import LIMITS
from nearly.plan.types import DATE, DOUBLE, INT, LONG, MAX_PRECISION, TIMESTAMP, day_interval, decimal, month_interval

_MONTHS = {"year": 12, "month": 1}
_MICROSECONDS = {
    "week": 7 * 86_400_000_000, "day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000,
    "second": 1_000_000, "millisecond": 1_000, "microsecond": 1,
}  # fmt: skip
_FIELDS = {"week": "day", "millisecond": "second", "microsecond": "second"}


def number(text: str) -> Literal:
    """The literal of a number as SQL spells it, perhaps with a sign: `1` is int, `1.5` decimal(2,1), `1e3` double.

    >>> number("0.05")
    Literal(type=Decimal(name='decimal(2,2)', precision=2, scale=2), value=Decimal('0.05'))
    """
    if re.fullmatch(r"-?\d+", text):
        return _integer(int(text))
    if re.fullmatch(r"-?(\d+\.\d*|\.\d+)", text):
        return _decimal(Number(text))
    if re.fullmatch(r"-?(\d+\.?\d*|\.\d+)[eE][+-]?\d+", text):
        return Literal(DOUBLE, float(text))
    raise Unsupported(f"number {text!r} is not in nearly's verified set of literals")


def _integer(value: int) -> Literal:
    for type_ in (INT, LONG):
        if -LIMITS[type_] <= value < LIMITS[type_]:
            return Literal(type_, value)
    return _decimal(Number(value))


def _decimal(value: Number) -> Literal:
    """Spark's type for a decimal constant: as many digits as are written, leading zeros not counted."""
    exponent = int(value.as_tuple().exponent)
    scale = max(0, -exponent)
    precision = max(len("".join(map(str, value.as_tuple().digits)).lstrip("0")) + max(0, exponent), scale, 1)
    if precision > MAX_PRECISION:
        raise SchemaError(f"number {value} has more than {MAX_PRECISION} digits")
    return Literal(decimal(precision, scale), value or abs(value))


def date(text: str) -> Literal:
    """`DATE 'yyyy-mm-dd'`."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text.strip()):
        raise Unsupported(f"DATE {text!r}: nearly reads dates as yyyy-mm-dd")
    try:
        return Literal(DATE, dt.date.fromisoformat(text.strip()))
    except ValueError as wrong:
        raise SchemaError(f"DATE {text!r} is no date: {wrong}") from wrong


def timestamp(text: str, zone: dt.tzinfo) -> Literal:
    """`TIMESTAMP 'yyyy-mm-dd hh:mm:ss[.ffffff]'` without an offset, in the session's time zone."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?)?", text.strip()):
        raise Unsupported(f"TIMESTAMP {text!r}: nearly reads timestamps as yyyy-mm-dd hh:mm:ss")
    try:
        local = dt.datetime.fromisoformat(text.strip()).replace(tzinfo=zone)
    except ValueError as wrong:
        raise SchemaError(f"TIMESTAMP {text!r} is no timestamp: {wrong}") from wrong
    if local.astimezone(dt.UTC).astimezone(zone).replace(tzinfo=None) != local.replace(tzinfo=None):
        raise Unsupported(f"TIMESTAMP {text!r} does not exist in time zone {zone}: clocks skip it")
    return Literal(TIMESTAMP, local.astimezone(dt.UTC))


def interval(text: str, unit: str) -> Literal:
    """`INTERVAL 'text' unit` of one unit; its value is a number of months or of microseconds.

    >>> interval("90", "days")
    Literal(type=IntervalType(name='interval day', unit='microsecond', fields='day'), value=7776000000000)
    """
    name = unit.strip().lower().removesuffix("s")
    if not re.fullmatch(r"\s*[+-]?\d+\s*", text):
        raise Unsupported(f"INTERVAL {text!r} {unit}: nearly reads whole numbers of one unit")
    if name in _MONTHS:
        return Literal(month_interval(name), int(text) * _MONTHS[name])
    if name in _MICROSECONDS:
        return Literal(day_interval(_FIELDS.get(name, name)), int(text) * _MICROSECONDS[name])
    raise Unsupported(f"INTERVAL unit {unit!r} is not in nearly's verified set")
