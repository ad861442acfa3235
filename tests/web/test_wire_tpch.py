"""The 22 TPC-H queries by real clients: what they get is what Spark SQL answers."""

from __future__ import annotations

import asyncio
import csv
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from benchmarks.agreement import difference
from benchmarks.tpch.data import ensure_tables
from benchmarks.tpch.queries import NUMBERS, query
from nearly.web.limits import Limits
from tests.answer_tpch import SCALE
from tests.fixtures.driver_only import driver_only
from tests.web.serving import served

pytestmark = pytest.mark.long
JDBC = next((path for path in (Path("/usr/share/java/postgresql.jar"),) if path.exists()), None)
PROGRAM = Path(__file__).with_name("Ask.java")


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with driver_only(tmp_path_factory.mktemp("wire") / "catalog") as db:
        for name, table in ensure_tables(SCALE).items():
            db.register(name, table)
        with served(db, wire_port=0, limits=Limits()) as (_, found):
            yield found


def _table(rows: list[Any], like: pa.Table) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in like.column_names]
    return pa.Table.from_arrays(
        [pa.array(list(c), f.type) for c, f in zip(columns, like.schema, strict=True)], names=like.column_names
    )


def _read(rows: list[list[str]], like: pa.Table) -> pa.Table:
    """Rows as a client writes them, read as what they were."""
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in like.column_names]
    arrays = [pa.array(list(each), pa.string()).cast(field.type) for each, field in zip(columns, like.schema, strict=True)]
    return pa.Table.from_arrays(arrays, names=like.column_names)


def test_psycopg_and_asyncpg(at: Any, tpch_expected: dict[int, pa.Table]) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def ask() -> dict[int, list[Any]]:
        connection = await asyncpg.connect(at.wire)
        found = {number: [tuple(row) for row in await connection.fetch(query(number, SCALE))] for number in NUMBERS}
        await connection.close()
        return found

    with psycopg.connect(at.wire, autocommit=True) as connection:
        texts = {number: connection.execute(query(number, SCALE)).fetchall() for number in NUMBERS}
    binary = asyncio.run(ask())
    for number in NUMBERS:
        expected = tpch_expected[number]
        for rows in (texts[number], binary[number]):
            assert difference(expected, _table(rows, expected), query(number, SCALE)) is None, number


def test_sqlalchemy(at: Any, tpch_expected: dict[int, pa.Table]) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    engine = sqlalchemy.create_engine(at.wire.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        for number in NUMBERS:
            text = query(number, SCALE)
            rows = [tuple(row) for row in connection.execute(sqlalchemy.text(text.replace(":", r"\:")))]
            assert difference(tpch_expected[number], _table(rows, tpch_expected[number]), text) is None, number
    engine.dispose()


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not there")
def test_psql(at: Any, tpch_expected: dict[int, pa.Table], tmp_path: Path) -> None:
    for number in NUMBERS:
        file = tmp_path / f"{number}.sql"
        file.write_text(query(number, SCALE))
        command = ["psql", at.wire, "-X", "--csv", "-t", "-v", "ON_ERROR_STOP=1", "-f", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        found = _read(list(csv.reader(done.stdout.splitlines())), tpch_expected[number])
        assert difference(tpch_expected[number], found, query(number, SCALE)) is None, number


@pytest.mark.skipif(JDBC is None or shutil.which("javac") is None, reason="no JDBC driver (libpostgresql-jdbc-java) or no javac")
def test_jdbc(at: Any, tpch_expected: dict[int, pa.Table], tmp_path: Path) -> None:
    subprocess.run(["javac", "-d", str(tmp_path), str(PROGRAM)], check=True, capture_output=True, timeout=300)
    files = []
    for number in NUMBERS:
        files.append(tmp_path / f"{number}.sql")
        files[-1].write_text(query(number, SCALE))
    address = f"jdbc:postgresql://127.0.0.1:{at.wire_port}/nearly"
    command = ["java", "-cp", f"{tmp_path}:{JDBC}", "Ask", address, at.token, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert {line[1] for line in lines if line[0] == "table"} >= {"lineitem", "nation", "orders"}
    assert [line[2] for line in lines if line[0] == "column"] == ["int8", "text", "int8", "text"]
    assert ["asked", "GERMANY"] in lines
    assert ["trouble", "42703"] in lines
    for number in NUMBERS:
        found = _read([line[2:] for line in lines if line[:2] == ["row", str(number)]], tpch_expected[number])
        assert difference(tpch_expected[number], found, query(number, SCALE)) is None, number
