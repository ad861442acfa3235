"""nearly as a database module of Python's DB-API 2.0 (PEP 249).

    import nearly.dbapi
    connection = nearly.dbapi.connect(path="catalog", data={"rides": "rides.parquet"})
    cursor = connection.cursor()
    cursor.execute("select city, sum(fare) from rides where day > ? group by city", [day])
    cursor.fetchall()

Answers are exact, unless the text ends in WITHIN; then `cursor.answer` has the bounds. Statements that change tables take effect at
once, so `commit` has nothing to do, and `rollback` is an error once something was changed.
"""

from __future__ import annotations

from nearly.dbapi.connection import Connection, connect
from nearly.dbapi.cursor import Cursor
from nearly.dbapi.exceptions import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004  the name that PEP 249 gives
)
from nearly.dbapi.types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

apilevel = "2.0"
threadsafety = 2
paramstyle = "qmark"

__all__ = [
    "BINARY", "DATETIME", "NUMBER", "ROWID", "STRING", "Binary", "Connection", "Cursor", "DataError", "DatabaseError", "Date",
    "DateFromTicks", "Error", "IntegrityError", "InterfaceError", "InternalError", "NotSupportedError", "OperationalError",
    "ProgrammingError", "Time", "TimeFromTicks", "Timestamp", "TimestampFromTicks", "Warning", "apilevel", "connect", "paramstyle",
    "threadsafety",
]  # fmt: skip
