"""Layouts that Spark writes: all hold the same rows, a commit is all or nothing, and appends reach every layout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.layouts import Layout, Table
from nearly.engine.storage.registration import register_parquet
from nearly.engine.writing.append_refresh import append, refresh
from nearly.engine.writing.preparation import prepare
from nearly.engine.writing.sources import register_source
from nearly.errors import EngineError, SchemaError, UnknownName, Unsupported
from tests.processes import HUNG


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "cata log [1]")


def rows_of(layout: Layout) -> Counter[Any]:
    tables = [pq.read_table(path, partitioning=None).to_pylist() for path in layout.manifest.paths]
    return Counter(tuple(row.items()) for rows in tables for row in rows)


def assert_consistent(table: Table) -> None:
    """All layouts hold the same bag of rows, and every row group lies in exactly one block."""
    first = rows_of(table.base)
    for layout in table.layouts:
        layout.verify(full=layout.manifest.hashed)
        assert rows_of(layout) == first
        pieces = Counter(
            (part.path, index)
            for block in layout.blocks
            for part in block.parts
            for index in range(part.first_row_group, part.first_row_group + part.row_groups)
        )
        groups = {
            (path, index)
            for path in layout.manifest.paths
            for index in range(pq.read_metadata(path).num_row_groups)
            if pq.read_metadata(path).row_group(index).num_rows
        }
        assert pieces == Counter(dict.fromkeys(groups, 1))


def own_files(tmp_path: Path, start: int, stop: int) -> None:
    (tmp_path / "own").mkdir(exist_ok=True)
    numbers = list(range(start, stop))
    table = pa.table({"id": numbers, "k": [n % 11 for n in numbers], "s": [f"s{n}" for n in numbers]})
    pq.write_table(table, tmp_path / "own" / f"{start}.parquet")


def test_a_data_frame_becomes_a_table_and_is_prepared(spark: Any, catalog: Catalog) -> None:
    frame = spark.range(5000).selectExpr("id", "id % 7 AS `k.ey ü`", "cast(id as string) AS s", "current_timestamp() AS t")
    seen: list[float] = []
    table = register_source(catalog, lambda: spark, "t", frame, key=["ID"])
    assert [str(column.type) for column in table.columns] == ["bigint", "bigint", "string", "timestamp"]
    assert table.key == ("id",)
    prepare(catalog, spark, "t", progress=seen.append)
    table = prepare(catalog, spark, "t", by="K.EY Ü", buckets=4)
    assert seen[-1] == 1.0
    assert seen == sorted(seen)
    assert_consistent(table)
    shuffled, hashed = table.layouts[1:]
    assert (shuffled.name, shuffled.shuffled, shuffled.clustering) == ("shuffled", True, None)
    assert hashed.clustering is not None
    assert (hashed.clustering.columns, hashed.clustering.buckets) == (("k.ey ü",), 4)
    assert table.clustered_by(["k.ey ü", "id"]) == hashed
    assert Catalog(catalog.path).table("t") == table


def test_law_equal_keys_share_a_bucket_and_integer_widths_agree(spark: Any, catalog: Catalog, tmp_path: Path) -> None:
    buckets: dict[str, dict[int, Any]] = {}
    for kind, count in (("int", 8), ("bigint", 4)):
        frame = spark.range(300).selectExpr(f"cast(id % 50 as {kind}) AS k", "id")
        register_source(catalog, lambda: spark, kind, frame)
        (layout,) = prepare(catalog, spark, kind, by=["k"], buckets=count).layouts[1:]
        buckets[kind] = {}
        for block in layout.blocks:
            for part in block.parts:
                keys = pq.read_table(part.path, partitioning=None)["k"].to_pylist()
                assert keys == sorted(keys)
                for key in keys:
                    assert buckets[kind].setdefault(key, block.bucket) == block.bucket
    assert {key: bucket % 4 for key, bucket in buckets["int"].items()} == buckets["bigint"]


def test_a_shuffled_layout_spreads_ordered_rows(spark: Any, catalog: Catalog) -> None:
    register_source(catalog, lambda: spark, "t", spark.range(60_000))
    layout = prepare(catalog, spark, "t").layout("shuffled")
    means = [sum(pq.read_table(path)["id"].to_pylist()[:5000]) / 5000 for path in layout.manifest.paths]
    assert len(layout.blocks) >= 3
    assert all(abs(mean - 30_000) < 5 * 60_000 / (12 * 5000) ** 0.5 for mean in means)


def test_preparing_again_replaces_the_layout(spark: Any, catalog: Catalog, tmp_path: Path) -> None:
    own_files(tmp_path, 0, 100)
    before = register_source(catalog, lambda: spark, "t", tmp_path / "own")
    first = prepare(catalog, spark, "t", by=["k"], buckets=2)
    second = prepare(catalog, spark, "t", by=["k"], buckets=3)
    assert [layout.name for layout in second.layouts] == ["base", "by_k"]
    assert second.content == first.content == before.content
    Catalog(catalog.path)
    assert not Path(first.layouts[1].path).exists()
    assert_consistent(second)


def test_hive_partitions_are_prepared_with_their_values(spark: Any, catalog: Catalog, tmp_path: Path) -> None:
    for value in ("01", "b"):
        (tmp_path / "own" / f"k={value}").mkdir(parents=True)
        pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "own" / f"k={value}" / "f.parquet")
    register_parquet(catalog, "t", tmp_path / "own")
    table = prepare(catalog, spark, "t", by="k", buckets=2)
    expected = Counter({(("x", x), ("k", k)): 1 for x in (1, 2) for k in ("01", "b")})
    assert rows_of(table.layouts[1]) == expected
    (tmp_path / "own" / "k=7").mkdir()
    pq.write_table(pa.table({"x": [9]}), tmp_path / "own" / "k=7" / "f.parquet")
    grown = refresh(catalog, lambda: spark, "t")
    assert rows_of(grown.layouts[1]) == expected + Counter({(("x", 9), ("k", "7")): 1})


def test_append_reaches_every_layout_once(spark: Any, catalog: Catalog) -> None:
    register_source(catalog, lambda: spark, "t", spark.range(1000).selectExpr("id", "rand() AS r", "id % 5 AS k"))
    prepare(catalog, spark, "t")
    before = prepare(catalog, spark, "t", by="k", buckets=3)
    after = append(catalog, spark, "t", spark.range(40).selectExpr("id % 5 AS k", "rand() AS r", "id"))
    assert after.rows == 1040
    assert after.content != before.content
    assert_consistent(after)
    assert not after.layout("shuffled").shuffled
    assert Catalog(catalog.path).table("t") == after
    assert append(catalog, spark, "t", spark.range(0).selectExpr("id", "rand() AS r", "id AS k")).rows == 1040


def test_append_refuses_other_schemas_and_own_files(spark: Any, catalog: Catalog, tmp_path: Path) -> None:
    before = register_source(catalog, lambda: spark, "t", spark.range(10))
    for wrong in ("id AS x", "cast(id AS int) AS id", "id, 1 AS more"):
        with pytest.raises(SchemaError, match="cannot append"):
            append(catalog, spark, "t", spark.range(1).selectExpr(*wrong.split(", ")))
    own_files(tmp_path, 0, 10)
    register_parquet(catalog, "own", tmp_path / "own")
    with pytest.raises(Unsupported, match="call refresh"):
        append(catalog, spark, "own", spark.range(1))
    assert catalog.table("t") == before


def test_refresh_follows_new_changed_and_removed_files(spark: Any, catalog: Catalog, tmp_path: Path) -> None:
    own_files(tmp_path, 0, 100)
    register_source(catalog, lambda: spark, "t", tmp_path / "own")
    prepare(catalog, spark, "t", by="k", buckets=2)
    before = prepare(catalog, spark, "t")
    assert refresh(catalog, lambda: spark, "t") == before
    own_files(tmp_path, 100, 150)
    assert catalog.table("t").new_files()
    grown = refresh(catalog, lambda: spark, "t")
    assert grown.rows == 150
    assert grown.layout("shuffled").shuffled
    assert set(before.layout("by_k").manifest.files) < set(grown.layout("by_k").manifest.files)
    assert_consistent(grown)
    (tmp_path / "own" / "0.parquet").unlink()
    shrunk = refresh(catalog, lambda: spark, "t")
    assert shrunk.rows == 50
    assert_consistent(shrunk)
    pq.write_table(pa.table({"other": [1]}), tmp_path / "own" / "100.parquet")
    with pytest.raises(SchemaError, match="changed their schema"):
        refresh(catalog, lambda: spark, "t")
    assert catalog.table("t") == shrunk


def test_csv_json_and_tables_are_copied_and_refreshed(spark: Any, catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "a.csv").write_text("n,größe,d\n1,x,2020-01-01\n2,,2020-01-02\n")
    table = register_source(catalog, lambda: spark, "c", tmp_path / "c")
    assert [(c.name, str(c.type), c.nullable) for c in table.columns] == [
        ("n", "int", False),
        ("größe", "string", True),
        ("d", "date", False),
    ]
    prepare(catalog, spark, "c", by="n", buckets=2)
    (tmp_path / "c" / "b.csv").write_text("n,größe,d\n3,y,2020-01-03\n")
    again = refresh(catalog, lambda: spark, "c")
    assert again.rows == 3
    assert_consistent(again)
    (tmp_path / "j.jsonl").write_text('{"a": 1, "b": {"c": [1]}}\n{"a": null}\n')
    nested = register_source(catalog, lambda: spark, "j", str(tmp_path / "j*.jsonl"))
    assert [str(column.type) for column in nested.columns] == ["bigint", "struct<c:array<bigint>>"]
    spark.range(3).createOrReplaceTempView("a_view")
    assert register_source(catalog, lambda: spark, "v", "a_view").rows == 3
    spark.catalog.dropTempView("a_view")


def test_sources_that_cannot_be_tables_are_refused(spark: Any, catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="two columns named"):
        register_source(catalog, lambda: spark, "t", spark.sql("select 1 AS a, 2 AS A"))
    with pytest.raises(UnknownName, match="neither a path"):
        register_source(catalog, lambda: spark, "t", "no_such_table")
    with pytest.raises(UnknownName, match="neither a path"):
        register_source(catalog, lambda: spark, "t", "no/such/file.parquet")
    with pytest.raises(Unsupported, match="stream"):
        register_source(catalog, lambda: spark, "t", spark.readStream.format("rate").load())
    with pytest.raises(EngineError, match="is not true"):
        register_source(catalog, lambda: spark, "t", spark.range(9).selectExpr("id", "assert_true(id < 5) AS a"))
    with pytest.raises(SchemaError, match="cannot name"):
        register_source(catalog, lambda: spark, "no name", spark.range(1))
    assert catalog.names == ()


def test_arrangements_that_cannot_be_are_refused(spark: Any, catalog: Catalog) -> None:
    register_source(catalog, lambda: spark, "t", spark.range(3).selectExpr("id", "rand() AS r", "array(id) AS a"))
    for column in ("r", "a"):
        with pytest.raises(Unsupported, match="cannot cluster"):
            prepare(catalog, spark, "t", by=column)
    with pytest.raises(UnknownName, match="'x'"):
        prepare(catalog, spark, "t", by="x")
    with pytest.raises(SchemaError, match="buckets=0"):
        prepare(catalog, spark, "t", by="id", buckets=0)
    with pytest.raises(SchemaError, match="leave them out to shuffle"):
        prepare(catalog, spark, "t", buckets=4)
    with pytest.raises(SchemaError, match="names no column"):
        prepare(catalog, spark, "t", by=[])
    with pytest.raises(UnknownName, match="'nothing'"):
        prepare(catalog, spark, "nothing")


def test_tables_without_rows_and_with_one_have_layouts(spark: Any, catalog: Catalog) -> None:
    for name, count in (("none", 0), ("one", 1)):
        register_source(catalog, lambda: spark, name, spark.range(count))
        prepare(catalog, spark, name)
        table = prepare(catalog, spark, name, by="id")
        assert table.rows == count
        assert_consistent(table)
        assert append(catalog, spark, name, spark.range(2)).rows == count + 2


def test_differs_a_vanished_file_stops_prepare(spark: Any, catalog: Catalog, tmp_path: Path) -> None:
    own_files(tmp_path, 0, 10)
    own_files(tmp_path, 10, 20)
    before = register_source(catalog, lambda: spark, "t", tmp_path / "own")
    (tmp_path / "own" / "10.parquet").unlink()
    with pytest.raises(EngineError, match=r"10\.parquet has vanished"):
        prepare(catalog, spark, "t")
    assert catalog.table("t") == before


def test_a_reporter_that_fails_leaves_the_old_state(spark: Any, catalog: Catalog, tmp_path: Path) -> None:
    own_files(tmp_path, 0, 50_000)
    before = register_source(catalog, lambda: spark, "t", tmp_path / "own")

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(catalog, spark, "t", by="s", buckets=64, progress=stop)
    assert catalog.table("t") == before
    assert {path.suffix for path in catalog.directory("t").iterdir()} == {".json"}


def test_a_table_changed_meanwhile_is_not_overwritten(
    spark: Any, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_files(tmp_path, 0, 10)
    register_source(catalog, lambda: spark, "t", tmp_path / "own")
    from nearly.engine.writing import preparation

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        own_files(tmp_path, 10, 20)
        register_parquet(Catalog(catalog.path), "t", tmp_path / "own")
        return write_layout(*arguments, **options)

    write_layout = preparation.write_layout
    monkeypatch.setattr(preparation, "write_layout", meanwhile)
    with pytest.raises(EngineError, match="changed by someone else"):
        prepare(catalog, spark, "t")
    assert catalog.table("t").rows == 20


_KILLED = """
import os, signal, sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
from nearly.engine.storage import catalog as catalogs, versions
from nearly.engine.writing import preparation

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def write(spark, rows, count, columns, buckets, to, progress):
    for bucket in range(buckets):
        directory = to.directory / f"nearly_bucket={bucket}"
        directory.mkdir(parents=True)
        pq.write_table(pa.table({"id": list(range(bucket, count, buckets))}), directory / "f.parquet")

preparation.read_table = lambda *_: None
preparation.parquet_writer.write_hashed = write
if sys.argv[2] == "before":
    catalogs.Catalog.commit = die
elif sys.argv[2] == "during":
    versions.write_durably = die
preparation.prepare(catalogs.Catalog(sys.argv[1]), None, "t", by="id", buckets=4)
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def run_script(script: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env=environment(), timeout=HUNG, check=False, capture_output=True)


@pytest.mark.parametrize("moment", ["before", "during", "never"])
def test_differs_a_kill_around_the_commit_leaves_a_whole_state(catalog: Catalog, tmp_path: Path, moment: str) -> None:
    pq.write_table(pa.table({"id": list(range(100))}), tmp_path / "f.parquet")
    before = register_parquet(catalog, "t", tmp_path / "f.parquet")
    run = run_script(_KILLED, str(catalog.path), moment)
    assert run.returncode == (0 if moment == "never" else -signal.SIGKILL), run.stderr.decode()[-2000:]
    left = [path.name for path in catalog.directory("t").iterdir()]
    assert any(name.startswith((".tmp-", "by_id-")) for name in left)
    table = Catalog(catalog.path).table("t")
    assert_consistent(table)
    kept = [path.name for path in catalog.directory("t").iterdir()]
    if moment == "never":
        assert [layout.name for layout in table.layouts] == ["base", "by_id"]
    else:
        assert table == before
        assert sorted(name[:5] for name in kept) == ["table", "whole"]


_CONNECTED = """
import sys
from pyspark.sql import SparkSession
from nearly.engine.storage.catalog import Catalog
from nearly.engine.writing.append_refresh import append
from nearly.engine.writing.preparation import prepare
from nearly.engine.writing.sources import register_source

spark = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false") \\
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
assert "connect" in type(spark).__module__
catalog = Catalog(sys.argv[1])
register_source(catalog, lambda: spark, "t", spark.range(1000))
prepare(catalog, spark, "t")
prepare(catalog, spark, "t", by="id", buckets=4, progress=lambda done: None)
append(catalog, spark, "t", spark.range(5))
spark.stop()
"""


@pytest.mark.long
def test_spark_connect_writes_the_same(catalog: Catalog) -> None:
    run = run_script(_CONNECTED, str(catalog.path))
    assert run.returncode == 0, run.stderr.decode()[-2000:]
    table = Catalog(catalog.path).table("t")
    assert table.rows == 1005
    assert [layout.name for layout in table.layouts] == ["base", "shuffled", "by_id"]
    assert_consistent(table)
