"""Blocks and their statistics: every row group in exactly one block, bounds that hold in Spark's order."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearly.engine.storage.blocks import Block, BlockTarget, ColumnStatistics, RowGroup, make_blocks, target_for
from nearly.engine.storage.footers import read_footer
from nearly.errors import EngineError, SchemaError


def row_groups(files: list[list[int]]) -> list[RowGroup]:
    found = []
    for number, sizes in enumerate(files):
        first = 0
        for index, rows in enumerate(sizes):
            statistics = (ColumnStatistics("x", first, first + rows, 0),)
            found.append(RowGroup(f"f{number}", index, first, rows, rows * 10, sum(sizes), statistics))
            first += rows
    return found


def pieces(blocks: tuple[Block, ...]) -> list[tuple[str, int]]:
    return [
        (part.path, index)
        for block in blocks
        for part in block.parts
        for index in range(part.first_row_group, part.first_row_group + part.row_groups)
    ]


@settings(max_examples=200, deadline=None)
@given(
    files=st.lists(st.lists(st.integers(0, 50), max_size=6), max_size=6),
    target=st.builds(BlockTarget, st.integers(1, 100), st.integers(1, 1000)),
)
def test_law_blocks_partition_the_row_groups(files: list[list[int]], target: BlockTarget) -> None:
    given_groups = row_groups(files)
    blocks = make_blocks(given_groups, target)
    assert sorted(pieces(blocks)) == sorted((each.path, each.index) for each in given_groups if each.rows)
    assert sum(block.rows for block in blocks) == sum(map(sum, files))
    assert [block.id for block in blocks] == list(range(len(blocks)))
    for block in blocks:
        single = len(pieces((block,))) == 1
        assert single or (block.rows <= target.rows and block.bytes <= target.bytes)
        assert block.rows == sum(part.rows for part in block.parts)
        found = block.statistics_of("x")
        assert found is not None
        assert found.low == min(part.first_row for part in block.parts)


def test_parts_know_their_rows_in_the_file() -> None:
    blocks = make_blocks(row_groups([[10, 20, 30, 40]]), BlockTarget(rows=50, bytes=10_000))
    assert [(part.first_row, part.rows, part.file_rows) for block in blocks for part in block.parts] == [
        (0, 30, 100),
        (30, 30, 100),
        (60, 40, 100),
    ]


def test_tiny_files_share_a_block_and_large_ones_do_not() -> None:
    tiny = make_blocks(row_groups([[5]] * 10), BlockTarget(rows=20, bytes=10_000))
    assert [len(block.parts) for block in tiny] == [4, 4, 2]
    large = make_blocks(row_groups([[15, 10], [10, 15]]), BlockTarget(rows=20, bytes=10_000))
    assert all(len(block.parts) == 1 for block in large)


def test_a_large_row_group_stays_whole() -> None:
    assert [block.rows for block in make_blocks(row_groups([[5000]]), BlockTarget(10, 10))] == [5000]


def test_targets_give_many_blocks_to_small_tables_and_not_too_many_to_large_ones() -> None:
    assert 6_000_000 / target_for(6_000_000, 200 << 20).rows >= 48
    assert 60_000_000 / target_for(60_000_000, 2 << 30).rows <= 600
    assert 10**10 / target_for(10**10, 10**12).rows <= 1025


def test_differs_partitions_and_buckets_never_share_a_block() -> None:
    groups = [RowGroup("a", 0, 0, 1, 1, 1, bucket=0), RowGroup("b", 0, 0, 1, 1, 1, bucket=1)]
    assert [block.bucket for block in make_blocks(groups, BlockTarget())] == [0, 1]


def statistics_of(tmp_path: Path, values: pa.Array, **options: Any) -> ColumnStatistics:
    path = str(tmp_path / "one.parquet")
    pq.write_table(pa.table({"x": values}), path, **options)
    (block,) = make_blocks(read_footer(path).row_groups)
    found = block.statistics_of("x")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (pa.array([3, None, 1]), 1, 3),
        (pa.array(["b", None, "ä"]), "b", "ä"),
        (pa.array([Decimal("-1.50"), Decimal("2.25")], pa.decimal128(5, 2)), Decimal("-1.50"), Decimal("2.25")),
        (pa.array([Decimal(-7), Decimal(12)], pa.decimal128(38, 10)), Decimal(-7), Decimal(12)),
        (pa.array([dt.date(2020, 1, 1), dt.date(1999, 1, 1)]), dt.date(1999, 1, 1), dt.date(2020, 1, 1)),
        (pa.array([1, 2**64 - 1], pa.uint64()), Decimal(1), Decimal(2**64 - 1)),
        (pa.array([True, False]), False, True),
        (
            pa.array([1, 2], pa.timestamp("us", "Europe/Berlin")),
            dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC),
            dt.datetime(1970, 1, 1, 0, 0, 0, 2, dt.UTC),
        ),
        (pa.array([None, None], pa.int32()), None, None),
        (pa.array([b"a", b"\xff"]), None, None),
        (pa.array([-(10**16), 10**18]).cast(pa.timestamp("us")), None, None),
        (pa.array([[1], [2]]), None, None),
    ],
)
def test_statistics_are_python_values_that_compare(tmp_path: Path, values: pa.Array, low: Any, high: Any) -> None:
    found = statistics_of(tmp_path, values)
    assert (found.low, found.high) == (low, high)


def test_differs_nan_is_above_every_bound(tmp_path: Path) -> None:
    found = statistics_of(tmp_path, pa.array([1.0, math.nan, 5.0]))
    assert (found.low, found.high, found.high_number) == (1.0, None, 5.0)
    assert statistics_of(tmp_path, pa.array([math.nan, math.nan])).low is None


def test_all_null_row_groups_do_not_hide_the_bounds_of_the_others(tmp_path: Path) -> None:
    found = statistics_of(tmp_path, pa.array([None, None, 4, 7]), row_group_size=2)
    assert (found.low, found.high, found.nulls) == (4, 7, 2)


def test_missing_statistics_are_unknown(tmp_path: Path) -> None:
    found = statistics_of(tmp_path, pa.array([1, 2]), write_statistics=False)
    assert (found.low, found.high, found.nulls) == (None, None, None)


def test_nullable_only_when_footers_do_not_rule_nulls_out(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"full": [1, 2], "holes": [1, None], "list": [[1], [2]]}), path)
    assert [column.nullable for column in read_footer(path).columns] == [False, True, True]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no parquet at all", b"x" * 100 + (90).to_bytes(4, "little") + b"PAR1"])
def test_files_that_are_not_parquet_are_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.parquet"
    path.write_bytes(content)
    with pytest.raises(EngineError, match=r"bad\.parquet"):
        read_footer(str(path))


def test_types_that_spark_refuses_are_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "nanos.parquet")
    pq.write_table(pa.table({"t": pa.array([1], pa.timestamp("ns"))}), path)
    with pytest.raises(SchemaError, match=r"'t'.*nanoseconds"):
        read_footer(path)
