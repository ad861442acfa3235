"""Keys of tables on the wire: psql, SQLAlchemy and the queries that tools send find them as primary keys."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fixtures.driver_only import driver_only
from tests.web.serving import served

PAIR = [("day",), ("Ride No",)]
JDBC = """
SELECT result.COLUMN_NAME FROM (SELECT current_database() AS TABLE_CAT, n.nspname AS TABLE_SCHEM, ct.relname AS TABLE_NAME,
a.attname AS COLUMN_NAME, (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ, ci.relname AS PK_NAME,
information_schema._pg_expandarray(i.indkey) AS KEYS, a.attnum AS A_ATTNUM
FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)
JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid) JOIN pg_catalog.pg_index i ON (a.attrelid = i.indrelid)
JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid) WHERE true AND n.nspname = 'public' AND ct.relname = 'rides'
AND i.indisprimary) result WHERE result.A_ATTNUM = (result.KEYS).x ORDER BY result.table_name, result.pk_name, result.key_seq
"""
STANDARD = """
select kcu.column_name from information_schema.table_constraints tc
join information_schema.key_column_usage kcu on tc.constraint_name = kcu.constraint_name and tc.table_name = kcu.table_name
where tc.constraint_type = 'PRIMARY KEY' and tc.table_schema = 'public' and tc.table_name = 'rides' order by kcu.ordinal_position
"""
BY_INDEX = """
select a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
where i.indrelid = 'rides'::regclass and i.indisprimary order by a.attnum desc
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home: Path = tmp_path_factory.mktemp("keys")
    pq.write_table(pa.table({"Ride No": [1, 2], "fare": [1.5, 2.5], "day": [1, 1]}), home / "rides.parquet")
    with driver_only(home / "catalog") as db:
        db.register("rides", str(home / "rides.parquet"), key=["day", "Ride No"])
        db.register("plain", str(home / "rides.parquet"))
        with served(db, wire_port=0) as (_, at):
            yield at.wire or ""


@pytest.mark.parametrize("text", [JDBC, STANDARD, BY_INDEX])
def test_queries_of_tools_find_the_key(address: str, text: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        notices: list[str] = []
        connection.add_notice_handler(lambda each: notices.append(each.message_primary or ""))
        assert connection.execute(text).fetchall() == PAIR
        assert notices == []


def test_sqlalchemy_reflects_the_key(address: str) -> None:
    sa = pytest.importorskip("sqlalchemy")
    engine = sa.create_engine(address.replace("postgresql://", "postgresql+psycopg://"))
    inspector = sa.inspect(engine)
    found = inspector.get_pk_constraint("rides")
    assert (found["name"], found["constrained_columns"]) == ("rides_pkey", ["day", "Ride No"])
    assert inspector.get_pk_constraint("plain")["constrained_columns"] == []
    metadata = sa.MetaData()
    metadata.reflect(engine)
    assert set(metadata.tables) == {"rides", "plain"}
    assert [column.name for column in metadata.tables["rides"].primary_key] == ["day", "Ride No"]
    engine.dispose()


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not there")
def test_psql_tells_the_key(address: str) -> None:
    asked = ["psql", address, "-X", "-c", "\\d rides", "-c", "\\di", "-c", "\\d rides_pkey"]
    said = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout
    assert '"rides_pkey" PRIMARY KEY, btree (day, "Ride No")' in said
    assert "public | rides_pkey | index | nearly | rides" in said
    assert 'primary key, btree, for table "public.rides"' in said
    assert "plain_pkey" not in said
