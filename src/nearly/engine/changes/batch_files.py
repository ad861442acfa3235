"""The files of one batch: rows that came, rows that went, and a vector of positions for each layout."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nearly.engine.changes.given_rows import arrow_schema
from nearly.engine.changes.positions import Positions, by_content, by_key
from nearly.engine.engine import Engine
from nearly.engine.storage.batches import Batch, LayoutChange
from nearly.engine.storage.blocks import make_blocks, target_for
from nearly.engine.storage.durable import writing_in
from nearly.engine.storage.footers import Footer, read_footer
from nearly.engine.storage.layouts import Layout, Table
from nearly.engine.storage.manifest import FileEntry, manifest_of
from nearly.engine.storage.registration import schema_difference
from nearly.engine.storage.versions import now
from nearly.errors import EngineError, Unsupported

CAME, WENT = "came.parquet", "went.parquet"
VECTOR_ROWS = 65_536
"""Positions in a row group of a vector: a query over few files reads few of them."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be changed in a table: rows to add, rows to take out and where they lie in its base layout.

    The first `updated` rows of both are the same rows, after and before.
    """

    operation: str
    came: pa.Table | None = None
    went: pa.Table | None = None
    places: Positions | None = None
    updated: int = 0
    stream: tuple[str, int] | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.came is not None and self.came.num_rows) and not (self.places is not None and len(self.places))


def write_batch(engine: Engine, table: Table, change: Change) -> tuple[Batch, Path]:
    """The batch of a change and the directory of its files, all written, but known to nobody yet."""
    directory = engine.catalog.directory(table.name) / f"changes-{uuid.uuid4().hex[:12]}"
    with writing_in(directory):
        directory.mkdir(parents=True)
        came = None if change.came is None or not change.came.num_rows else _came(engine, table, change.came, directory)
        went = None if change.went is None or not change.went.num_rows else _written(change.went, directory / WENT)
    layouts = [_base_change(table, came, change.places, directory)]
    if came is None and not change.is_empty:  # rows that came lie in the base layout alone, so that the others are behind
        layouts += [_other_change(engine, table, layout, change, directory) for layout in table.layouts[1:]]
    batch = Batch(
        version=table.version + 1,
        time=now(),
        operation=change.operation,
        came=0 if came is None else came.rows,
        gone=0 if change.places is None else len(change.places),
        updated=change.updated,
        layouts=tuple(layouts),
        went=None if went is None else _entry(went),
        stream=change.stream,
    )
    return batch, directory


def _base_change(table: Table, came: Footer | None, places: Positions | None, directory: Path) -> LayoutChange:
    base = LayoutChange(table.base.name)
    if came is not None:
        groups = came.row_groups
        blocks = make_blocks(groups, target_for(max(table.rows, came.rows), table.base.manifest.bytes))
        base = replace(base, files=(_entry(came),), blocks=blocks)
    return base if places is None or not len(places) else with_vector(base, table.base, places, directory)


def _other_change(engine: Engine, table: Table, layout: Layout, change: Change, directory: Path) -> LayoutChange:
    """The same rows in another layout, found by their key or content."""
    went = change.went if change.went is not None else pa.table({})
    key = list(table.key)
    places = Positions.of(by_key(engine, table, layout, went.select(key)) if key else by_content(engine, table, layout, went))
    if len(places) != went.num_rows:
        raise EngineError(
            f"layout {layout.name!r} of table {table.name!r} holds {len(places)} of {went.num_rows} rows that the base layout "
            f"holds; prepare it again"
        )
    return with_vector(LayoutChange(layout.name), layout, places, directory)


def with_vector(
    change: LayoutChange, layout: Layout, places: Positions, directory: Path, destination: Path | None = None
) -> LayoutChange:
    """The change with a vector of rows that went, written in a directory that may be moved to its destination later."""
    path = directory / f"gone_{layout.name}.parquet"
    with writing_in(directory):
        pq.write_table(places.table, path, row_group_size=VECTOR_ROWS, compression="zstd")
        _flush(path)
    entry = _entry(read_footer(str(path)))
    if destination is not None:
        entry = replace(entry, path=str(destination / path.name))
    return replace(change, vector=entry, gone=places.by_block(layout))


def _came(engine: Engine, table: Table, rows: pa.Table, directory: Path) -> Footer:
    if any(block.partition for block in table.base.blocks[:1]):
        raise Unsupported(
            f"table {table.name!r} is files in partition directories; add a file there and call refresh, or register a copy to "
            f"insert into"
        )
    footer = _written(rows, directory / CAME, target_for(max(table.rows, rows.num_rows), table.base.manifest.bytes).rows)
    if difference := schema_difference(table.columns, footer.columns):
        raise EngineError(f"the rows for table {table.name!r} were written with another schema: {difference}")
    engine.native.reader.refuse_other_types(table, footer.path)
    return footer


def _written(rows: pa.Table, path: Path, row_group: int = 131_072) -> Footer:
    pq.write_table(rows, path, row_group_size=row_group, compression="snappy", store_decimal_as_integer=True)
    _flush(path)
    return read_footer(str(path))


def _entry(footer: Footer) -> FileEntry:
    return manifest_of([footer], contents=True).files[0]


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def nothing(table: Table) -> pa.Table:
    """No row of a table."""
    return arrow_schema(table.columns).empty_table()
