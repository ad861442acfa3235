"""The wire of Postgres by real clients: types both ways, parameters, cursors, cancel, errors, goals, and who may connect."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import math
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest

import nearly
from nearly.web.limits import Limits
from nearly.web.server import Addresses, Server
from nearly.web.wire.texts import name_of, query_text, split_statements
from tests.web.conftest import LONG
from tests.web.converging import ConvergingSession
from tests.web.serving import served


@pytest.fixture
def connection(server: tuple[Server, Addresses]) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server[1].wire or "", autocommit=True) as found:
        yield found


def test_values_of_every_type_in_text_and_binary(connection: psycopg.Connection, db: nearly.Session) -> None:
    for name in ("people", "num", "odd", "empty"):
        table = db.sql(f"select * from {name}").exact().table
        texts = connection.execute(f"select * from {name}").fetchall()
        assert len(texts) == table.num_rows
        if name == "people":
            expected = [tuple(row.values()) for row in table.to_pylist()]
            for binary in (False, True):
                found = connection.cursor(binary=binary).execute("select * from people").fetchall()
                assert [_plain(row) for row in found] == [_plain(row) for row in expected]


def _plain(row: tuple[Any, ...]) -> list[Any]:
    return ["NaN" if isinstance(each, float) and math.isnan(each) else each for each in row]


def test_parameters_of_every_type(connection: psycopg.Connection) -> None:
    def one(text: str, *values: Any) -> Any:
        row = connection.execute(text, values).fetchone()
        assert row is not None
        return row[0]

    assert one("select count(*) from people where born = %s", dt.date(1988, 2, 29)) == 1
    assert one("select count(*) from people where salary = %s", Decimal("4100.50")) == 3
    assert one("select count(*) from people where bonus > %s", 1.5) == 4
    assert one("select count(*) from people where name = %s", "O'Neil") == 1
    assert one("select name from people where name = %s", "日本") == "日本"
    assert one("select count(*) from people where active = %s", True) == 4
    assert one("select count(*) from people where joined < %s", dt.datetime(2000, 1, 1, tzinfo=dt.UTC)) == 2
    assert one("select count(*) from people where id > %s", -5) == 10
    assert one("select count(*) from people where dept = %s or %s is null", "x", None) == 10
    for _ in range(8):
        assert one("select id from people where name = %s", "Ada") == 1
    hostile = "'; drop table people; --"
    assert one("select count(*) from people where name = %s", hostile) == 0
    assert one("select count(*) from people") == 10


def test_postgres_spelling_means_what_nearly_means(connection: psycopg.Connection) -> None:
    text = 'select "p"."dept", count(*), sum(salary::double precision) from public.people as "p" group by 1 order by "dept" limit 2'
    assert connection.execute(text).fetchall() == [(None, 2, -12.34), ("eng", 3, 9300.51)]
    cursor = connection.execute("select count(*), max(id), id + 1, 'x', case when true then 1 end from people group by id limit 1")
    assert [each.name for each in cursor.description or ()] == ["count", "max", "?column?", "?column?", "case"]
    assert connection.execute("select 7 / 2 as a, 7::numeric / 2 as b").fetchall() == [(3.5, Decimal("3.500000"))]
    assert connection.execute("select ';' as a; select 2 as b").fetchone() == (";",)


def test_moments_as_dashboards_write_them(connection: psycopg.Connection) -> None:
    """Ranges of time and buckets of Grafana, filters of Superset, months of Metabase."""
    text = "select count(*) from people where joined between '1970-01-01T00:00:00Z' and '2100-01-01T00:00:00.999Z'"
    known = connection.execute("select count(joined) from people where joined >= '1970-01-01'").fetchall()
    assert connection.execute(text).fetchall() == known
    for since in ("TO_TIMESTAMP('1970-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')", "TO_DATE('1970-01-01', 'YYYY-MM-DD')"):
        assert connection.execute(f"select count(*) from public.people where joined >= {since}").fetchall() == known
    buckets = "floor(extract(epoch from timestamp '2024-01-01 00:07:30')/300)*300"
    assert connection.execute(f'select {buckets} as "time"').fetchall() == [(1704067500,)]
    assert connection.execute("select date_part('epoch', timestamp '1970-01-01 00:00:01.5') as a").fetchall() == [(1.5,)]
    assert "DATE_FORMAT(t, 'yyyy-MM')" in query_text("select to_char(t, 'YYYY-MM') as m from x")
    assert query_text("select to_date(t, 'yyyy') as m from x") == "SELECT TO_DATE(t, 'yyyy') AS m FROM x"


def test_texts_are_taken_apart() -> None:
    assert split_statements("select ';'; -- a;b\n select 2;;") == ["select ';'", "-- a;b\n select 2"]
    assert query_text("select a from t order by a") == "SELECT a FROM t ORDER BY a"
    assert "NULLS" not in query_text('select "a" from t order by "a"')
    assert name_of(__import__("sqlglot").parse_one("sum(x) over ()")) == "sum"
    with pytest.raises(nearly.ParseError):
        query_text("select $1 as a")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("select nme from people", "42703"), ("select * from peopl", "42P01"), ("selec 1", "42601"),
        ("select id from people group by dept", "42804"), ("insert into people values (1)", "25006"),
        ("drop table people", "42601"), ("select lenght('a')", "42883"),
        ("select " + "1 + " * 3000 + "1", "54000"), ("select id from rides", "54000"), ("fetch 1 from nothing", "34000"),
        ("set nearly.errror = 1", "42704"), ("set nearly.error = 'much'", "22023"), ("copy people to stdout", "42601"),
    ],
)  # fmt: skip
def test_errors_have_their_code(text: str, code: str, connection: psycopg.Connection) -> None:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(text)
    assert caught.value.sqlstate == code, caught.value
    assert connection.execute("select 1").fetchone() == (1,)


def test_a_failed_transaction_waits_for_its_end(server: tuple[Server, Addresses]) -> None:
    with psycopg.connect(server[1].wire or "") as connection:
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute("select nme from people")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("select 1")
        connection.rollback()
        assert connection.execute("select 1").fetchone() == (1,)


def test_cursors_hand_rows_out_in_parts(server: tuple[Server, Addresses]) -> None:
    with psycopg.connect(server[1].wire or "") as connection:
        with connection.cursor("some") as cursor:
            cursor.execute("select id from people order by id")
            assert cursor.fetchmany(3) == [(1,), (2,), (3,)]
            assert len(cursor.fetchall()) == 7
        connection.execute("declare c no scroll cursor without hold for select id from people order by id")
        assert connection.execute("fetch forward 2 from c").fetchall() == [(1,), (2,)]
        assert connection.execute("fetch c").fetchall() == [(3,)]
        assert len(connection.execute("fetch all in c").fetchall()) == 7
        connection.execute("close c")


def test_cancel_and_a_client_that_is_gone(server: tuple[Server, Addresses]) -> None:
    pool = server[0].desk.pool
    with psycopg.connect(server[1].wire or "", autocommit=True) as connection:
        threading.Timer(0.5, connection.cancel_safe).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(LONG)
        assert connection.execute("select 1").fetchone() == (1,)
    _until(lambda: not pool.running)
    connection = psycopg.connect(server[1].wire or "", autocommit=True)
    thread = threading.Thread(target=_fails, args=(connection,), daemon=True)
    thread.start()
    _until(lambda: pool.running)
    with socket.socket(fileno=os.dup(connection.pgconn.socket)) as wire:
        wire.shutdown(socket.SHUT_RDWR)
    began = time.monotonic()
    _until(lambda: not pool.running)
    assert time.monotonic() - began < 10
    thread.join(10)


def _fails(connection: psycopg.Connection) -> None:
    with contextlib.suppress(psycopg.Error):
        connection.execute(LONG)


def _until(found: Any, seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_goals_bounds_and_the_notice() -> None:
    db = ConvergingSession(pace=0.01)
    with served(db, wire_port=0) as (_, at), psycopg.connect(at.wire or "", autocommit=True) as connection:
        notices: list[str] = []
        connection.add_notice_handler(lambda each: notices.append(each.message_primary or ""))
        assert len(connection.execute("select city, rides, fare from rides").fetchall()) == 8
        assert notices == []
        connection.execute("select city, rides, fare from rides within 5%")
        assert "an estimate" in notices[-1]
        assert "at 95 % confidence" in notices[-1]
        connection.execute("set nearly.error = '5%'")
        connection.execute("set nearly.bounds = on")
        cursor = connection.execute("select city, rides, fare from rides")
        names = [each.name for each in cursor.description or ()]
        assert names == ["city", "rides", "rides_low", "rides_high", "fare", "fare_low", "fare_high"]
        assert all(row[2] < row[1] < row[3] for row in cursor.fetchall())
        assert len(notices) == 2
        connection.execute("reset all")
        assert connection.execute("show nearly.error").fetchone() == ("",)


def test_who_may_connect(server: tuple[Server, Addresses]) -> None:
    at = server[1]
    for password in ("", "wrong", at.token + "x"):
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(f"host=127.0.0.1 port={at.wire_port} user=nearly dbname=nearly password='{password}' connect_timeout=5")
    with socket.create_connection(("127.0.0.1", at.wire_port or 0), timeout=10) as wire:
        wire.sendall(b"\x7f\xff\xff\xff\x00\x03\x00\x00")
        assert wire.recv(10) == b""
    with socket.create_connection(("127.0.0.1", at.wire_port or 0), timeout=10) as wire:
        wire.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert wire.recv(10) == b""


def test_changes_where_they_are_allowed(db: nearly.Session) -> None:
    with served(db, wire_port=0, changes=True) as (_, at):
        with psycopg.connect(at.wire or "", autocommit=True) as connection:
            assert connection.execute("insert into rides values ('Oslo', 1.5, 77777)").statusmessage == "INSERT 0 1"
            assert connection.execute("delete from rides where id = 77777").statusmessage == "DELETE 1"
        with psycopg.connect(at.wire or "") as connection, pytest.raises(psycopg.errors.FeatureNotSupported, match="autocommit"):
            connection.execute("delete from rides where id = 1")


def test_asyncpg(server: tuple[Server, Addresses]) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def talk() -> None:
        connection = await asyncpg.connect(server[1].wire)
        rows = await connection.fetch(
            "select name, salary from people where id < $1 and dept = $2 order by id limit $3", 9, "eng", 2
        )
        assert [tuple(row) for row in rows] == [("Ada", Decimal("5200.00")), ("Bob ", Decimal("4100.50"))]
        assert await connection.fetchval("select count(*) from people where born = $1", dt.date(1988, 2, 29)) == 1
        statement = await connection.prepare("select id from people where name = $1")
        assert [await statement.fetchval(name) for name in ("Ada", "bob", "nobody")] == [1, 3, None]
        async with connection.transaction():
            assert [row["id"] async for row in connection.cursor("select id from people order by id", prefetch=4)] == list(
                range(1, 11)
            )
        with pytest.raises(asyncpg.UndefinedColumnError):
            await connection.fetch("select nme from people")
        await connection.close()

    asyncio.run(talk())


def test_sqlalchemy_reflects_and_asks(server: tuple[Server, Addresses]) -> None:
    sa = pytest.importorskip("sqlalchemy")
    engine = sa.create_engine((server[1].wire or "").replace("postgresql://", "postgresql+psycopg://"))
    inspector = sa.inspect(engine)
    assert {"rides", "people"} <= set(inspector.get_table_names())
    assert inspector.get_materialized_view_names() == ["by_city"]
    types = {each["name"]: str(each["type"]) for each in inspector.get_columns("people")}
    assert (types["id"], types["salary"], types["joined"]) == ("INTEGER", "NUMERIC(9, 2)", "TIMESTAMP")
    metadata = sa.MetaData()
    metadata.reflect(engine, only=["people"])
    people = metadata.tables["people"]
    query = (
        sa.select(people.c.dept, sa.func.count().label("n")).where(people.c.id < 8).group_by(people.c.dept).order_by("n", "dept")
    )
    with engine.connect() as connection:
        assert connection.execute(query.limit(2)).fetchall() == [(None, 1), ("eng", 2)]
    engine.dispose()


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not there")
def test_psql(server: tuple[Server, Addresses]) -> None:
    def psql(*commands: str) -> str:
        given = [word for command in commands for word in ("-c", command)]
        done = subprocess.run(
            ["psql", server[1].wire or "", "-X", "-A", "-t", *given], capture_output=True, text=True, timeout=60, check=False
        )
        assert "does not understand" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    assert "public|rides|table|nearly" in psql("\\dt")
    assert "by_city" in psql("\\dm")
    described = psql("\\d people")
    assert "salary|numeric(9,2)" in described
    assert "id|integer||not null" in described
    psql("\\d", "\\d+ rides", "\\dn", "\\l", "\\du", "\\dv", "\\df", "\\di", "\\dT", "\\dp", "\\dx", "\\d by_city")
    assert "Timing is on" in psql("\\timing", "select 1")
    assert psql("select count(*) from rides").strip() == "16000"
    assert "did you mean 'name'?" in psql("select nme from people")
    assert psql("begin", "declare c cursor for select id from people order by 1", "fetch 2 from c", "commit").split() == [
        "BEGIN", "DECLARE", "CURSOR", "1", "2", "COMMIT",
    ]  # fmt: skip


def test_limits_hold_on_the_wire(db: nearly.Session) -> None:
    with (
        served(db, wire_port=0, limits=Limits(seconds=0.5)) as (_, at),
        psycopg.connect(at.wire or "", autocommit=True) as connection,
    ):
        with pytest.raises(psycopg.Error, match="max-seconds"):
            connection.execute(LONG)
        assert connection.execute("select 1").fetchone() == (1,)
