"""Constructors and type objects of PEP 249."""

from __future__ import annotations

import datetime as dt
import time

Date, Time, Timestamp = dt.date, dt.time, dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:  # noqa: N802  the name that PEP 249 gives
    """The day of so many seconds after the epoch, by this machine's clock."""
    return dt.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802
    """The time of day of so many seconds after the epoch."""
    return dt.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> dt.datetime:  # noqa: N802
    """The time of so many seconds after the epoch."""
    return dt.datetime(*time.localtime(ticks)[:6])  # noqa: DTZ001  PEP 249's are without a zone


class TypeObject:
    """Equal to every name of a type that belongs to it: `cursor.description[0][1] == nearly.dbapi.NUMBER`."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, str) and other.partition("(")[0].partition("<")[0] in self._names)

    def __hash__(self) -> int:
        return hash(self._names)


STRING = TypeObject("string")
BINARY = TypeObject("binary")
NUMBER = TypeObject("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "boolean")
DATETIME = TypeObject("date", "timestamp", "timestamp_ntz", "time")
ROWID = TypeObject()
