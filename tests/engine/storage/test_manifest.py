"""Manifests: a file that is not what it was is found and named."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.footers import read_footers
from nearly.engine.storage.layouts import Table
from nearly.engine.storage.manifest import manifest_of, verify
from nearly.engine.storage.registration import register_parquet
from nearly.errors import EngineError


@pytest.fixture
def data(tmp_path: Path) -> Path:
    directory = tmp_path / "data"
    directory.mkdir()
    for number in range(4):
        values = [number * 100 + i for i in range(100)]
        pq.write_table(pa.table({"x": values, "y": values}), directory / f"part-{number}.parquet", compression="none")
    return directory


@pytest.fixture
def table(data: Path, tmp_path: Path) -> Table:
    return register_parquet(Catalog(tmp_path / "catalog"), "t", data)


def test_untouched_files_verify(table: Table) -> None:
    table.base.verify()
    with pytest.raises(EngineError, match="without hashes"):
        table.base.verify(full=True)


def vanish(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 20)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def replace(path: Path) -> None:
    pq.write_table(pa.table({"x": [1], "y": [2]}), path)


def change_schema(path: Path) -> None:
    pq.write_table(pa.table({"x": ["a"] * 100, "z": [1] * 100}), path)


def flip_a_byte_of_a_page(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (vanish, "vanished"),
        (truncate, "truncated"),
        (empty, "emptied"),
        (replace, "replaced"),
        (change_schema, "schema changed"),
        (flip_a_byte_of_a_page, "written to"),
    ],
)
def test_differs_damage_is_found_and_named(table: Table, data: Path, damage: object, word: str) -> None:
    assert callable(damage)
    damage(data / "part-2.parquet")
    with pytest.raises(EngineError, match=rf"part-2\.parquet.*{word}"):
        table.base.verify()


def test_contents_with_a_checksum_tell_a_touched_file_from_a_changed_one(data: Path) -> None:
    path = data / "part-1.parquet"
    manifest = manifest_of(read_footers([str(path)]), contents=True)
    os.utime(path, ns=(1, 1))
    verify(manifest)
    flip_a_byte_of_a_page(path)
    with pytest.raises(EngineError, match="checksum"):
        verify(manifest)


def test_a_full_check_finds_a_change_that_hides_its_time(data: Path) -> None:
    path = data / "part-1.parquet"
    manifest = manifest_of(read_footers([str(path)]), contents=True)
    before = path.stat()
    flip_a_byte_of_a_page(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    verify(manifest)
    with pytest.raises(EngineError, match="checksum"):
        verify(manifest, full=True)


def test_new_files_are_told_and_not_read(table: Table, data: Path) -> None:
    assert table.new_files() == ()
    shutil.copy(data / "part-0.parquet", data / "part-9.parquet")
    table.base.verify()
    assert table.new_files() == (str(data / "part-9.parquet"),)
    assert table.rows == 400


def test_the_digest_names_the_content(data: Path) -> None:
    paths = sorted(str(path) for path in data.iterdir())
    first = manifest_of(read_footers(paths)).digest
    assert manifest_of(read_footers(paths)).digest == first
    replace(data / "part-0.parquet")
    assert manifest_of(read_footers(paths)).digest != first
