"""Delta tables in place: at every version the rows that Delta's own reader gives, and what changed between them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nearly
from tests.fixtures.driver_only import driver_only
from tests.fixtures.lakes import TEXTS, Bag, assert_changes_tell_all, bag_of, bags_of, last_answer, rows, without_repeats
from tests.fixtures.long import first_quick

deltalake = pytest.importorskip("deltalake")
ANSWER = "select p, count(*) c, sum(d) s, min(t) t, max(`größe`) g from t group by p order by p"


def written(path: Path, feed: bool, by: list[str] | None, texts: list[str | None] = TEXTS) -> str:
    """A Delta table of appends, deletes, updates, merges, an overwrite, and what changes no row."""
    where, config = str(path / "delta"), {"delta.enableChangeDataFeed": str(feed).lower()}
    deltalake.write_deltalake(where, rows(0, 120, texts), partition_by=by, configuration=config)
    deltalake.write_deltalake(where, rows(120, 60, texts), mode="append")
    deltalake.DeltaTable(where).delete("k % 7 = 3")
    deltalake.DeltaTable(where).update({"d": "1.25", "b": "null"}, predicate="k < 9")
    merge = deltalake.DeltaTable(where).merge(rows(170, 40, texts), "s.k = t.k", "s", "t")
    merge.when_matched_update({"d": "7.5"}).when_not_matched_insert_all().execute()
    deltalake.DeltaTable(where).optimize.compact()
    deltalake.write_deltalake(where, rows(0, 5, texts), mode="append")
    deltalake.DeltaTable(where).delete()
    deltalake.write_deltalake(where, rows(300, 50, texts), mode="append")
    deltalake.write_deltalake(where, rows(400, 30, texts), mode="overwrite")
    deltalake.write_deltalake(where, rows(400, 3, texts), mode="append")
    return where


def theirs(where: str, since: int = 0) -> list[Bag]:
    """What Delta's own reader gives for each version."""
    last = deltalake.DeltaTable(where).version()
    return [bag_of(deltalake.DeltaTable(where, version=version).scan().read_all()) for version in range(since, last + 1)]


@pytest.mark.parametrize("by", first_quick([None, ["p"], ["day", "b"]], 2), ids=["plain", "by text", "by date and boolean"])
@pytest.mark.parametrize("feed", [True, False], ids=["feed", "files"])
def test_oracle_every_version_is_that_of_delta(tmp_path: Path, feed: bool, by: list[str] | None) -> None:
    where = written(tmp_path, feed, by) if by != ["day", "b"] else few_days(tmp_path, feed, by)
    files = {path: path.stat().st_mtime_ns for path in Path(where).rglob("*")}
    with driver_only(tmp_path / "catalog", eager=True) as db:
        assert db.register("t", where, version=0).origin.version == "0"
        table = db.refresh("t")
        assert table.origin.version == str(deltalake.DeltaTable(where).version())
        found = bags_of(db, "t")
        assert found == without_repeats(theirs(where))
        assert_changes_tell_all(db, "t", found)
        db.register("u", where)
        exact = db.sql(ANSWER.replace("from t", "from u")).run().table
        assert last_answer(db.sql(ANSWER)).table.equals(exact)
        assert db.refresh("t").version == table.version
    assert {path: path.stat().st_mtime_ns for path in Path(where).rglob("*")} == files


def few_days(path: Path, feed: bool, by: list[str]) -> str:
    where = str(path / "delta")
    config = {"delta.enableChangeDataFeed": str(feed).lower()}
    deltalake.write_deltalake(where, rows(0, 6), partition_by=by, configuration=config)
    deltalake.write_deltalake(where, rows(3, 6), mode="append")
    deltalake.DeltaTable(where).delete("k = 4")
    return where


def test_the_feed_tells_updates(tmp_path: Path) -> None:
    where = written(tmp_path, True, None)
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", where, version=3)
        db.refresh("t")
        (commit,) = [commit for commit in db.history("t") if commit.version == 2]
        assert (commit.operation, commit.inserted, commit.updated, commit.deleted) == ("delta 4: merge", 32, 8, 0)


@pytest.mark.parametrize("by", [None, ["p"]])
def test_law_changes_here_are_an_overlay_that_stays(tmp_path: Path, by: list[str] | None) -> None:
    where = str(tmp_path / "delta")
    deltalake.write_deltalake(where, rows(0, 50), partition_by=by)
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", where, key=["k"])
        db.insert("t", rows(1000, 3))
        db.update("t", {"d": "d + 1"}, "k in (7, 1001)")
        db.delete("t", where="k in (8, 1002)")
        here = bag_of(db.sql("select * from t").run().table)
        deltalake.write_deltalake(where, rows(50, 25), mode="append")
        db.refresh("t")
        assert bag_of(db.sql("select * from t").run().table) == here + bag_of(rows(50, 25))
        db.merge("t", rows(70, 10))
        after = bag_of(db.sql("select * from t").run().table)
        assert after == here + bag_of(rows(50, 30))
        db.compact("t")
        assert bag_of(db.sql("select * from t").run().table) == after
        assert_changes_tell_all(db, "t", bags_of(db, "t"))
        deltalake.DeltaTable(where).delete("k = 12")  # the files of rows that were deleted here are written again
        db.refresh("t")
        after -= bag_of(rows(12, 1))
        assert bag_of(db.sql("select * from t").run().table) == after
        assert db.changes("t", db.table("t").info.version - 1).num_rows == 1
        deltalake.DeltaTable(where).delete("k in (8, 13)")  # one of them was deleted here before
        db.refresh("t")
        after -= bag_of(rows(13, 1))
        assert bag_of(db.sql("select * from t").run().table) == after
        assert_changes_tell_all(db, "t", bags_of(db, "t"))
        deltalake.DeltaTable(where).update({"d": "0"}, predicate="k = 7")  # it was updated here
        with pytest.raises(nearly.Unsupported, match="which holds is not known"):
            db.refresh("t")
        assert bag_of(db.sql("select * from t").run().table) == after


def test_differs_a_key_that_comes_from_both_sides_is_told(tmp_path: Path) -> None:
    where = str(tmp_path / "delta")
    deltalake.write_deltalake(where, rows(0, 10))
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", where, key=["k"])
        db.insert("t", rows(20, 3))
        deltalake.write_deltalake(where, rows(22, 3), mode="append")
        for _ in range(2):
            with pytest.raises(nearly.Unsupported, match="whose key was inserted through nearly"):
                db.refresh("t")
            deltalake.DeltaTable(where).delete("k = 5")  # the second time, a file was replaced
        db.delete("t", where="k = 22")
        db.refresh("t")
        assert sorted(db.sql("select k from t").run().table["k"].to_pylist()) == [0, 1, 2, 3, 4, 6, 7, 8, 9, 20, 21, 22, 23, 24]


def test_inserts_here_stay_when_the_source_replaces_its_files(tmp_path: Path) -> None:
    where = str(tmp_path / "delta")
    deltalake.write_deltalake(where, rows(0, 50))
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", where)
        db.insert("t", rows(1000, 5))
        db.delete("t", where="k = 1001")
        deltalake.DeltaTable(where).delete("k < 30")
        db.refresh("t")
        left = bag_of(rows(30, 20)) + bag_of(rows(1000, 5)) - bag_of(rows(1001, 1))
        assert bag_of(db.sql("select * from t").run().table) == left
        assert db.changes("t", 3).num_rows == 30
        deltalake.DeltaTable(where).delete()
        db.refresh("t")
        assert bag_of(db.sql("select * from t").run().table) == bag_of(rows(1000, 5)) - bag_of(rows(1001, 1))


def deleted_by_vector(where: str, positions: list[int], version: int) -> None:
    """A commit as Spark writes it: the file stays, with a vector of deleted rows; `deltalake` cannot write one."""
    pyroaring = pytest.importorskip("pyroaring")
    log = Path(where, "_delta_log")
    lines = [json.loads(line) for line in (log / f"{version - 1:020}.json").read_text().splitlines()]
    add = next(line["add"] for line in lines if "add" in line)
    raw = (1681511377).to_bytes(4, "little") + (1).to_bytes(8, "little") + bytes(4) + pyroaring.BitMap(positions).serialize()
    vector = {"storageType": "i", "pathOrInlineDv": z85(raw), "sizeInBytes": len(raw), "cardinality": len(positions)}
    features = ["deletionVectors", "timestampNtz"]
    feature = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    kept = ("path", "size", "partitionValues", "deletionVector")
    removed = {name: add[name] for name in kept if name in add} | {"dataChange": True, "deletionTimestamp": 1}
    commit: list[dict[str, Any]] = [
        {"commitInfo": {"timestamp": 1, "operation": "DELETE"}}, {"protocol": feature}, {"remove": removed},
        {"add": add | {"deletionVector": vector}},
    ]  # fmt: skip
    (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, commit)))


def z85(raw: bytes) -> str:
    letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    padded, text = raw + bytes(-len(raw) % 4), ""
    for place in range(0, len(padded), 4):
        number = int.from_bytes(padded[place : place + 4], "big")
        text += "".join(letters[number // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return text


def test_oracle_deletion_vectors(tmp_path: Path) -> None:
    where = str(tmp_path / "delta")
    deltalake.write_deltalake(where, rows(0, 40))
    deleted_by_vector(where, [0, 3, 39], 1)
    deleted_by_vector(where, [0, 3, 4, 5, 39], 2)
    deleted_by_vector(where, [4], 3)  # some are back, as after a restore
    with driver_only(tmp_path / "catalog") as db:
        assert db.register("u", where).rows == 39
        db.register("t", where, version=0)
        assert db.refresh("t").version == 4
        found = bags_of(db, "t")
        assert found == theirs(where)
        assert_changes_tell_all(db, "t", found)
        db.delete("t", where="k < 10")
        db.compact("t")
        assert bag_of(db.sql("select * from t").run().table) == bag_of(rows(10, 30))
        deltalake.write_deltalake(where, rows(100, 10), mode="append")
        db.refresh("t")
        assert bag_of(db.sql("select * from t").run().table) == bag_of(rows(10, 30)) + bag_of(rows(100, 10))


def test_versions_that_cannot_be_read_are_taken_together(tmp_path: Path) -> None:
    where = written(tmp_path, False, None)
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", where, version=1)
        deltalake.DeltaTable(where).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        db.refresh("t")
        assert bag_of(db.sql("select * from t").run().table) == theirs(where, 10)[0]
        with pytest.raises(nearly.EngineError, match="vanished"):
            db.sql("select * from t version as of 1").run()


def test_a_source_that_was_made_again(tmp_path: Path) -> None:
    where = str(tmp_path / "delta")
    deltalake.write_deltalake(where, rows(0, 5))
    with driver_only(tmp_path / "catalog") as db:
        assert not db.register("t", where).overlaid
        shutil.rmtree(where)
        deltalake.write_deltalake(where, rows(7, 4))
        with pytest.raises(nearly.EngineError, match="vanished"):
            db.sql("select * from t").run()
        assert db.refresh("t").version == 2
        assert bag_of(db.sql("select * from t").run().table) == bag_of(rows(7, 4))
        db.delete("t", where="k = 7")
        assert db.table("t").info.overlaid


def test_differs_what_is_not_understood_is_refused(tmp_path: Path) -> None:
    where = str(tmp_path / "delta")
    deltalake.write_deltalake(where, rows(0, 5))
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", where)
        deltalake.write_deltalake(where, rows(5, 5).append_column("more", pa.array([1] * 5)), mode="append", schema_mode="merge")
        with pytest.raises(nearly.SchemaError, match="changed its schema"):
            db.refresh("t")
        with pytest.raises(nearly.Unsupported, match="another schema"):
            db.register("u", where)
        with pytest.raises(nearly.EngineError, match="version 7"):
            db.register("u", where, version=7)
        with pytest.raises(nearly.SchemaError, match="version"):
            db.register("u", where, version="1")  # type: ignore[arg-type]
        mapped = str(tmp_path / "mapped")
        deltalake.write_deltalake(mapped, rows(0, 5))
        log = Path(mapped, "_delta_log", "00000000000000000000.json")
        log.write_text(log.read_text().replace('"configuration":{}', '"configuration":{"delta.columnMapping.mode":"name"}'))
        with pytest.raises((nearly.Unsupported, nearly.EngineError)):
            db.register("u", mapped)
        assert db.tables == ("t",)


def test_spark_reads_the_same(spark: Any, tmp_path: Path) -> None:
    where = str(tmp_path / "delta")
    deltalake.write_deltalake(where, rows(0, 60), partition_by=["p"])
    deltalake.DeltaTable(where).delete("k % 7 = 3")
    with nearly.connect(spark, path=tmp_path / "catalog") as db:
        db.register("t", where, key=["k"])
        db.insert("t", rows(1000, 5))
        db.delete("t", where="k in (1, 1001)")
        native, other = (bag_of(db.sql("select * from t", kernel=kernel).run().table) for kernel in ("native", "spark"))
    assert native == other
    assert {row[0] for row in native} == {k for k in range(60) if k % 7 != 3 and k != 1} | {1000, 1002, 1003, 1004}
