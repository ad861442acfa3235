"""Rows of large tables by key: both versions of a table are told by the rows that stayed, which are read once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.deltas.lookups import KeyLookup
from tests.engine.deltas.judging import judged
from tests.fixtures.driver_only import driver_only
from tests.fixtures.large_tables import read_by_keys

JOINED = "select o.k, o.v, l.n, l.w from orders o join lines l on o.k = l.k"


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[nearly.Session]:
    """Orders, and two lines of each, some alike; doubles of both signs of zero are among them."""
    read_by_keys(monkeypatch)
    keys = list(range(40))
    pq.write_table(pa.table({"k": keys, "v": [f"v{k % 5}" for k in keys]}), tmp_path / "orders.parquet")
    lines = {"k": [k for k in keys for _ in range(2)], "n": [1] * 80, "w": [0.0 if k % 3 else -0.0 for k in range(80)]}
    for part, first in enumerate(range(0, 80, 20)):
        pq.write_table(pa.table(lines).slice(first, 20), tmp_path / f"lines{part}.parquet")
    with driver_only(tmp_path / "catalog") as session:
        session.register("orders", str(tmp_path / "orders.parquet"), key=["k"])
        session.register("lines", str(tmp_path / "lines*.parquet"))
        yield session


def change(db: nearly.Session, round_: int) -> None:
    """Orders and lines come, go and change; some of those that came before go again."""
    new = 100 + round_
    db.insert("orders", [{"k": new, "v": "new"}])
    db.insert("lines", [{"k": new, "n": 3, "w": 1.5}, {"k": 7, "n": 3, "w": -0.0}, {"k": new, "n": 3, "w": 1.5}])
    db.delete("lines", where=f"k = {3 + round_}")
    db.update("orders", {"v": "'other'"}, where=f"k in (7, {new - 1}, {20 + round_})")
    db.delete("lines", where=f"k = {new - 1} and n = 3")


def tables(db: nearly.Session) -> dict[str, Any]:
    return {name: db._engine.catalog.table(name) for name in ("orders", "lines")}


@pytest.mark.parametrize("rounds", [1, 3])
def test_both_versions_are_told_by_what_stayed(db: nearly.Session, rounds: int) -> None:
    """Also where rows came and went again meanwhile."""
    before = tables(db)
    for number in range(rounds):
        change(db, number)
    assert judged(db._engine, JOINED, before, tables(db)).reason is None


def test_after_a_compaction_both_versions_are_read(db: nearly.Session) -> None:
    before = tables(db)
    change(db, 0)
    db.compact("lines")
    change(db, 1)
    assert judged(db._engine, JOINED, before, tables(db)).reason is None


def test_a_table_is_read_once_for_both_versions(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tables(db)
    change(db, 0)
    asked: list[str] = []
    for name in ("rows", "rows_in_order"):
        original = getattr(KeyLookup, name)

        def noted(self: KeyLookup, *arguments: Any, original: Any = original) -> Any:
            asked.append(self.table.plain_name)
            return original(self, *arguments)

        monkeypatch.setattr(KeyLookup, name, noted)
    both = f"{JOINED} union all select a.k, '', b.n, b.w from lines a join lines b on a.k = b.k join orders o on a.k = o.k"
    assert judged(db._engine, both, before, tables(db)).reason is None
    assert "lines" in asked
    assert asked.count("lines") <= 2  # once, and for keys that were not among the first
