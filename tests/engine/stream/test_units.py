"""Units: their pieces together are the table, whatever files, blocks and keys it has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearly.engine.native.reading import NativeReader
from nearly.engine.storage.blocks import BlockTarget
from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.layouts import Table
from nearly.engine.storage.registration import register_parquet
from nearly.engine.stream.units import LARGEST_STEP, SMALL_UNITS, Units, units_of
from nearly.plan.nodes import Field, Scan
from nearly.plan.types import INT, LONG
from nearly.rewrite.stream.cut import UNIT, Cut

ROWS = 9_000


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "catalog")


def table_of(catalog: Catalog, path: Path, name: str, keys: list[int | None], files: int, group: int) -> Table:
    """A table in so many files, with row groups of so many rows; `row_` tells rows apart."""
    directory = path / name
    directory.mkdir()
    step = -(-len(keys) // files)
    for part in range(files):
        mine = range(part * step, min((part + 1) * step, len(keys)))
        rows = pa.table({"k": pa.array([keys[at] for at in mine], pa.int64()), "row_": pa.array(list(mine), pa.int64())})
        pq.write_table(rows, directory / f"part-{part:03}.parquet", row_group_size=group)
    return register_parquet(catalog, name, str(directory), target=BlockTarget(rows=group))


def scan_of(name: str, *columns: str) -> Scan:
    fields = [Field(f"{name}_{column}", column, LONG) for column in columns]
    return Scan(name, (*fields, Field(f"{name}_unit", UNIT, INT)), share="units")


def rows_read(units: Units, scan: Scan) -> Counter[tuple[Any, ...]]:
    reader = NativeReader()
    return Counter(row[:-1] for query in units.queries(reader, scan) for row in duckdb.sql(query).fetchall())


def whole(table: Table) -> Counter[tuple[Any, ...]]:
    return Counter(row for path in table.base.manifest.paths for row in duckdb.sql(f"SELECT k, row_ FROM '{path}'").fetchall())


SHAPES = {
    "one file, small row groups": ([at // 3 for at in range(ROWS)], 1, 50),
    "files of their own": ([at // 3 for at in range(ROWS)], 60, 150),
    "long runs of one key": ([at // 700 for at in range(ROWS)], 7, 100),
    "nulls first": ([None] * 400 + [at // 5 for at in range(ROWS - 400)], 9, 100),
    "one row": ([7], 1, 10),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ranged", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_law_the_pieces_are_the_table(catalog: Catalog, tmp_path: Path, shape: str, ranged: bool, seed: int) -> None:
    table = table_of(catalog, tmp_path, "t", *SHAPES[shape])
    scan = scan_of("t", "k", "row_")
    ranged = ranged and table.base.clustering is not None
    units = units_of(Cut(scan, (), (scan,), ranged), [table], seed)
    assert rows_read(units, scan) == whole(table)
    assert sum(unit.rows for unit in units.order) == table.rows


def test_rows_of_a_key_meet_in_one_unit(catalog: Catalog, tmp_path: Path) -> None:
    """Two tables whose files do not end at the same keys: both are cut at the same ones."""
    lines = table_of(catalog, tmp_path, "lines", [at // 4 for at in range(ROWS)], 60, 50)
    heads = table_of(catalog, tmp_path, "heads", list(range(ROWS // 4)), 7, 33)
    assert lines.base.clustering is not None
    assert heads.base.clustering is not None
    scans = (scan_of("lines", "k"), scan_of("heads", "k"))
    units = units_of(Cut(scans[0], (), scans, ranged=True), [lines, heads], 5)
    assert len(units.order) > SMALL_UNITS
    reader = NativeReader()
    read = [units.queries(reader, scan) for scan in scans]
    for mine, other in zip(*read, strict=True):
        keys = [{row[0] for row in duckdb.sql(query).fetchall()} for query in (mine, other)]
        assert keys[0] == keys[1]


def test_the_first_units_are_single_blocks_of_different_places(catalog: Catalog, tmp_path: Path) -> None:
    table = table_of(catalog, tmp_path, "t", [at // 3 for at in range(ROWS)], 6, 50)
    scan = scan_of("t", "row_")
    units = units_of(Cut(scan, (), (scan,), ranged=False), [table], 3)
    first = units.order[:SMALL_UNITS]
    assert all(len(unit.spans) == 1 and unit.spans[0][1] - unit.spans[0][0] == 1 for unit in first)
    assert len({unit.spans for unit in first}) == SMALL_UNITS
    assert units.order != units_of(Cut(scan, (), (scan,), ranged=False), [table], 4).order


@pytest.mark.parametrize("blocks", [64, 180, 500])
def test_no_unit_is_much_larger_than_those_before_it(catalog: Catalog, tmp_path: Path, blocks: int) -> None:
    """One that were as large as all of them would decide the answer by itself."""
    table = table_of(catalog, tmp_path, "t", [at // 3 for at in range(ROWS)], 1, ROWS // blocks)
    scan = scan_of("t", "row_")
    for seed in range(5):
        rows = [unit.rows for unit in units_of(Cut(scan, (), (scan,), ranged=False), [table], seed).order]
        for place in range(SMALL_UNITS, len(rows)):
            assert rows[place] <= 1.5 * LARGEST_STEP * max(rows[:place])
            assert rows[place] < 0.4 * sum(rows[:place])


def test_every_block_is_read_first_equally_often(catalog: Catalog, tmp_path: Path) -> None:
    """Over 500 seeds a block is among the first units about as often as any other."""
    table = table_of(catalog, tmp_path, "t", [at // 3 for at in range(ROWS)], 1, 50)
    scan = scan_of("t", "row_")
    early = Counter[int]()
    for seed in range(500):
        order = units_of(Cut(scan, (), (scan,), ranged=False), [table], seed).order
        early.update(block for unit in order[: 2 * SMALL_UNITS] for first, end in unit.spans for block in range(first, end))
    blocks = len(table.base.blocks)
    expected = sum(early.values()) / blocks
    assert len(early) == blocks
    assert all(0.6 * expected < times < 1.4 * expected for times in early.values())
