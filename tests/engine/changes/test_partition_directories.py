"""Tables of `name=value` directories: rows that come and go, files that appear and vanish, in both kernels."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from tests.fixtures.driver_only import driver_only

Bag = Counter[tuple[Any, ...]]
DAYS = [dt.date(2024, 2, 29), dt.date(2024, 3, 1), None]
TEXTS = ["a", "größe 50 %", "x/y=z", "it's [1]*?"]


def add_file(root: Path, name: str, text: str, day: dt.date | None, keys: list[int]) -> list[tuple[Any, ...]]:
    """A file as Spark writes it."""
    from nearly.engine.storage.hive_partitions import directory_of
    from nearly.plan import types
    from nearly.plan.schema import SchemaColumn

    directory = root / directory_of(SchemaColumn("s", types.STRING), text) / directory_of(SchemaColumn("day", types.DATE), day)
    directory.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"k": pa.array(keys, pa.int64()), "x": [key / 2 for key in keys]}), directory / name)
    return [(key, key / 2, text, day) for key in keys]


def made(root: Path) -> list[tuple[Any, ...]]:
    places = [(text, day) for text in TEXTS for day in DAYS]
    return [row for n, (text, day) in enumerate(places) for row in add_file(root, "a.parquet", text, day, [3 * n, 3 * n + 1])]


def given(rows: list[tuple[Any, ...]]) -> pa.Table:
    schema = pa.schema([("k", pa.int64()), ("x", pa.float64()), ("s", pa.string()), ("day", pa.date32())])
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)


def bag(db: nearly.Session, name: str = "t", kernel: str | None = None) -> Bag:
    found = db.sql(f"select k, x, s, day from {name}", kernel=kernel).run().table
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


def changed(db: nearly.Session, rows: list[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
    """Inserts into old and new partitions, an update within and across partitions, deletes; the rows of each version."""
    versions = [rows]
    new = [(100, 1.0, "a", DAYS[0]), (101, 2.0, "neu ü", DAYS[1]), (102, None, "neu ü", None)]
    db.insert("t", given(new))
    versions.append(rows := rows + new)
    db.update("t", {"s": "'moved'", "x": "x + 1"}, "k in (0, 101)")
    versions.append(rows := [(k, x + 1, "moved", d) if k in (0, 101) else (k, x, s, d) for k, x, s, d in rows])
    db.delete("t", where="day is null")
    versions.append(rows := [row for row in rows if row[3] is not None])
    db.merge("t", given([(1, 9.5, "a", DAYS[1]), (200, 7.0, "x/y=z", DAYS[0])]))
    versions.append([row for row in rows if row[0] != 1] + [(1, 9.5, "a", DAYS[1]), (200, 7.0, "x/y=z", DAYS[0])])
    return versions


def test_law_every_version_holds_its_rows(tmp_path: Path) -> None:
    rows = made(tmp_path / "own")
    with driver_only(tmp_path / "catalog", eager=True) as db:
        db.register("t", tmp_path / "own", key=["k"])
        versions = changed(db, rows)
        for number, expected in enumerate(versions, 1):
            assert bag(db, f"t version as of {number}") == Counter(expected)
        for number in range(1, len(versions)):
            found = db.changes("t", number, number + 1)
            left = Counter(versions[number - 1])
            rows = zip(*(column.to_pylist() for column in found.columns[:4]), strict=True)
            for row, kind in zip(rows, found["_change_type"].to_pylist(), strict=True):
                left[row] += 1 if kind in ("insert", "update_postimage") else -1
            assert +left == Counter(versions[number])
        assert sum(c.updated or 0 for c in db.history("t")) == 3
        db.compact("t")
        answers = list(db.sql("select s, count(*) c, sum(x) x from t group by s order by s"))
        assert answers[-1].table.equals(db.sql("select s, count(*) c, sum(x) x from t group by s order by s").run().table)
        more = add_file(tmp_path / "own", "b.parquet", "später", DAYS[0], [300, 301])
        db.refresh("t")
        assert bag(db) == Counter(versions[-1] + more)
        assert db.changes("t", len(versions)).num_rows == 2
    with driver_only(tmp_path / "catalog") as db:
        assert bag(db) == Counter(versions[-1] + more)


def test_files_that_appear_and_vanish(tmp_path: Path) -> None:
    rows = made(tmp_path / "own")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "own")
        gone = next((tmp_path / "own").rglob("*.parquet"))
        keys = set(pq.read_table(gone, partitioning=None)["k"].to_pylist())
        gone.unlink()
        more = add_file(tmp_path / "own", "b.parquet", "neu", DAYS[0], [300])
        with pytest.raises(nearly.EngineError, match="vanished"):
            bag(db)
        db.refresh("t")
        assert bag(db) == Counter([row for row in rows if row[0] not in keys] + more)


def test_differs_what_no_directory_can_tell_is_refused(tmp_path: Path) -> None:
    rows = made(tmp_path / "own")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "own")
        with pytest.raises(nearly.Unsupported, match="directory"):
            db.insert("t", given([(1, 1.0, "", None)]))
        assert bag(db) == Counter(rows)
        assert [commit.version for commit in db.history("t")] == [1]
    escaped = tmp_path / "escaped" / "s=gr%C3%B6%C3%9Fe"
    escaped.mkdir(parents=True)
    pq.write_table(pa.table({"k": [1]}), escaped / "a.parquet")
    with driver_only(tmp_path / "other") as db, pytest.raises(nearly.Unsupported, match="escaped"):
        db.register("t", tmp_path / "escaped")


def test_spark_reads_the_same(spark: Any, tmp_path: Path) -> None:
    rows = made(tmp_path / "own")
    with nearly.connect(spark, path=tmp_path / "catalog") as db:
        db.register("t", tmp_path / "own", key=["k"])
        expected = changed(db, rows)[-1]
        assert bag(db, kernel="native") == bag(db, kernel="spark") == Counter(expected)
