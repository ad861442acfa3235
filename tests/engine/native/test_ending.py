"""An exact query is ended by another thread, within a moment, and nothing is run again elsewhere."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.native.engine import Native
from nearly.engine.native.running import Ending, Stopped
from tests.fixtures.driver_only import driver_only

LONG = "select count(*) as n from big a join big b on a.v < b.v join big c on b.v < c.v"


def _session(home: Path) -> nearly.Session:
    pq.write_table(pa.table({"v": list(range(20_000))}), home / "big.parquet")
    db = driver_only(home / "catalog")
    db.register("big", str(home / "big.parquet"))
    return db


@pytest.mark.parametrize("ask", [nearly.Query.exact, list])
def test_a_stop_ends_an_exact_run(ask: Callable[[nearly.Query], object], tmp_path: Path) -> None:
    with _session(tmp_path) as db:
        query = db.sql(LONG)
        threading.Timer(0.5, query.stop).start()
        began = time.monotonic()
        with contextlib.suppress(Stopped):
            assert ask(query) == []
        assert time.monotonic() - began < 20
        assert db.sql("select count(*) as n from big").exact().table.to_pylist() == [{"n": 20_000}]


def test_nothing_begins_after_the_end() -> None:
    ending = Ending()
    called: list[int] = []
    with ending.breaking(lambda: called.append(1)):
        ending.wish()
    assert called == [1]
    with pytest.raises(Stopped):
        ending.refuse()
    with pytest.raises(Stopped), ending.breaking(lambda: None):
        pass


def test_no_statement_begins_after_the_end() -> None:
    """Whoever ends a query between two of its statements must not wait for the second one."""
    engine, ending = Native(), Ending()
    assert engine.run("select 1 as a", (), {}, ending.running).num_rows == 1
    ending.wish()
    with pytest.raises(duckdb.InterruptException):
        engine.run("select 1 as a", (), {}, ending.running)
    engine.close()
