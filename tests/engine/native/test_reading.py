"""How files are looked at before a query reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearly.engine.native import reading
from nearly.engine.native.reading import NativeReader


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"A": pa.array([1], pa.int16()), "b": ["x"]}), path)
    return str(path)


def test_sessions_look_at_files_through_one_engine(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening an engine takes longer than all else that opening a session does."""
    connect, opened = duckdb.connect, []

    def counted(**options: Any) -> duckdb.DuckDBPyConnection:
        opened.append(options)
        return connect(**options)

    reading._looking.cache_clear()
    monkeypatch.setattr(duckdb, "connect", counted)
    assert [NativeReader()._described(file, {}) for _ in range(3)] == [{"a": "SMALLINT", "b": "VARCHAR"}] * 3
    assert len(opened) == 1


def test_a_forked_child_looks_at_files_through_its_own(file: str) -> None:
    reader = NativeReader()
    assert reader._described(file, {}) == {"a": "SMALLINT", "b": "VARCHAR"}
    child = os.fork()
    if child == 0:
        found = NativeReader()._described(file, {})
        os._exit(0 if found == {"a": "SMALLINT", "b": "VARCHAR"} else 1)
    assert os.waitpid(child, 0)[1] == 0
