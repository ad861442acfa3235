"""Types and Hive partitions are read as Spark reads them; Spark is the oracle."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.footers import read_footer
from nearly.engine.storage.registration import register_parquet
from nearly.errors import SchemaError, Unsupported


def test_oracle_types_are_those_of_spark(spark: Any, tmp_path: Path) -> None:
    values = [1, 2]
    table = pa.table(
        {
            **{f"i{kind}": pa.array(values, kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
            **{f"u{kind}": pa.array(values, kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
            "f": pa.array([1.0, 2.0], pa.float32()),
            "d": [1.0, 2.0],
            "dec": pa.array(values, pa.int32()).cast(pa.decimal128(12, 2)),
            "utc": pa.array(values, pa.timestamp("us", "Asia/Tokyo")),
            "local": pa.array(values, pa.timestamp("ms")),
            "day": pa.array([dt.date(2020, 1, 1)] * 2),
            "day64": pa.array([0, 86_400_000]).cast(pa.date64()),
            "span": pa.array(values, pa.duration("us")),
            "text": ["a", "b"],
            "large": pa.array(["a", "b"], pa.large_string()),
            "coded": pa.array(["a", "b"]).dictionary_encode(),
            "raw": [b"a", b"b"],
            "fixed": pa.array([b"ab", b"cd"], pa.binary(2)),
            "truth": [True, False],
            "nothing": pa.nulls(2),
            "a.b c": values,
            "list": [[1], [2, 3]],
            "record": [{"a": 1, "b": [{"c": "x"}]}] * 2,
            "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int32())),
            "after": values,
        }
    )
    path = tmp_path / "types.parquet"
    pq.write_table(table, path)
    found = [(column.name, str(column.type)) for column in read_footer(str(path)).columns]
    assert found == spark.read.parquet(str(path)).dtypes


def test_oracle_timestamps_of_the_old_kind(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "old.parquet"
    pq.write_table(pa.table({"t": pa.array([1], pa.timestamp("us"))}), path, use_deprecated_int96_timestamps=True)
    assert [(c.name, str(c.type)) for c in read_footer(str(path)).columns] == spark.read.parquet(str(path)).dtypes


def test_oracle_types_that_only_spark_can_write(spark: Any, tmp_path: Path) -> None:
    rows = spark.sql(
        "select interval '1' year a, interval '1 02:03:04' day to second b, map('k', array(struct(1 x))) c,"
        " cast(1 as tinyint) d, current_timestamp() e, cast('x' as char(3)) f, 1.5bd g,"
        " named_struct('p', date'2020-01-01') h"
    )
    rows.write.parquet(str(tmp_path / "d"))
    (path,) = (tmp_path / "d").glob("*.parquet")
    assert [(c.name, str(c.type)) for c in read_footer(str(path)).columns] == spark.read.parquet(str(path)).dtypes


_PARTITIONS = [
    ["1", "2"],
    ["1", "3000000000"],
    ["1", "1.5"],
    ["3000000000", "1.5"],
    ["3000000000", "1.5", "1"],
    ["01", "a"],
    ["007", "+1", "-1"],
    ["2020-01-01", "2020-02-29"],
    ["2020-01-01", "x"],
    ["2020-01-01", "1"],
    ["2020-02-30"],
    ["1", "__HIVE_DEFAULT_PARTITION__"],
    ["1.0", "__HIVE_DEFAULT_PARTITION__"],
    ["__HIVE_DEFAULT_PARTITION__"],
    ["a%2Fb", "c d", "é", "x=y", "100%25"],
    ["true"],
    [".5", "-0.0"],
    ["2020-1-1"],
    ["1_000"],
    ["0x10"],
]


@pytest.mark.parametrize("values", _PARTITIONS, ids="|".join)
def test_oracle_partition_columns_are_those_of_spark(spark: Any, tmp_path: Path, values: list[str]) -> None:
    root = tmp_path / "root"
    for number, value in enumerate(values):
        (root / f"k={value}").mkdir(parents=True)
        pq.write_table(pa.table({"x": [number]}), root / f"k={value}" / "f.parquet")
    table = register_parquet(Catalog(tmp_path / "catalog"), "t", root)
    oracle = spark.read.parquet(str(root))
    assert [(column.name, str(column.type)) for column in table.columns] == oracle.dtypes
    expected = {row["x"]: row["k"] for row in oracle.collect()}
    found = {}
    for block in table.base.blocks:
        statistics = block.statistics_of("x")
        assert statistics is not None
        found[statistics.low] = block.partition[0].value
    assert found == expected
    assert table.column("k").nullable == (None in expected.values())


@pytest.mark.parametrize("value", ["1e5", "NaN", "1d", " 1", "10%3A00%3A00", "2020-01-01 10%3A00%3A00", "٣", "9" * 20])
def test_partition_values_of_uncertain_type_are_refused(tmp_path: Path, value: str) -> None:
    (tmp_path / "root" / f"k={value}").mkdir(parents=True)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "root" / f"k={value}" / "f.parquet")
    with pytest.raises(Unsupported, match="partition value k="):
        register_parquet(Catalog(tmp_path / "catalog"), "t", tmp_path / "root")


def test_partition_directories_must_agree(tmp_path: Path) -> None:
    for name in ("a=1", "b=1"):
        (tmp_path / "root" / name).mkdir(parents=True)
        pq.write_table(pa.table({"x": [1]}), tmp_path / "root" / name / "f.parquet")
    with pytest.raises(SchemaError, match=r"\['a'\].*\['b'\]"):
        register_parquet(Catalog(tmp_path / "catalog"), "t", tmp_path / "root")
    (tmp_path / "other" / "X=1").mkdir(parents=True)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other" / "X=1" / "f.parquet")
    with pytest.raises(SchemaError, match="occurs twice"):
        register_parquet(Catalog(tmp_path / "catalog"), "t", tmp_path / "other")


def test_oracle_only_directories_below_the_given_one_are_partitions(spark: Any, tmp_path: Path) -> None:
    inner = tmp_path / "root" / "k=1"
    inner.mkdir(parents=True)
    pq.write_table(pa.table({"x": [1]}), inner / "f.parquet")
    table = register_parquet(Catalog(tmp_path / "catalog"), "t", inner)
    assert list(table.column_names) == spark.read.parquet(str(inner)).columns == ["x"]
