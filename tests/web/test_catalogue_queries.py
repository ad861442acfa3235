"""Queries of the catalogue as tools send them: each is understood, and those about tables find them."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import psycopg
import pytest

from nearly.web.server import Addresses, Server

_FOLDER = Path(__file__).with_name("catalogue")
QUERIES = dict(re.findall(r"^-- (.+)\n([^;]+);$", (_FOLDER / "tables_and_columns.sql").read_text(), re.MULTILINE))
"""What tools send to find tables and columns, by the tool."""
TOOLS = [
    pytest.param(what, text, id=f"{tool}: {name}")
    for tool in ("grafana", "metabase", "superset", "dbeaver")
    for name, what, text in re.findall(r"^-- (.+): (.+)\n([^;]+);$", (_FOLDER / f"{tool}.sql").read_text(), re.MULTILINE)
]
"""What else they send while somebody looks around, and a value that the answer has; a `-` where there is nothing to find."""


@pytest.mark.parametrize("name", QUERIES)
def test_tables_and_columns_are_found(name: str, server: tuple[Server, Addresses]) -> None:
    rows, notices = _asked(QUERIES[name], server)
    assert notices == []
    assert {"rides", "city"} & {str(value) for row in rows for value in row}


@pytest.mark.parametrize(("what", "text"), TOOLS)
def test_tools_look_around(what: str, text: str, server: tuple[Server, Addresses]) -> None:
    rows, notices = _asked(text, server)
    assert notices == []
    values = {str(value) for row in rows for value in row}
    assert not values if what == "-" else what in values


@pytest.mark.parametrize(
    "text",
    [
        "SELECT current_schema(), session_user",
        "SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE datallowconn AND NOT datistemplate ORDER BY db.datname",
        "SELECT n.oid, n.* FROM pg_catalog.pg_namespace n WHERE n.oid <> 0 ORDER BY nspname",
        "SELECT * FROM pg_catalog.pg_settings where name = 'standard_conforming_strings'",
        "SELECT t.oid, t.typname, t.typelem, t.typarray FROM pg_catalog.pg_type t WHERE t.typtype = 'b' ORDER BY t.oid",
        "SELECT current_setting('server_version_num')::int / 100 as version",
        "SELECT pg_catalog.format_type(a.atttypid, a.atttypmod) FROM pg_catalog.pg_attribute a WHERE a.attnum > 0",
        "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' ESCAPE '\\' ORDER BY nspname",
        "SELECT has_schema_privilege('public', 'USAGE'), pg_is_in_recovery(), pg_backend_pid() > 0",
        "SELECT count(*) FROM pg_stat_activity",
        "select set_config('application_name', 'a tool', false)",
    ],
)  # fmt: skip
def test_other_questions_are_understood(text: str, server: tuple[Server, Addresses]) -> None:
    assert _asked(text, server)[1] == []


def test_a_query_that_is_not_understood_finds_nothing_and_says_so(server: tuple[Server, Addresses]) -> None:
    rows, notices = _asked("select no_such_function(oid) as a from pg_catalog.pg_class", server)
    assert rows == []
    assert "does not understand" in notices[0]


def test_the_catalogue_reads_nothing_else(server: tuple[Server, Addresses]) -> None:
    for text in (
        "select * from pg_catalog.pg_class, read_csv('/etc/passwd')",
        "select * from pg_catalog.pg_class c, glob('/etc/*') g",
        "select pg_read_file('/etc/passwd')",
    ):
        with contextlib.suppress(psycopg.Error):
            rows, notices = _asked(text, server)
            assert rows == []
            assert notices


def _asked(text: str, server: tuple[Server, Addresses]) -> tuple[list[tuple[object, ...]], list[str]]:
    with psycopg.connect(server[1].wire or "", autocommit=True) as connection:
        notices: list[str] = []
        connection.add_notice_handler(lambda each: notices.append(each.message_primary or ""))
        return connection.execute(text).fetchall(), notices
