"""Functions over dates and timestamps, and their arithmetic with intervals."""

from __future__ import annotations

import datetime as dt

from nearly.errors import Unsupported
from nearly.plan import types
from nearly.plan.expressions import Call, Expression, Literal
from nearly.plan.functions.casting import coerce
from nearly.plan.functions.coercion import implicit
from nearly.plan.functions.signatures import Arguments, Function, fixed, refuse
from nearly.plan.types import DATE, DATETIMES, INT, INTEGERS, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ, IntervalType

DAY = 86_400_000_000
"""Microseconds."""

DAYS = INTEGERS[:-1]
"""Types of numbers that can be added to a date: all integers but bigint."""

DATE_UNITS = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mm": "month", "mon": "month",
    "week": "week",
}  # fmt: skip
TIMESTAMP_UNITS = DATE_UNITS | {
    "day": "day", "dd": "day", "hour": "hour", "minute": "minute", "second": "second",
    "millisecond": "millisecond", "microsecond": "microsecond",
}  # fmt: skip
PARTS = {
    "year": "year", "y": "year", "years": "year", "quarter": "quarter", "qtr": "quarter", "month": "month",
    "mon": "month", "months": "month", "week": "weekofyear", "w": "weekofyear", "weeks": "weekofyear",
    "day": "dayofmonth", "d": "dayofmonth", "days": "dayofmonth", "dayofweek": "dayofweek", "dow": "dayofweek",
    "doy": "dayofyear", "hour": "hour", "h": "hour", "hours": "hour", "minute": "minute", "m": "minute",
    "minutes": "minute",
}  # fmt: skip


def add_or_subtract(name: str, arguments: Arguments) -> Expression:
    """Date or timestamp plus or minus days or an interval literal; the difference of two of them."""
    left, right = arguments
    if left.type in DATETIMES and right.type in DATETIMES and name == "-":
        return _difference(left, right)
    if name == "+" and right.type in DATETIMES:
        left, right = right, left
    if left.type == DATE and right.type in DAYS:
        return _add_days("date_add" if name == "+" else "date_sub", (left, right))
    if left.type in DATETIMES and isinstance(right, Literal) and isinstance(right.type, IntervalType) and right.value is not None:
        return _add_interval(left, right.type, right.value if name == "+" else -right.value)
    raise refuse(name, arguments)


def _difference(left: Expression, right: Expression) -> Expression:
    if left.type == right.type == DATE:
        return Call(types.day_interval("day"), "-", (left, right))
    type_ = TIMESTAMP_NTZ if TIMESTAMP not in (left.type, right.type) else TIMESTAMP
    return Call(types.day_interval(), "-", (coerce(left, type_), coerce(right, type_)))


def _add_interval(moment: Expression, interval: IntervalType, amount: int) -> Expression:
    """A date stays a date under months and whole days, and becomes a timestamp under hours and less."""
    if moment.type == DATE and interval.unit == "month":
        return _add_months("add_months", (moment, Literal(INT, amount)))
    if moment.type == DATE and interval.fields == "day":
        return _add_days("date_add", (moment, Literal(INT, amount // DAY)))
    start = coerce(moment, TIMESTAMP) if moment.type == DATE else moment
    function = "timestamp_add_months" if interval.unit == "month" else "timestamp_add_microseconds"
    return Call(start.type, function, (start, Literal(interval, amount)))


def _add_days(name: str, arguments: Arguments) -> Expression:
    """`date_add` and `date_sub`; over literals the date itself, so that scans see a constant."""
    start = implicit(name, arguments[0], DATE)
    if arguments[1].type not in (*DAYS, STRING, NULL):
        raise refuse(name, arguments)
    days = implicit(name, arguments[1], INT)
    if isinstance(start, Literal) and isinstance(days, Literal) and None not in (start.value, days.value):
        moved = start.value.toordinal() + (days.value if name == "date_add" else -days.value)
        if 1 <= moved <= dt.date.max.toordinal():
            return Literal(DATE, dt.date.fromordinal(moved))
    return Call(DATE, name, (start, days))


def _add_months(name: str, arguments: Arguments) -> Expression:
    """`add_months`: the same day of a later month, or that month's last day when there is no such day."""
    start, months = implicit(name, arguments[0], DATE), implicit(name, arguments[1], INT)
    if isinstance(start, Literal) and isinstance(months, Literal) and None not in (start.value, months.value):
        index = start.value.year * 12 + start.value.month - 1 + months.value
        if 12 <= index < 12 * 9999:
            return Literal(DATE, _same_day(index // 12, index % 12 + 1, start.value.day))
    return Call(DATE, name, (start, months))


def _same_day(year: int, month: int, day: int) -> dt.date:
    following = dt.date(year + month // 12, month % 12 + 1, 1)
    return dt.date(year, month, min(day, (following - dt.timedelta(days=1)).day))


def _truncate_date(name: str, arguments: Arguments) -> Expression:
    unit = _unit(name, arguments[1], DATE_UNITS)
    return Call(DATE, name, (implicit(name, arguments[0], DATE), unit))


def _truncate_timestamp(name: str, arguments: Arguments) -> Expression:
    unit = _unit(name, arguments[0], TIMESTAMP_UNITS)
    return Call(TIMESTAMP, name, (unit, implicit(name, arguments[1], TIMESTAMP)))


def _unit(name: str, argument: Expression, units: dict[str, str]) -> Literal:
    if isinstance(argument, Literal) and isinstance(argument.value, str) and argument.value.lower() in units:
        return Literal(STRING, units[argument.value.lower()])
    raise Unsupported(f"{name!r}: the unit must be one of the literals {', '.join(sorted(units))}")


def _part(name: str, arguments: Arguments) -> Expression:
    """`extract(unit FROM x)`, also spelled `date_part('unit', x)`."""
    unit, moment = arguments
    function = PARTS.get(str(unit.value).lower()) if isinstance(unit, Literal) else None
    if function is None or moment.type not in (*DATETIMES, STRING):
        raise refuse(name, arguments)
    return FUNCTIONS[function].resolve(function, (moment,))


def _clock(name: str, arguments: Arguments) -> Expression:
    """`hour`, `minute`, `second` of a timestamp of either kind."""
    (moment,) = arguments
    return Call(INT, name, (moment if moment.type == TIMESTAMP_NTZ else implicit(name, moment, TIMESTAMP),))


def _unix_date(name: str, arguments: Arguments) -> Expression:
    """It casts nothing to a date, unlike its relatives."""
    if arguments[0].type not in (DATE, NULL):
        raise refuse(name, arguments)
    return Call(INT, name, (coerce(arguments[0], DATE),))


FUNCTIONS = {
    **dict.fromkeys(
        ("year", "quarter", "month", "dayofmonth", "dayofweek", "weekday", "dayofyear", "weekofyear"), fixed(INT, DATE)
    ),
    **dict.fromkeys(("hour", "minute", "second"), Function(1, 1, _clock)),
    **dict.fromkeys(("date_add", "date_sub"), Function(2, 2, _add_days)),
    "datediff": fixed(INT, DATE, DATE),
    "add_months": Function(2, 2, _add_months),
    "last_day": fixed(DATE, DATE),
    "next_day": fixed(DATE, DATE, STRING),
    "trunc": Function(2, 2, _truncate_date),
    "date_trunc": Function(2, 2, _truncate_timestamp),
    "extract": Function(2, 2, _part),
    "to_date": Function(1, 1, lambda name, arguments: implicit(name, arguments[0], DATE)),
    "make_date": fixed(DATE, INT, INT, INT),
    "unix_date": Function(1, 1, _unix_date),
}
