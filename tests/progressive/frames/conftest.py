"""One session with small tables for all tests of progressive frames."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import nearly
from tests.progressive.frames.tables import TABLES, write_tables


@pytest.fixture(scope="session")
def frame_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_tables(tmp_path_factory.mktemp("frames"))


@pytest.fixture(scope="session")
def frames(spark: Any, frame_files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    """A session that knows the tables; lines and orders are clustered by the order."""
    with nearly.connect(spark, path=tmp_path_factory.mktemp("catalog"), executors=1, cores=2, eager=True) as session:
        session.register("lines", frame_files["lines"], clustered_by=["order_id"])
        session.register("orders", frame_files["orders"], key=["order_id"], clustered_by=["order_id"])
        session.register("customers", frame_files["customers"], key=["customer"])
        session.register("empty", frame_files["empty"])
        yield session


@pytest.fixture(scope="session")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB alone, over the same tables."""
    with duckdb.connect() as connection:
        for name, make in TABLES.items():
            connection.register(name, make())
        yield connection
