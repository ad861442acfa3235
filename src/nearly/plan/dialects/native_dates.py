"""Dates and timestamps in DuckDB; instants are TIMESTAMPTZ and follow the connection's time zone."""

from __future__ import annotations

from sqlglot import exp

from nearly.plan.dialects.native_build import NOT_UTC, guard, instant, literal_value, renamed, retyped, tree, written
from nearly.plan.dialects.sql import Builder, Node, infix
from nearly.plan.expressions import Call
from nearly.plan.types import TIMESTAMP

DAY = 86_400_000_000
"""Microseconds."""


def _truncate_date(call: Call, arguments: list[Node]) -> Node:
    literal_value(call, 1)
    return tree("CAST(date_trunc(unit, day) AS DATE)", day=arguments[0], unit=arguments[1])


def _truncate_instant(call: Call, arguments: list[Node]) -> Node:
    """Days and longer in local time; hours in an hour that clocks show twice are left to Spark."""
    name, moment = arguments
    if literal_value(call, 0) in ("year", "quarter", "month", "week", "day"):
        return instant(tree("date_trunc(unit, CAST(t AS TIMESTAMP))", unit=name, t=moment))
    found = "date_trunc(unit, t)"
    return guard(f"{found} > t", found, "an hour that clocks show twice", unit=name, t=moment)


def _add_months_to_instant(call: Call, arguments: list[Node]) -> Node:
    """Outside UTC the engines differ where clocks show the new time twice."""
    moved, (t, months) = "t + to_months(months)", arguments
    if call.type != TIMESTAMP:
        return tree(moved, t=t, months=months)
    return guard(NOT_UTC, moved, "months added to an instant outside UTC", t=t, months=months)


def _add_microseconds(call: Call, arguments: list[Node]) -> Node:
    """Whole days move the calendar, the rest moves the clock, as in Spark."""
    amount = literal_value(call, 1)
    days, rest = divmod(abs(amount), DAY)
    sign = -1 if amount < 0 else 1
    return tree(f"(t + to_days({sign * days})) + to_microseconds({sign * rest})", t=arguments[0])


LOWERINGS: dict[str, Builder] = {
    **{name: retyped(name) for name in ("year", "quarter", "month", "dayofyear", "weekofyear", "last_day")},
    **{name: retyped(name) for name in ("hour", "minute", "second")},
    "dayofmonth": retyped("day"),
    "dayofweek": written("CAST(dayofweek(a) + 1 AS TYPE)"),  # 1 for Sunday to 7 for Saturday
    "weekday": written("CAST(isodow(a) - 1 AS TYPE)"),  # 0 for Monday to 6 for Sunday
    "date_add": infix(exp.Add),
    "date_sub": infix(exp.Sub),
    "datediff": written("CAST(a - b AS TYPE)"),
    "unix_date": written("CAST(a - CAST('1970-01-01' AS DATE) AS TYPE)"),
    "add_months": written("CAST(a + to_months(b) AS DATE)"),
    "make_date": renamed("make_date"),
    "trunc": _truncate_date,
    "date_trunc": _truncate_instant,
    "timestamp_add_months": _add_months_to_instant,
    "timestamp_add_microseconds": _add_microseconds,
}
