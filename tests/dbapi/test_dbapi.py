"""The DB-API module: what PEP 249 asks for, and that errors are of its family."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nearly import dbapi
from tests.fixtures.driver_only import driver_only

ROWS = pa.table({
    "id": [1, 2, 3], "name": ["a", "b", None], "price": pa.array([Decimal("1.50"), Decimal("2.25"), None], pa.decimal128(7, 2)),
    "day": [dt.date(2020, 1, 1), None, dt.date(2020, 1, 3)],
})  # fmt: skip


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[dbapi.Connection]:
    with driver_only(tmp_path) as session, dbapi.connect(session, data={"items": ROWS}) as opened:
        yield opened


def test_the_module_says_what_it_is() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    for name in ("InterfaceError", "DatabaseError"):
        assert issubclass(getattr(dbapi, name), dbapi.Error)
    for name in ("DataError", "OperationalError", "IntegrityError", "InternalError", "ProgrammingError", "NotSupportedError"):
        assert issubclass(getattr(dbapi, name), dbapi.DatabaseError)
        assert getattr(dbapi.Connection, name) is getattr(dbapi, name)
    assert dbapi.Date(2020, 1, 2) == dt.date(2020, 1, 2)
    assert dbapi.Timestamp(2020, 1, 2, 3, 4, 5).hour == 3
    assert dbapi.Binary(b"x") == b"x"
    assert isinstance(dbapi.DateFromTicks(0), dt.date)
    assert isinstance(dbapi.TimeFromTicks(0), dt.time)
    assert isinstance(dbapi.TimestampFromTicks(0), dt.datetime)


def test_rows_come_one_by_one_in_groups_and_all(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    assert cursor.description is None
    assert cursor.rowcount == -1
    assert cursor.execute("select id, name from items order by id") is cursor
    assert cursor.rowcount == 3
    assert cursor.fetchone() == (1, "a")
    assert cursor.fetchmany() == [(2, "b")]
    assert cursor.fetchmany(5) == [(3, None)]
    assert cursor.fetchone() is None
    assert cursor.fetchall() == cursor.fetchmany(2) == []
    assert list(cursor.execute("select id from items order by id")) == [(1,), (2,), (3,)]
    assert cursor.fetch_arrow_table().num_rows == 3
    assert cursor.answer is not None
    assert cursor.answer.exact


def test_columns_are_described(connection: dbapi.Connection) -> None:
    cursor = connection.cursor().execute("select * from items")
    assert cursor.description is not None
    assert [each[0] for each in cursor.description] == ["id", "name", "price", "day"]
    kinds = [dbapi.NUMBER, dbapi.STRING, dbapi.NUMBER, dbapi.DATETIME]
    assert all(each[1] == kind for each, kind in zip(cursor.description, kinds, strict=True))
    assert cursor.description[2][4:6] == (7, 2)
    assert cursor.description[0][1] != dbapi.STRING


@pytest.mark.parametrize("parameters", [[2, "b"], (2, "b")])
def test_parameters_in_order_and_by_name(connection: dbapi.Connection, parameters: Any) -> None:
    assert connection.cursor().execute("select id from items where id >= ? and name = ?", parameters).fetchall() == [(2,)]
    named = {"name": "x' or '1' = '1"}
    assert connection.cursor().execute("select id from items where name = :name", named).fetchall() == []


def test_statements_change_tables_at_once(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.executemany("insert into items values (?, ?, ?, ?)", [(4, "d", Decimal("4.00"), None), (5, "e", None, None)])
    assert cursor.rowcount == 2
    assert cursor.description is None
    with pytest.raises(dbapi.NotSupportedError, match="not undone"):
        connection.rollback()
    connection.commit()
    connection.rollback()
    assert cursor.execute("delete from items where id > ?", [3]).rowcount == 2
    assert cursor.execute("select count(*) from items").fetchone() == (3,)
    with pytest.raises(dbapi.ProgrammingError, match="executemany"):
        cursor.executemany("select ?", [[1]])


@pytest.mark.parametrize(
    ("text", "parameters", "kind"),
    [
        ("selec 1", None, dbapi.ProgrammingError), ("select nope from items", None, dbapi.ProgrammingError),
        ("select * from nowhere", None, dbapi.ProgrammingError), ("select ?", [], dbapi.ProgrammingError),
        ("select ?", [1, 2], dbapi.ProgrammingError), ("", None, dbapi.ProgrammingError),
        ("select 1; select 2", None, dbapi.ProgrammingError), ("drop table items", None, dbapi.Error),
        ("select reflect('a', 'b')", None, dbapi.NotSupportedError), ("show databases", None, dbapi.ProgrammingError),
    ],
)  # fmt: skip
def test_errors_are_of_the_modules_family(connection: dbapi.Connection, text: str, parameters: Any, kind: type[Exception]) -> None:
    cursor = connection.cursor()
    with pytest.raises(kind):
        cursor.execute(text, parameters)
    with pytest.raises(dbapi.ProgrammingError, match="no rows"):
        cursor.fetchone()


def test_what_is_closed_is_refused(tmp_path: Path) -> None:
    connection = dbapi.connect(path=tmp_path / "own", data={"items": ROWS})
    cursor = connection.cursor()
    cursor.execute("show tables")
    assert cursor.fetchall()[0][0] == "items"
    cursor.close()
    with pytest.raises(dbapi.InterfaceError, match="cursor is closed"):
        cursor.execute("select 1 as a")
    other = connection.cursor()
    connection.close()
    for use in (connection.cursor, connection.commit, connection.rollback, connection.close, other.fetchone):
        with pytest.raises(dbapi.Error):
            use()
    with pytest.raises(dbapi.ProgrammingError, match="neither a path that exists"):
        dbapi.connect(path=tmp_path / "own", data={"items": tmp_path / "nothing.parquet", "more": tmp_path / "n.csv"})


def test_an_early_answer_has_its_bounds(connection: dbapi.Connection) -> None:
    cursor = connection.cursor().execute("select sum(price) as s from items within 5%")
    assert cursor.fetchall() == [(Decimal("3.75"),)]
    assert cursor.answer is not None
    assert cursor.answer.low.column_names == ["s"]


def test_what_java_writes_goes_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []
    with driver_only(tmp_path / "catalog") as db:
        monkeypatch.setattr("nearly.dbapi.connection.open_session", lambda **options: given.append(options) or db)
        dbapi.connect()
        dbapi.connect(log="own.log")
    assert given[0]["log"].name.startswith("nearly-java-")
    assert given[1]["log"] == "own.log"
