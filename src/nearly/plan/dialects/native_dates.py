"""Dates and timestamps in DuckDB; instants are TIMESTAMPTZ and follow the connection's time zone."""

from __future__ import annotations

from sqlglot import exp

from nearly.plan.dialects import sql
from nearly.plan.dialects.native_build import Builder, cast, guard, instant, literal_value, not_utc, renamed, retyped
from nearly.plan.dialects.sql import Node
from nearly.plan.expressions import Call
from nearly.plan.types import DATE, TIMESTAMP, TIMESTAMP_NTZ

DAY = 86_400_000_000
"""Microseconds."""


def _day_of_week(call: Call, arguments: list[Node]) -> Node:
    """1 for Sunday to 7 for Saturday."""
    return cast(sql.binary(exp.Add, sql.function("dayofweek", *arguments), sql.integer(1)), call.type)


def _weekday(call: Call, arguments: list[Node]) -> Node:
    """0 for Monday to 6 for Sunday."""
    return cast(sql.binary(exp.Sub, sql.function("isodow", *arguments), sql.integer(1)), call.type)


def _difference(call: Call, arguments: list[Node]) -> Node:
    """`datediff(end, start)` in days."""
    return cast(sql.binary(exp.Sub, *arguments), call.type)


def _unix_date(call: Call, arguments: list[Node]) -> Node:
    return cast(sql.binary(exp.Sub, arguments[0], cast(sql.text("1970-01-01"), DATE)), call.type)


def _add_months(call: Call, arguments: list[Node]) -> Node:
    months = sql.function("to_months", arguments[1])
    return cast(sql.binary(exp.Add, arguments[0], months), DATE)


def _truncate_date(call: Call, arguments: list[Node]) -> Node:
    return cast(sql.function("date_trunc", sql.text(literal_value(call, 1)), arguments[0]), DATE)


def _truncate_instant(call: Call, arguments: list[Node]) -> Node:
    """Days and longer in local time; hours in an hour that clocks show twice are left to Spark."""
    unit, (name, moment) = literal_value(call, 0), arguments
    if unit in ("year", "quarter", "month", "week", "day"):
        return instant(sql.function("date_trunc", name, cast(moment, TIMESTAMP_NTZ)))
    found = sql.function("date_trunc", name, moment)
    return guard(sql.binary(exp.GT, found, moment.copy()), found.copy(), "an hour that clocks show twice")


def _add_months_to_instant(call: Call, arguments: list[Node]) -> Node:
    """Outside UTC the engines differ where clocks show the new time twice."""
    moved = sql.binary(exp.Add, arguments[0], sql.function("to_months", arguments[1]))
    return guard(not_utc(), moved, "months added to an instant outside UTC") if call.type == TIMESTAMP else moved


def _add_microseconds(call: Call, arguments: list[Node]) -> Node:
    """Whole days move the calendar, the rest moves the clock, as in Spark."""
    amount = literal_value(call, 1)
    days, rest = divmod(abs(amount), DAY)
    sign = -1 if amount < 0 else 1
    moved = sql.binary(exp.Add, arguments[0], sql.function("to_days", sql.integer(sign * days)))
    return sql.binary(exp.Add, moved, sql.function("to_microseconds", sql.integer(sign * rest)))


LOWERINGS: dict[str, Builder] = {
    "year": retyped("year"),
    "quarter": retyped("quarter"),
    "month": retyped("month"),
    "dayofmonth": retyped("day"),
    "dayofweek": _day_of_week,
    "weekday": _weekday,
    "dayofyear": retyped("dayofyear"),
    "weekofyear": retyped("weekofyear"),
    "date_add": lambda _call, arguments: sql.binary(exp.Add, *arguments),
    "date_sub": lambda _call, arguments: sql.binary(exp.Sub, *arguments),
    "datediff": _difference,
    "add_months": _add_months,
    "last_day": retyped("last_day"),
    "trunc": _truncate_date,
    "hour": retyped("hour"),
    "minute": retyped("minute"),
    "second": retyped("second"),
    "date_trunc": _truncate_instant,
    "make_date": renamed("make_date"),
    "unix_date": _unix_date,
    "timestamp_add_months": _add_months_to_instant,
    "timestamp_add_microseconds": _add_microseconds,
}
