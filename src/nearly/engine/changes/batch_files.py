"""The files of one batch: rows that came, rows that went, and a vector of positions for each layout."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearly.engine.changes.given_rows import arrow_schema
from nearly.engine.changes.positions import by_content, by_key
from nearly.engine.changes.row_files import FiledRows, ManyRows, batches_of
from nearly.engine.engine import Engine
from nearly.engine.native.places import Positions
from nearly.engine.storage.batches import Batch, LayoutChange
from nearly.engine.storage.blocks import make_blocks, target_for
from nearly.engine.storage.differences import Part
from nearly.engine.storage.durable import flush, writing_in
from nearly.engine.storage.footers import Footer, read_footer, read_footers
from nearly.engine.storage.hive_partitions import directory_of
from nearly.engine.storage.layouts import Layout, Table
from nearly.engine.storage.listing import FoundFile
from nearly.engine.storage.manifest import FileEntry, manifest_of, schema_checksum
from nearly.engine.storage.registration import ReadFiles, schema_difference
from nearly.engine.storage.versions import now
from nearly.errors import EngineError
from nearly.plan.schema import SchemaColumn
from nearly.plan.types import is_simple

CAME, WENT = "came.parquet", "went.parquet"
GONE, SOURCE = "gone", "source"
"""How the names of vectors begin: of rows deleted here, and of those that a source with versions holds as deleted."""
VECTOR_ROWS = 65_536
"""Positions in a row group of a vector: a query over few files reads few of them."""


READ_AGAIN = 0.02
"""Rows that go are kept in a file where they are this share of the files that they lie in: a change of fewer would be slowed down
by reading them, and of many small changes they are read together."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be changed in a table: rows to add, rows to take out and where they lie in its base layout.

    The first `updated` rows of both are the same rows, after and before. Rows to take out are given by their key at least, where
    the table has one, and whole where some of them are updated and others not.
    """

    operation: str
    came: ManyRows | None = None
    went: ManyRows | None = None
    places: Positions | None = None
    updated: int = 0
    stream: tuple[str, int] | None = None

    @property
    def is_mixed(self) -> bool:
        """Whether places alone do not tell which of the rows that go are replaced."""
        return 0 < self.updated < (0 if self.places is None else len(self.places))

    @property
    def is_empty(self) -> bool:
        return not (self.came is not None and self.came.num_rows) and not (self.places is not None and len(self.places))


def new_directory(engine: Engine, table: Table) -> Path:
    """Where the files of a batch will be."""
    return engine.catalog.directory(table.name) / f"changes-{uuid.uuid4().hex[:12]}"


def write_batch(engine: Engine, table: Table, change: Change, directory: Path) -> Batch:
    """The batch of a change, whose files are all written, but known to nobody yet; rows that are many lie in the directory."""
    with writing_in(directory):
        directory.mkdir(parents=True, exist_ok=True)
        came = None if change.came is None or not change.came.num_rows else _came(engine, table, change, directory)
        went = _went(change.went, directory / WENT) if change.is_mixed and change.went is not None else None
    layouts = [_base_change(table, came, change.places, directory)]
    if layouts[0].vector is not None and went is None and _is_read_again(engine, table, change):
        went = _read(engine, table, layouts[0].vector, directory / WENT)
    if came is None and not change.is_empty:  # rows that came lie in the base layout alone, so that the others are behind
        layouts += [_other_change(engine, table, layout, change, directory) for layout in table.layouts[1:]]
    if isinstance(change.went, FiledRows):
        change.went.remove()
    return Batch(
        version=table.version + 1,
        time=now(),
        operation=change.operation,
        came=0 if change.came is None else change.came.num_rows,
        gone=0 if change.places is None else len(change.places),
        updated=change.updated,
        layouts=tuple(layouts),
        went=None if went is None else entry_of_file(went),
        stream=change.stream,
    )


def _is_read_again(engine: Engine, table: Table, change: Change) -> bool:
    """Whether rows that went are kept for those who follow the table: where there are such, and reading each of the files that the
    rows lie in, once for every change and reader, would take long beside what the change takes.
    """
    if change.places is None or table.base.partitioned_by or not all(is_simple(column.type) for column in table.columns):
        return False
    touched = sum(table.base.manifest.files[number].rows for number in set(change.places.files.tolist()))
    return len(change.places) >= READ_AGAIN * touched and engine.catalog.followers(table.plain_name) > 0


def _read(engine: Engine, table: Table, vector: FileEntry, path: Path) -> Footer:
    """The rows that a vector names, in their order, in one file."""
    part = Part(table, table.base.manifest.files, (vector,), -1, named=True)
    rows = engine.native.reader.part(part, table.column_names, WENT, in_order=True)
    schema = arrow_schema(table.columns)
    with writing_in(path.parent):
        with pq.ParquetWriter(path, schema, compression="snappy", store_decimal_as_integer=True) as writer:
            for batch in batches_of(engine, rows):
                writer.write_table(pa.Table.from_batches([batch]).cast(schema))
        flush(path)
    return read_footer(str(path))


def _went(rows: ManyRows, path: Path) -> Footer:
    """Rows that went, in one file."""
    if not isinstance(rows, FiledRows):
        return written(rows, path)
    with pq.ParquetWriter(path, rows.schema, compression="snappy", store_decimal_as_integer=True) as writer:
        for batch in rows.batches():
            writer.write_batch(batch)
    flush(path)
    return read_footer(str(path))


def _base_change(table: Table, came: ReadFiles | None, places: Positions | None, directory: Path) -> LayoutChange:
    base = LayoutChange(table.base.name)
    if came is not None:
        groups = came.row_groups
        target = target_for(max(table.rows, sum(each.rows for each in groups)), table.base.manifest.bytes)
        base = replace(base, files=tuple(map(entry_of_file, came.footers)), blocks=make_blocks(groups, target))
    return base if places is None or not len(places) else with_vector(base, table.base, places, directory)


def _other_change(engine: Engine, table: Table, layout: Layout, change: Change, directory: Path) -> LayoutChange:
    """The same rows in another layout, found by their key or content."""
    key = list(table.key)
    went = pa.table({}) if change.went is None else change.went.select(key or list(table.column_names))
    places = Positions.of(by_key(engine, table, layout, went) if key else by_content(engine, table, layout, went))
    if len(places) != went.num_rows:
        raise EngineError(
            f"layout {layout.name!r} of table {table.name!r} holds {len(places)} of {went.num_rows} rows that the base layout "
            f"holds; prepare it again"
        )
    return with_vector(LayoutChange(layout.name), layout, places, directory)


def with_vector(
    change: LayoutChange,
    layout: Layout,
    places: Positions,
    directory: Path,
    destination: Path | None = None,
    stem: str = GONE,
) -> LayoutChange:
    """The change with a vector of rows that went, written in a directory that may be moved to its destination later."""
    path = directory / f"{stem}_{layout.name}.parquet"
    with writing_in(directory):
        pq.write_table(places.table, path, row_group_size=VECTOR_ROWS, compression="zstd")
        flush(path)
    entry = entry_of_file(read_footer(str(path)))
    if destination is not None:
        entry = replace(entry, path=str(destination / path.name))
    return replace(change, vector=entry, gone=places.by_block(layout))


def _came(engine: Engine, table: Table, change: Change, directory: Path) -> ReadFiles:
    """Rows that came, written below a directory; in directories of their own where the table has its files so."""
    rows = change.came if change.came is not None else nothing(table)
    if isinstance(rows, FiledRows):
        return _filed(engine, table, rows, directory)
    partitions = tuple(table.column(name) for name in table.base.partitioned_by)
    stored = [column for column in table.columns if column not in partitions]
    group = target_for(max(table.rows, rows.num_rows), table.base.manifest.bytes).rows
    found, footers = [], []
    parts = [rows.slice(0, change.updated), rows.slice(change.updated)] if partitions else [rows]
    for number, part in enumerate(parts):  # those that follow the changes tell updated rows by their place
        for values, inside in _by_partition(part, partitions):
            parent = directory.joinpath(*(directory_of(column, values[column.name]) for column in partitions))
            parent.mkdir(parents=True, exist_ok=True)
            path = parent / (f"{Path(CAME).stem}-{number}.parquet" if partitions else CAME)
            footers.append(written(inside.select([column.name for column in stored]), path, group))
            found.append(FoundFile(str(path), str(directory)))
    for footer in footers:
        if difference := schema_difference(stored, footer.columns):
            raise EngineError(f"the rows for table {table.name!r} were written with another schema: {difference}")
        engine.native.reader.refuse_other_types(table, footer.path, schema_checksum(footer.columns))
    return ReadFiles(tuple(found), tuple(footers), partitions)


def _filed(engine: Engine, table: Table, rows: FiledRows, directory: Path) -> ReadFiles:
    """Rows that came and are in files already, written by the library or by Spark."""
    footers = read_footers(rows.paths)
    for footer in footers:
        if difference := schema_difference(table.columns, footer.columns):
            raise EngineError(f"the rows for table {table.name!r} were written with another schema: {difference}")
        engine.native.reader.refuse_other_types(table, footer.path)
    return ReadFiles(tuple(FoundFile(path, str(directory)) for path in rows.paths), tuple(footers))


def _by_partition(rows: pa.Table, partitions: Sequence[SchemaColumn]) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """Rows by their values of partition columns, in the order of their first."""
    if not partitions:
        yield {}, rows
        return
    names = [column.name for column in partitions]
    for values in rows.select(names).group_by(names, use_threads=False).aggregate([]).to_pylist():
        same = pa.array([True] * rows.num_rows)
        for name, value in values.items():
            column = rows[name]
            mine = pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, pa.scalar(value, column.type)), False)
            same = pc.and_(same, mine)
        yield values, rows.filter(same)


def written(rows: pa.Table, path: Path, row_group: int = 131_072) -> Footer:
    """A file of rows; dictionaries are made of texts only, since making them takes most of the time of writing numbers."""
    texts = [field.name for field in rows.schema if pa.types.is_string(field.type)]
    pq.write_table(rows, path, row_group_size=row_group, compression="snappy", store_decimal_as_integer=True, use_dictionary=texts)
    flush(path)
    return read_footer(str(path))


def entry_of_file(footer: Footer) -> FileEntry:
    return manifest_of([footer], contents=True).files[0]


def nothing(table: Table, columns: Sequence[str] | None = None) -> pa.Table:
    """No row of a table, or of some of its columns."""
    return arrow_schema(table.columns if columns is None else [table.column(name) for name in columns]).empty_table()
