"""DataFrames of many rows, written by Spark: the same rows and refusals as if they had been few."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.changes import operations
from nearly.errors import NearlyError, SchemaError
from tests.fixtures.long import first_quick

ROWS = 2_000


@pytest.fixture
def db(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[nearly.Session]:
    monkeypatch.setattr(operations, "FEW_ROWS", 100)
    k = np.arange(ROWS)
    pq.write_table(pa.table({"k": k, "v": k % 7, "s": [f"row {n}" for n in k]}), tmp_path / "t.parquet", row_group_size=300)
    with nearly.connect(spark, path=tmp_path / "catalog") as session:
        session.register("t", tmp_path / "t.parquet", key=["k"])
        session.register("bag", spark.read.parquet(str(tmp_path / "t.parquet")))
        yield session


def total(db: nearly.Session, table: str, kernel: str = "native") -> tuple[int, int, int]:
    text = f"select count(*) as n, sum(k) as k, sum(v) as v from {table}"
    (row,) = db.sql(text, kernel=kernel).exact().table.to_pylist()
    return tuple(row.values())


@pytest.mark.parametrize("type_", first_quick(["bigint", "int"], 0))
def test_large_frames_are_inserted_and_merged(db: nearly.Session, spark: Any, type_: str) -> None:
    """Columns in another order, and of a type that must be cast."""
    new = spark.range(ROWS, 2 * ROWS).selectExpr("concat('new ', id) as s", f"cast(id as {type_}) as K", f"cast(1 as {type_}) as v")
    before = total(db, "t")
    db.insert("t", new)
    keys = sum(range(ROWS, 2 * ROWS))
    assert total(db, "t") == total(db, "t", "spark") == (2 * ROWS, before[1] + keys, before[2] + ROWS)
    late = spark.range(ROWS // 2, 3 * ROWS).selectExpr(f"cast(id as {type_}) as k", f"cast(100 as {type_}) as v", "'late' as s")
    done = db.merge("t", late.orderBy("k", ascending=False))
    assert (done.rows, done.version) == (3 * ROWS, 3)
    assert (
        total(db, "t")
        == total(db, "t", "spark")
        == (3 * ROWS, sum(range(3 * ROWS)), sum(n % 7 for n in range(ROWS // 2)) + 250 * ROWS)
    )
    changes = db.changes("t", since=2)
    old, fresh = (changes.filter(pa.compute.equal(changes["_change_type"], f"update_{kind}")) for kind in ("preimage", "postimage"))
    assert old["k"].to_pylist() == fresh["k"].to_pylist()
    assert old.num_rows == 3 * ROWS // 2
    assert set(fresh["s"].to_pylist()) == {"late"}
    last = db.history("t")[0]
    assert (last.inserted, last.updated, last.deleted) == (ROWS, 3 * ROWS // 2, 0)
    db.compact("t")
    assert total(db, "t")[0] == 3 * ROWS


def test_a_bag_takes_every_row(db: nearly.Session, spark: Any) -> None:
    new = spark.range(ROWS).selectExpr("id as k", "1L as v", "'x' as s")
    before = total(db, "bag")
    db.insert("bag", new.union(new))
    assert total(db, "bag") == total(db, "bag", "spark") == (3 * ROWS, before[1] + 2 * sum(range(ROWS)), before[2] + 2 * ROWS)


@pytest.mark.parametrize(
    ("columns", "operation", "message"),
    [
        (["id % 500 + 5000 as k", "1L as v", "'x' as s"], "insert", "is given more than once"),
        (["id as k", "1L as v", "'x' as s"], "insert", "already has a row with k"),
        (["if(id = 1500, null, id + 9000) as k", "1L as v", "'x' as s"], "merge", "has no value in the key column"),
        (["id as k", "1L as v"], "merge", "have no column 's'"),
        (["id as k", "1L as v", "'x' as s", "1 as more"], "insert", "unknown column 'more'"),
        (["cast(id as string) as k", "1L as v", "'x' as s"], "insert", "cast it first"),
    ],
)
def test_what_is_wrong_leaves_nothing(db: nearly.Session, spark: Any, columns: list[str], operation: str, message: str) -> None:
    before = total(db, "t")
    with pytest.raises(NearlyError, match=message) as trouble:
        getattr(db, operation)("t", spark.range(ROWS).selectExpr(*columns))
    assert isinstance(trouble.value, SchemaError | nearly.UnknownName)
    assert total(db, "t") == before
    assert not list(db._engine.catalog.directory("t").glob("changes-*"))
