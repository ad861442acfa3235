"""Iceberg tables in place: at every snapshot the rows that Iceberg's own reader gives, and what changed between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nearly
from tests.fixtures.driver_only import driver_only
from tests.fixtures.lakes import SCHEMA, Bag, assert_changes_tell_all, bag_of, bags_of, last_answer, rows, without_repeats

pytest.importorskip("pyiceberg")
from tests.fixtures.iceberg import DirectoryCatalog, delete_by

ANSWER = "select p, count(*) c, sum(d) s, min(t) t, max(`größe`) g from t group by p order by p"


def created(path: Path, by: str | None = None) -> Any:
    table = DirectoryCatalog(path / "warehouse").create_table("x", SCHEMA)
    if by is not None:
        with table.update_spec() as update:
            update.add_identity(by)
    return table


def theirs(table: Any) -> list[Bag]:
    """What Iceberg's own reader gives for each snapshot."""
    return [bag_of(table.scan(snapshot_id=each.snapshot_id).to_arrow()) for each in table.metadata.snapshots]


@pytest.mark.parametrize("by", [None, "p"], ids=["plain", "by text"])
def test_oracle_every_snapshot_is_that_of_iceberg(tmp_path: Path, by: str | None) -> None:
    table = created(tmp_path, by)
    with driver_only(tmp_path / "catalog", eager=True) as db:
        assert db.register("empty", table).rows == 0
        table.append(rows(0, 120))
        table.append(rows(120, 60))
        table.delete("k < 10")
        table.overwrite(rows(500, 7), "k >= 160")
        table.upsert(rows(100, 80), ["k"])
        table.delete("k >= 0")
        table.append(rows(20, 30))
        first = table.metadata.snapshots[0].snapshot_id
        db.register("t", table, version=first)
        version = db.refresh("t").version
        found = bags_of(db, "t")
        assert found == without_repeats(theirs(table))
        assert_changes_tell_all(db, "t", found)
        db.refresh("empty")
        assert bag_of(db.sql("select * from empty").run().table) == found[-1]
        db.register("u", table.metadata_location)
        exact = db.sql(ANSWER.replace("from t", "from u")).run().table
        assert last_answer(db.sql(ANSWER)).table.equals(exact)
        assert db.refresh("t").version == version
        here = found[-1]
        db.insert("t", rows(1000, 5))
        db.delete("t", where="k in (21, 1001)")
        here = here + bag_of(rows(1000, 5)) - bag_of(rows(21, 1)) - bag_of(rows(1001, 1))
        assert bag_of(db.sql("select * from t").run().table) == here
        table.append(rows(2000, 10))
        db.refresh("t")
        assert bag_of(db.sql("select * from t").run().table) == here + bag_of(rows(2000, 10))
    with driver_only(tmp_path / "catalog") as db:  # nobody remembers where the table is
        table.append(rows(3000, 1))
        with pytest.raises(nearly.Unsupported, match="source="):
            db.refresh("t")
        db.refresh("t", source=table)
        assert bag_of(db.sql("select * from t").run().table) == here + bag_of(rows(2000, 10)) + bag_of(rows(3000, 1))


def test_oracle_position_deletes(tmp_path: Path) -> None:
    table = created(tmp_path)
    table.append(rows(0, 40))
    table.append(rows(40, 40))
    paths = [task.file.file_path for task in table.scan().plan_files()]
    for positions in ([0, 3, 39], [3, 4]):
        places = [(path, place) for path in sorted(paths) for place in positions]
        delete_by(table, pa.table({"file_path": [path for path, _ in places], "pos": pa.array([p for _, p in places], pa.int64())}))
    table.append(rows(100, 3))
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", table, version=table.metadata.snapshots[0].snapshot_id)
        db.refresh("t")
        found = bags_of(db, "t")
        assert found == theirs(table)
        assert found[-1].total() == 80 - 8 + 3
        assert_changes_tell_all(db, "t", found)


def test_equality_deletes_reach_older_files_alone(tmp_path: Path) -> None:
    """Iceberg's Python reader refuses them; the rule is the specification's: strictly older data, nulls are equal."""
    table = created(tmp_path)
    table.append(rows(0, 40))
    delete_by(table, pa.table({"k": pa.array([3, 5, 777], pa.int64())}), ["k"])
    table.append(rows(0, 10))
    delete_by(table, pa.table({"p": pa.array([None], pa.string())}), ["p"])
    expected = [bag_of(rows(0, 40))]
    expected.append(expected[0] - bag_of(rows(3, 1)) - bag_of(rows(5, 1)))
    expected.append(expected[1] + bag_of(rows(0, 10)))
    expected.append(type(expected[2])({row: count for row, count in expected[2].items() if row[1] is not None}))
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", table, version=table.metadata.snapshots[0].snapshot_id)
        db.refresh("t")
        found = bags_of(db, "t")
        assert found == expected
        assert_changes_tell_all(db, "t", found)
        assert bag_of(db.sql("select * from t").run().table) == expected[-1]


def test_differs_what_is_not_understood_is_refused(tmp_path: Path) -> None:
    table = created(tmp_path)
    table.append(rows(0, 5))
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", table)
        with table.update_schema() as update:
            update.rename_column("b", "renamed")
        table.append(rows(5, 5).rename_columns([name if name != "b" else "renamed" for name in SCHEMA.names]))
        for ask in (lambda: db.refresh("t"), lambda: db.register("u", table)):
            with pytest.raises(nearly.Unsupported, match="renamed"):
                ask()
        with pytest.raises(nearly.EngineError, match="no snapshot 7"):
            db.register("u", table, version=7)
        with pytest.raises(nearly.SchemaError, match="is for Delta and Iceberg"):
            db.register("u", str(tmp_path / "nothing.parquet"), version=7)
        assert db.tables == ("t",)


def test_spark_reads_the_same(spark: Any, tmp_path: Path) -> None:
    table = created(tmp_path, "p")
    table.append(rows(0, 60))
    with nearly.connect(spark, path=tmp_path / "catalog") as db:
        db.register("t", table, key=["k"])
        db.insert("t", rows(1000, 5))
        db.delete("t", where="k in (1, 1001)")
        native, other = (bag_of(db.sql("select * from t", kernel=kernel).run().table) for kernel in ("native", "spark"))
    assert native == other == bag_of(rows(0, 60)) + bag_of(rows(1000, 5)) - bag_of(rows(1, 1)) - bag_of(rows(1001, 1))
