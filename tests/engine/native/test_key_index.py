"""Indexes of keys against reading all keys: over histories of changes by two sessions, for keys of every kind."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.changes.positions import by_key
from nearly.engine.costs import Costs
from nearly.engine.native import key_indexes
from nearly.engine.native.key_indexes import KeyIndexes
from nearly.engine.storage.layouts import Origin, Table
from nearly.errors import SchemaError
from tests.fixtures.driver_only import driver_only

Key = tuple[Any, ...]
KEYS: dict[str, tuple[list[pa.DataType], Callable[[int], Key]]] = {
    "int": ([pa.int32()], lambda n: (n - 50,)),
    "long": ([pa.int64()], lambda n: ((n - 50) * 10**17,)),
    "date": ([pa.date32()], lambda n: (dt.date(1969, 12, 1) + dt.timedelta(n),)),
    "timestamp": (
        [pa.timestamp("us", "UTC")],
        lambda n: (dt.datetime(1969, 12, 31, tzinfo=dt.UTC) + dt.timedelta(seconds=n * 0.7),),
    ),
    "decimal": ([pa.decimal128(18, 2)], lambda n: (Decimal(n - 50) * Decimal("123456789012345.67"),)),
    "large decimal": ([pa.decimal128(30, 2)], lambda n: (Decimal(n - 50) * Decimal(10) ** 20,)),
    "text": ([pa.string()], lambda n: ("it's " * (n % 5) + str(n),)),
    "float": ([pa.float64()], lambda n: ([float("nan"), -0.0, float("inf")][n] if n < 3 else n / 7,)),
    "several": ([pa.int32(), pa.string(), pa.bool_()], lambda n: (n // 10, "ab"[n % 2] * (n % 5), n % 10 < 5)),
}


def table_of(kind: str, numbers: list[int], values: list[int]) -> pa.Table:
    types, key = KEYS[kind]
    columns = list(zip(*map(key, numbers), strict=True)) if numbers else [()] * len(types)
    arrays = [pa.array(list(column), type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.table([*arrays, pa.array(values, pa.int64())], [*names(kind), "v"])


def names(kind: str) -> list[str]:
    return [f"k{place}" for place in range(len(KEYS[kind][0]))]


class _Files(KeyIndexes):
    """Reads the files each time."""

    def _index(self, *_: Any) -> None:
        return None


def found(db: nearly.Session, indexes: KeyIndexes, table: Table, keys: pa.Table) -> list[tuple[Any, ...]]:
    engine = db._engine
    kept, engine.key_indexes = engine.key_indexes, indexes
    try:
        rows = by_key(engine, table, table.base, keys)
    finally:
        engine.key_indexes = kept
    return sorted(tuple(map(str, row.values())) for row in rows.to_pylist())


@pytest.mark.parametrize("kind", KEYS)
def test_an_index_finds_what_files_hold(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After every step of a history: commits here and by another session, taken back ones, compaction, and reopening."""
    monkeypatch.setattr(Costs, "indexing", lambda *_: 0.0)
    chance = random.Random(kind)
    model = {n: n for n in chance.sample(range(100), 60)}
    rows = table_of(kind, list(model), list(model.values()))
    pq.write_table(rows, tmp_path / "t.parquet", row_group_size=16)
    sessions = [driver_only(tmp_path / "catalog") for _ in range(2)]
    sessions[0].register("t", tmp_path / "t.parquet", key=names(kind))
    if chance.random() < 0.5:
        catalog = sessions[0]._engine.catalog
        catalog.save(replace(catalog.table("t"), origin=Origin("dataframe")))
    for step in range(24):
        db = chance.choice(sessions)
        match chance.choice(["merge", "delete", "insert", "taken back", "update", "compact", "reopen"]):
            case "merge":
                new = dict.fromkeys(chance.sample(range(100), 9), step)
                db.merge("t", table_of(kind, list(new), list(new.values())))
                model |= new
            case "delete":
                gone = chance.sample(sorted(model), min(len(model), 7))
                db.delete("t", table_of(kind, gone, gone).select(names(kind)))
                model = {n: v for n, v in model.items() if n not in gone}
            case "insert":
                n = chance.randrange(100)
                with pytest.raises(SchemaError) if n in model else nullcontext():
                    db.insert("t", table_of(kind, [n], [step]))
                model.setdefault(n, step)
            case "taken back":
                with suppress(KeyError), db.transaction():
                    db.merge("t", table_of(kind, list(range(20)), [-1] * 20))
                    db.delete("t", table_of(kind, [3], [0]).select(names(kind)))
                    raise KeyError
            case "update":
                db.update("t", {"v": "v + 1000"}, where="v % 3 = 1")
                model = {n: v + 1000 if v % 3 == 1 else v for n, v in model.items()}
            case "compact":
                db.compact("t")
            case "reopen":
                place = sessions.index(db)
                db.close()
                sessions[place] = driver_only(tmp_path / "catalog")
        asked = table_of(kind, list(range(0, 100, 2)), [0] * 50).select(names(kind))
        for each in sessions:
            table = each._engine.catalog.table("t")  # which may be compacted at any moment
            with each._engine.reading([table]):
                assert found(each, each._engine.key_indexes, table, asked) == found(each, _Files(), table, asked), step
    left = sessions[0].sql("select * from t").exact().table
    right = table_of(kind, list(model), list(model.values()))
    assert sorted(map(str, left.to_pylist())) == sorted(map(str, right.to_pylist()))
    assert any(each._engine.key_indexes.bytes for each in sessions)
    for each in sessions:
        each.close()


def test_keys_that_are_no_keys_and_files_of_other_types(tmp_path: Path) -> None:
    """A null is nobody's key, a key of two rows is both, and files hold what Arrow reads with other types."""
    stored = pa.table({"k": pa.array([1, None, 2, 2, 3], pa.uint16()), "v": [1, 2, 3, 4, 5]})
    pq.write_table(stored, tmp_path / "t.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "t.parquet", key=["k"])
        for _ in range(3):
            for k, places in ((1, [("1", "0", "0")]), (2, [("2", "0", "2"), ("2", "0", "3")]), (9, [])):
                keys = pa.table({"k": pa.array([k], pa.int32())})
                assert found(db, db._engine.key_indexes, db._engine.catalog.table("t"), keys) == places
        assert db._engine.key_indexes.bytes == 4 * 16
        with pytest.raises(SchemaError, match="its key is no key"):
            db.delete("t", [{"k": 2}])


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index used least recently makes room; one that is larger than all memory is not made again."""
    made = []
    monkeypatch.setattr(key_indexes, "MOST_BYTES", 16 * 2500)
    with driver_only(tmp_path / "catalog") as db:
        for name, count in (("a", 1000), ("b", 1000), ("c", 1000), ("large", 3000)):
            pq.write_table(pa.table({"k": np.arange(count), "v": np.zeros(count)}), tmp_path / f"{name}.parquet")
            db.register(name, tmp_path / f"{name}.parquet", key=["k"])
            for _ in range(3):
                with pytest.raises(SchemaError, match="already has"):
                    db.insert(name, [{"k": 5, "v": 0.0}])
            made.append(db._engine.key_indexes.bytes)
        text = pa.table({"k": [str(n) * 20 for n in range(2000)], "v": np.zeros(2000)})
        pq.write_table(text, tmp_path / "text.parquet")
        db.register("text", tmp_path / "text.parquet", key=["k"])
        for _ in range(4):
            with pytest.raises(SchemaError, match="already has"):
                db.insert("text", [{"k": "5" * 20, "v": 0.0}])
        assert made == [16_000, 32_000, 32_000, 32_000]
        assert db._engine.key_indexes.bytes <= 16 * 2500
