"""Statements that a client of the wire keeps: PREPARE, EXECUTE and DEALLOCATE in words, cursors, changes with parameters."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.web.server import Addresses, Server
from tests.fixtures.driver_only import driver_only
from tests.web.serving import served


@pytest.fixture
def connection(server: tuple[Server, Addresses]) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server[1].wire or "", autocommit=True) as found:
        yield found


def rows(connection: psycopg.Connection, text: str) -> list[tuple[Any, ...]]:
    return connection.execute(text).fetchall()


def code_of(connection: psycopg.Connection, text: str) -> str:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(text)
    assert connection.execute("select 1").fetchone() == (1,)
    return caught.value.sqlstate or ""


def test_a_statement_is_prepared_and_executed_with_values(connection: psycopg.Connection) -> None:
    assert (
        connection.execute("prepare by_id (int, text) as select name from people where id = $1 and name <> $2").statusmessage
        == "PREPARE"
    )
    done = connection.execute("execute by_id(1, 'x')")
    assert (done.statusmessage, done.fetchall()) == ("SELECT 1", [("Ada",)])
    assert rows(connection, "EXECUTE BY_ID (1 + 2, '')") == [("bob",)]
    assert rows(connection, 'execute "by_id"(null, null)') == []
    assert connection.execute("deallocate by_id").statusmessage == "DEALLOCATE"
    assert code_of(connection, "execute by_id(1, 'x')") == "26000"


def test_types_are_told_or_found(connection: psycopg.Connection) -> None:
    connection.execute('/* a tool */ prepare "A;b" as select count(*) from people where born = $1 or salary = $2 -- ;')
    assert rows(connection, "execute \"A;b\"('1988-02-29', 4100.50)") == [(4,)]
    assert rows(connection, "execute \"A;b\"(date '1988-02-29', null)") == [(1,)]
    connection.execute("prepare some as select id from people order by id limit $1 offset $2")
    assert rows(connection, "execute some(2, 1)") == [(2,), (3,)]
    connection.execute(
        "prepare kinds (numeric(9, 2), boolean, double precision, date) as select $1 as a, $2 as b, $3 as c, $4 as d"
    )
    assert rows(connection, "execute kinds(-1.25, true, 1 + 0.5, '2024-01-02')") == [
        (Decimal("-1.25"), True, 1.5, dt.date(2024, 1, 2))
    ]
    connection.execute("prepare one as select 1 as a; execute one; deallocate all")
    assert code_of(connection, "execute one") == "26000"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("execute kept", "42601"), ("execute kept()", "42601"), ("execute kept(1, 2)", "42601"), ("execute kept(1", "42601"),
        ("execute kept('x')", "22P02"), ("execute kept(id)", "42601"), ("execute kept((select 1))", "42601"),
        ("execute kept(count(*))", "42601"), ("execute kept(1) where true", "42601"), ("execute", "42601"), ("prepare", "42601"),
        ("prepare kept as select 1", "42P05"), ("prepare p (no_type) as select 1", "42704"), ("prepare p", "42601"),
        ("prepare p as", "42601"), ("prepare p as prepare q as select 1", "42601"), ("prepare p as begin", "42601"),
        ("prepare p as select nothing from people", "42703"), ("prepare p (int as select 1", "42601"),
        ("deallocate nothing", "26000"), ("execute nothing", "26000"), ("prepare p as select 'open", "42601"),
    ],
)  # fmt: skip
def test_mistakes_are_told_and_leave_what_is_kept(connection: psycopg.Connection, text: str, code: str) -> None:
    connection.execute("prepare kept as select name from people where id = $1")
    assert code_of(connection, text) == code
    assert rows(connection, "execute kept(1)") == [("Ada",)]


def test_statements_of_the_protocol_and_of_words_are_the_same(connection: psycopg.Connection) -> None:
    connection.pgconn.prepare(b"one", b"select name from people where id = $1")
    assert rows(connection, "execute one(1)") == [("Ada",)]
    connection.execute("prepare two (int) as select $1 + 1 as n")
    assert connection.pgconn.exec_prepared(b"two", [b"4"]).get_value(0, 0) == b"5"
    connection.execute("discard all")
    assert code_of(connection, "execute two(1)") == "26000"


def test_cursors_take_parameters_fold_names_and_know_their_end(server: tuple[Server, Addresses]) -> None:
    with psycopg.connect(server[1].wire or "") as connection:
        with connection.cursor("Some one") as cursor:
            cursor.execute("select id from people where id > %s order by id", [7])
            assert cursor.fetchall() == [(8,), (9,), (10,)]
        connection.execute("declare C cursor for select id from people order by id")
        assert connection.execute("move 2 in c").statusmessage == "MOVE 2"
        assert connection.execute("fetch next from C").fetchall() == [(3,)]
        assert connection.execute("fetch 0 from c").fetchall() == []
        with connection.cursor("kept", withhold=True) as kept:
            kept.execute("select id from people order by id")
            assert kept.fetchone() == (1,)
            connection.commit()
            assert kept.fetchone() == (2,)
        connection.commit()
        for text, code in (
            ("fetch 1 from c", "34000"), ("close c", "34000"),
            ("declare d cursor for select 1; declare d cursor for select 2", "42P03"),
            ("declare e cursor for select 1; fetch prior from e", "55000"), ("declare e cursor for begin", "42601"),
        ):  # fmt: skip
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(text)
            assert caught.value.sqlstate == code
            connection.rollback()


def test_comments_before_a_statement_are_no_part_of_it(connection: psycopg.Connection) -> None:
    connection.execute("/* tool */ begin")
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    assert rows(connection, "-- why\nshow server_version") == [("16.0",)]
    connection.execute("-- done\ncommit")
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_changes_take_parameters(db: nearly.Session) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def insert(address: str) -> str:
        connection = await asyncpg.connect(address)
        done = await connection.execute("insert into public.rides (id, city, fare) values ($1, $2, $3)", 88888, "O'Hare", 2.5)
        await connection.close()
        return str(done)

    with served(db, wire_port=0, changes=True) as (_, at), psycopg.connect(at.wire or "", autocommit=True) as connection:
        assert connection.execute("insert into rides values (%s, %s, %s)", ["Oslo", 1.5, 77777]).statusmessage == "INSERT 0 1"
        assert asyncio.run(insert(at.wire or "")) == "INSERT 0 1"
        connection.execute("prepare raise as update rides set fare = fare + $1 where id = $2")
        assert connection.execute("execute raise(1, 88888)").statusmessage == "UPDATE 1"
        found = connection.execute('select "city", fare from rides where id > %s order by id', [20000]).fetchall()
        assert found == [("Oslo", 1.5), ("O'Hare", 3.5)]
        assert connection.execute("delete from rides where id in (%s, %s)", [77777, 88888]).statusmessage == "DELETE 2"


def test_a_statement_over_a_table_that_has_other_columns_now(tmp_path: Path) -> None:
    for place, columns in enumerate(({"a": [1]}, {"a": [1], "b": ["x"]})):
        pq.write_table(pa.table(columns), tmp_path / f"{place}.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", str(tmp_path / "0.parquet"))
        with served(db, wire_port=0) as (_, at), psycopg.connect(at.wire or "", autocommit=True) as connection:
            connection.execute("prepare every as select * from t")
            assert rows(connection, "execute every") == [(1,)]
            db.register("t", str(tmp_path / "1.parquet"))
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="must not change result type"):
                connection.execute("execute every")
            assert rows(connection, "select * from t") == [(1, "x")]
