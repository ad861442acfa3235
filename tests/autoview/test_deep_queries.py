"""Queries as deep as the planner takes: the list of views is saved, read again and closed whatever is in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.autoview import listing
from nearly.autoview.store import LIST, read_list
from nearly.engine.storage.serialise import opened
from nearly.errors import EngineError
from tests.autoview.keen import held_still, keen
from tests.fixtures.driver_only import driver_only

DEEP = f"select max({' + '.join(['x', *['y'] * 260])}) as z from t"
FLAT = "select sum(x) as s from t"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    pq.write_table(pa.table({"x": [number % 50 for number in range(3000)], "y": list(range(3000))}), tmp_path / "t.parquet")
    with keen(), driver_only(tmp_path / "catalog") as session:
        session.register("t", str(tmp_path / "t.parquet"))
        yield session


def left(path: Path) -> int:
    """How many views the next session finds."""
    with driver_only(path) as again:
        return len(held_still(again.autoview("1MB", policy="lru")).status().views)


def test_views_of_deep_queries_survive(db: nearly.Session, tmp_path: Path) -> None:
    auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    db.sql(DEEP).exact()
    auto.settle()
    kept = len(auto.status().views)
    assert kept
    db.close()
    assert left(tmp_path / "catalog") == kept


def test_a_view_that_is_too_deep_is_left_out(db: nearly.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    for text in (DEEP, FLAT):
        db.sql(text).exact()
    kept, facts = len(auto.status().views), len(auto.keeping.mining.facts)
    monkeypatch.setattr(listing, "DEEPEST", 100)
    db.close()
    assert 0 < left(tmp_path / "catalog") < kept
    assert len(read_list(tmp_path / "catalog" / "autoview")["facts"]) == facts  # type: ignore[index]


@pytest.mark.parametrize("end", ["close", "off"])
def test_a_list_that_cannot_be_saved_leaves_no_lock(
    db: nearly.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    auto = held_still(db.autoview("1MB", policy="lru"))

    def fail(_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(listing, "save", fail)
    with pytest.raises(RecursionError):
        getattr(auto, end)()
    monkeypatch.undo()
    assert left(tmp_path / "catalog") == 0


def test_a_list_that_is_too_deep_is_damaged(db: nearly.Session, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="RecursionError"):
        opened("[" * 100_000, dict)
    db.autoview("1MB").close()
    (tmp_path / "catalog" / "autoview" / LIST).write_text("[" * 100_000)
    assert left(tmp_path / "catalog") == 0
