"""Odd and hostile clients of the wire: wrong counts, values that are none, long numbers, texts of nothing, nonsense in settings."""

from __future__ import annotations

import contextlib
import logging
import os
import pty
import select
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import pq

from nearly.web.server import Addresses, Server
from tests.web.conftest import LONG


@pytest.fixture
def connection(server: tuple[Server, Addresses]) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server[1].wire or "", autocommit=True) as found:
        yield found


def code_of(result: Any) -> str:
    return (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()


def fails(connection: psycopg.Connection, text: str, *values: Any) -> str:
    """The code of an error, after which the connection still answers."""
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(text, values or None)
    assert connection.execute("select 1").fetchone() == (1,)
    assert caught.value.sqlstate is not None
    return caught.value.sqlstate


def test_as_many_values_as_parameters(connection: psycopg.Connection) -> None:
    """A value that is left out would silently be null, and one too many be forgotten."""
    wire = connection.pgconn
    assert code_of(wire.exec_params(b"select $1, $2", [b"1"])) == "08P01"
    wire.prepare(b"one", b"select count(*) from people where id = $1")
    assert code_of(wire.exec_prepared(b"one", [])) == "08P01"
    assert code_of(wire.exec_prepared(b"one", [b"1", b"2"])) == "08P01"
    assert wire.exec_prepared(b"one", [b"1"]).get_value(0, 0) == b"1"
    assert fails(connection, "select $1::int") == "42P02"


def test_names_of_prepared_statements(connection: psycopg.Connection) -> None:
    wire = connection.pgconn
    wire.prepare(b"one", b"select 1")
    assert code_of(wire.prepare(b"one", b"select 2")) == "42P05"
    assert code_of(wire.exec_prepared(b"none", [])) == "26000"
    assert code_of(wire.exec_(b"deallocate one")) == ""
    assert code_of(wire.exec_prepared(b"one", [])) == "26000"
    assert code_of(wire.exec_(b"deallocate one")) == "26000"
    wire.prepare(b"one", b"select 1")
    wire.exec_(b"discard all")
    assert code_of(wire.exec_prepared(b"one", [])) == "26000"


@pytest.mark.parametrize(
    ("oid", "value", "binary", "code"),
    [
        (23, b"\0\0", 1, "22P03"), (23, b"x", 0, "22P02"), (20, b"1_0", 0, "22P02"), (25, b"\xff", 0, "22P02"),
        (1700, b"1", 1, "22P03"), (1700, b"much", 0, "22P02"), (1007, b"{1,2", 0, "22P02"), (16, b"maybe", 0, "22P02"),
        (17, b"\\xzz", 0, "22P02"), (1700, b"1e999999999", 0, "22P02"),
    ],
)  # fmt: skip
def test_values_that_are_none_of_their_type(connection: psycopg.Connection, oid: int, value: bytes, binary: int, code: str) -> None:
    assert code_of(connection.pgconn.exec_params(b"select $1 as v", [value], [oid], [binary])) == code
    assert connection.execute("select 1").fetchone() == (1,)


def test_truth_and_numbers_keep_what_they_say(connection: psycopg.Connection) -> None:
    wire = connection.pgconn
    for value, told in ((b"TRUE", b"t"), (b"yes", b"t"), (b"off", b"f"), (b"0", b"f")):
        assert wire.exec_params(b"select $1 as v", [value], [16]).get_value(0, 0) == told
    for number in ("12345678901234567890123456789012345678", "-0.00000000000000000000000000000000000012", "1E-20", "1.5E+3"):
        for mark in ("%s", "%b"):
            row = connection.execute(f"select {mark} as v", [Decimal(number)]).fetchone()
            assert row == (Decimal(number),)
    assert fails(connection, "select %s as v", Decimal(10**40 + 1)) == "42804"


def test_texts_of_nothing_and_texts_that_are_no_text(connection: psycopg.Connection) -> None:
    for text in ("", ";", "-- ping", "/* nothing */ ; -- at all"):
        assert connection.pgconn.exec_(text.encode()).status == pq.ExecStatus.EMPTY_QUERY
    assert code_of(connection.pgconn.exec_(b"select '\xff\xfe'")) == "22021"
    assert connection.execute("select 1 -- ;").fetchone() == (1,)
    for text, code in (("select 'open", "42601"), ("select /* open", "42601"), ("select * from elsewhere.rides", "42P01")):
        assert fails(connection, text) == code


def test_refusals_are_silent_on_the_server_and_name_what_was_written(
    connection: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    refused = {"truncate people": "TRUNCATE", "call f()": "CALL", "table people": "TABLE", "explain x": "X", "reindex p": "REINDEX"}
    for text, word in refused.items():
        with caplog.at_level(logging.INFO), pytest.raises(psycopg.Error, match=f"is accepted, not {word};|read-only"):
            connection.execute(text)
    assert not [each for each in caplog.records if each.name == "sqlglot"]


def test_transactions_as_clients_believe_in_them(server: tuple[Server, Addresses]) -> None:
    with psycopg.connect(server[1].wire or "", autocommit=True) as connection:
        status = connection.info
        for text in ("savepoint a", "release a", "rollback to a"):
            assert fails(connection, text) == "25P01"
        connection.execute("begin; select 1; savepoint a")
        assert status.transaction_status == pq.TransactionStatus.INTRANS
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute("select nothing")
        assert status.transaction_status == pq.TransactionStatus.INERROR
        connection.execute("rollback to savepoint a")
        assert connection.execute("select 1").fetchone() == (1,)
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute("select nothing; select 2")
        assert connection.execute("commit").statusmessage == "ROLLBACK"
        assert status.transaction_status == pq.TransactionStatus.IDLE
        assert connection.execute("begin; select 1; rollback").statusmessage == "BEGIN"
        assert status.transaction_status == pq.TransactionStatus.IDLE


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("set nearly.error = 'nan'", "22023"), ("set nearly.seconds = 'inf'", "22023"), ("set nearly.error = '-1%'", "22023"),
        ("set nearly.confidence = 95", "22023"), ("set nearly.bounds = perhaps", "22023"), ("set nearly.x.y = 1", "42704"),
        ("show nothing", "42704"), ("set time zone 'Nowhere/Land'", "22023"), ("set statement_timeout = 'soon'", "22023"),
        ("set client_encoding = 'LATIN1'", "0A000"),
    ],
)  # fmt: skip
def test_settings_of_nonsense(connection: psycopg.Connection, text: str, code: str) -> None:
    assert fails(connection, text) == code


def test_settings_that_make_sense(connection: psycopg.Connection) -> None:
    for text in ("set time zone 'Europe/Berlin'", "set timezone to '+2'", "set client_encoding = 'utf-8'", "set a.b = 'c'"):
        connection.execute(text)
    assert connection.execute("show a.b").fetchone() == ("c",)
    connection.execute("set nearly.seconds = 1e300")
    assert connection.execute("select count(*) from people").fetchone() == (10,)


def test_a_query_ends_with_its_timeout(connection: psycopg.Connection, server: tuple[Server, Addresses]) -> None:
    connection.execute("set statement_timeout = '200ms'")
    began = time.monotonic()
    with pytest.raises(psycopg.errors.QueryCanceled, match="statement_timeout"):
        connection.execute(LONG)
    assert time.monotonic() - began < 20
    until(lambda: not server[0].desk.pool.running)


def test_show_and_describe(connection: psycopg.Connection) -> None:
    assert "rides" in {row[0] for row in connection.execute("show tables").fetchall()}
    assert connection.execute("describe rides").fetchall()[0] == ("city", "string", False)
    assert fails(connection, "describe nothing") == "42P01"


def test_a_slow_query_of_the_catalogue_blocks_no_other(server: tuple[Server, Addresses]) -> None:
    slow = "select count(*) from " + ", ".join(f"pg_catalog.pg_attribute a{place}" for place in range(9))
    with (
        psycopg.connect(server[1].wire or "", autocommit=True) as first,
        psycopg.connect(server[1].wire or "", autocommit=True) as second,
    ):
        codes: list[str | None] = []
        asking = threading.Thread(target=_ended, args=(first, slow, codes), daemon=True)
        asking.start()
        time.sleep(0.3)
        began = time.monotonic()
        assert second.execute("select count(*) from pg_namespace").fetchone() == (3,)
        assert time.monotonic() - began < 5
        first.cancel_safe()
        asking.join(30)
        assert codes == ["57014"]
    with psycopg.connect(server[1].wire or "", autocommit=True) as connection:
        assert connection.execute("select pg_sleep(60)").fetchone() == (None,)
        assert connection.execute("select 'rides'::regclass = to_regclass('rides'), count(*) from pg_am group by 1").fetchone() == (
            True,
            2,
        )


def _ended(connection: psycopg.Connection, text: str, codes: list[str | None]) -> None:
    try:
        connection.execute(text)
    except psycopg.Error as trouble:
        codes.append(trouble.sqlstate)


def test_names_in_queries_of_the_catalogue_are_values(connection: psycopg.Connection) -> None:
    hostile = "x'; drop table pgc.pg_class; --"
    assert connection.execute("select * from pg_class where relname = %s", [hostile]).fetchall() == []
    assert connection.execute("select to_regclass(%s)", [hostile]).fetchone() == (None,)
    with contextlib.suppress(psycopg.Error):
        connection.execute("select * from pg_class; drop table pgc.pg_class")
    assert connection.execute("select count(*) from pg_class where relname = 'rides'").fetchone() == (1,)


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not there")
def test_an_interrupt_in_psql(server: tuple[Server, Addresses]) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.execvp("psql", ["psql", server[1].wire or "", "-X", "-P", "pager=off"])
    seen = Screen(terminal)
    try:
        seen.until(b"=>")
        os.write(terminal, f"{LONG};\n".encode())
        until(lambda: server[0].desk.pool.running)
        os.write(terminal, b"\x03")
        seen.until(b"canceling statement")
        seen.until(b"=>")
        os.write(terminal, b"select 40 + 2 as n;\n")
        seen.until(b"42")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


class Screen:
    """What a program writes on its terminal."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._written = b""

    def until(self, text: bytes, seconds: float = 60.0) -> None:
        """Wait for a text after those that were waited for before."""
        deadline = time.monotonic() + seconds
        while text not in self._written:
            assert time.monotonic() < deadline, self._written
            if select.select([self._terminal], [], [], 0.2)[0]:
                self._written += os.read(self._terminal, 65536)
        self._written = self._written.partition(text)[2]


def until(found: Callable[[], Any], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.01)
