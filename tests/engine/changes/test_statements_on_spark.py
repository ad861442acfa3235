"""Statements that the driver's engine cannot judge are computed by Spark, in the same rows, with Spark's own errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly


@pytest.fixture
def db(spark: Any, tmp_path: Path) -> Iterator[nearly.Session]:
    """A table of two files with odd names, changed before, and a source to merge."""
    (tmp_path / "a b[1]%20").mkdir()
    for part, keys in enumerate(([1, 2, 3], [4, 5, 6, 7])):
        rows = pa.table({"k": keys, "s": [f"größe {key}" for key in keys], "d": pa.array([None] * len(keys), pa.float64())})
        pq.write_table(rows, tmp_path / "a b[1]%20" / f"part {part}.parquet", row_group_size=2)
    pq.write_table(pa.table({"k": [2, 9], "s": ["ähm", "ö"]}), tmp_path / "u.parquet")
    with nearly.connect(spark, path=tmp_path / "catalog") as session:
        session.register("t", str(tmp_path / "a b[1]%20"), key=["k"])
        session.register("u", str(tmp_path / "u.parquet"))
        yield session


def rows(db: nearly.Session, kernel: str) -> list[tuple[int, str]]:
    table = db.sql("select k, s from t order by k", kernel=kernel).exact().table
    return list(zip(table["k"].to_pylist(), table["s"].to_pylist(), strict=True))


def test_spark_computes_what_it_alone_knows(db: nearly.Session) -> None:
    assert db.execute("delete from t where soundex(s) is null or k = 5").deleted == 1
    assert db.execute("update t set s = upper(s) where k >= 3").updated == 4
    assert db.update("t", {"s": "concat(s, '!')"}, where="upper(s) = 'GRÖSSE 1' or initcap(s) = 'Größe 2'").version == 4
    assert db.execute("insert into t (k, s) select k + 100, upper(s) from u where k = 9").inserted == 1
    done = db.execute("""
        merge into t using u on t.k = u.k when matched then update set s = upper(u.s)
        when not matched then insert (k, s) values (k, initcap(s)) when not matched by source and soundex(s) = 'x' then delete
    """)
    assert isinstance(done, nearly.Changed)
    assert (done.inserted, done.updated, done.deleted, done.version) == (1, 1, 0, 6)
    wanted = [(1, "größe 1"), (2, "ÄHM"), (3, "GRÖSSE 3"), (4, "GRÖSSE 4"), (6, "GRÖSSE 6"), (7, "GRÖSSE 7"), (9, "Ö"), (109, "Ö")]
    assert [(key, text.replace("ß", "SS") if key > 2 else text.rstrip("!")) for key, text in rows(db, "native")] == wanted
    assert rows(db, "native") == rows(db, "spark")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("delete from t where k / (k - k) > 1", "DIVIDE_BY_ZERO"),
        ("delete from t where cast(s as int) = 1", "CAST_INVALID_INPUT"),
        ("update t set k = 99999999999 * 99999999999", "ARITHMETIC_OVERFLOW"),
        ("update t set d = (select k from t)", "SCALAR_SUBQUERY_TOO_MANY_ROWS"),
        ("insert into t (k) select 1 / (k - k) from u", "DIVIDE_BY_ZERO"),
    ],
)
def test_errors_are_those_of_spark(db: nearly.Session, text: str, message: str) -> None:
    before = rows(db, "native")
    with pytest.raises(nearly.EngineError, match=message):
        db.execute(text)
    assert rows(db, "native") == before
    assert len(db.history("t")) == 1
