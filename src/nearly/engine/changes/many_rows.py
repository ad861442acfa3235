"""Changes of more rows than memory holds: they lie in files from the beginning, and only their keys and places are looked at."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearly.engine.changes.given_rows import arrow_schema, fitted
from nearly.engine.changes.positions import same_keys
from nearly.engine.changes.row_files import BATCH_ROWS, FiledRows, ManyRows, batches_of, collected
from nearly.engine.engine import Engine
from nearly.engine.native.places import Positions
from nearly.engine.native.reading import FILE, ROW
from nearly.engine.storage.blocks import target_for
from nearly.engine.storage.durable import flush, writing_in
from nearly.engine.storage.footers import read_footers
from nearly.engine.storage.layouts import Table
from nearly.engine.storage.listing import natural_order
from nearly.engine.storage.registration import schema_difference
from nearly.engine.writing.parquet_writer import Destination, refuse_unwritable, write_plain
from nearly.errors import Unsupported
from nearly.plan.quoting import native_name, spark_name

_GIVEN = "given"


@dataclass(slots=True)
class PlacesTaken:
    """Takes the places, which come last, from batches of rows that pass by in the order of their places."""

    files: list[NDArray[np.int32]] = field(default_factory=list)
    rows: list[NDArray[np.int64]] = field(default_factory=list)

    def take(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        self.files, self.rows = [], []
        for batch in batches:
            files, rows = batch.columns[-2:]
            self.files.append(files.to_numpy(zero_copy_only=False).astype(np.int32))
            self.rows.append(rows.to_numpy(zero_copy_only=False).astype(np.int64))
            yield batch.select(range(batch.num_columns - 2))

    @property
    def places(self) -> Positions:
        return Positions(np.concatenate([np.empty(0, np.int32), *self.files]), np.concatenate([np.empty(0, np.int64), *self.rows]))


def written_by_spark(engine: Engine, table: Table, rows: Any, directory: Path, what: str) -> FiledRows:
    """The rows of a DataFrame in files that Spark has written below a directory; where their types fit only after a cast, again."""
    refuse_unwritable(rows, f"what is given for table {table.name!r}")
    first = fitted(rows.limit(0).toArrow(), table, table.columns, what)  # refuses other columns before anything is written
    place = directory / _GIVEN
    group = target_for(table.rows, table.base.manifest.bytes).rows
    ordered = rows.selectExpr(*map(spark_name, first.column_names))
    with writing_in(directory):
        directory.mkdir(parents=True)
        write_plain(rows.sparkSession, ordered, Destination(place, group), None)
        paths = sorted((str(path) for path in place.rglob("*.parquet")), key=natural_order)
        given = FiledRows(arrow_schema(table.columns), tuple(paths), sum(pq.read_metadata(path).num_rows for path in paths))
        kept = _as_they_are(engine, table, given, directory) or _cast(table, given, directory, what)
        shutil.rmtree(place)
    return kept


def _as_they_are(engine: Engine, table: Table, given: FiledRows, directory: Path) -> FiledRows | None:
    """The files as files of the table; None where they must be written again for that."""
    try:
        for footer in read_footers(given.paths):
            if schema_difference(table.columns, footer.columns):
                return None
            engine.native.reader.refuse_other_types(table, footer.path)
    except Unsupported:
        return None
    moved = []
    for number, path in enumerate(given.paths):
        moved.append(Path(path).rename(directory / f"came-{number:05d}.parquet"))
        flush(moved[-1])
    return FiledRows(given.schema, tuple(map(str, moved)), given.num_rows)


def _cast(table: Table, given: FiledRows, directory: Path, what: str) -> ManyRows:
    batches = (
        batch
        for found in given.batches()
        for batch in fitted(pa.Table.from_batches([found]), table, table.columns, what).to_batches(BATCH_ROWS)
    )
    return collected(batches, table, directory / "came", held=0)


def in_order_of(engine: Engine, table: Table, given: FiledRows, found: pa.Table, stem: Path) -> ManyRows:
    """Rows that are given, written anew: those whose key was found first, in the order of where it was, then all others."""
    before = [Path(path).rename(stem.with_name(f"{_GIVEN}-{number}.parquet")) for number, path in enumerate(given.paths)]
    moved = FiledRows(given.schema, tuple(map(str, before)), given.num_rows)
    columns = ", ".join(f"g.{native_name(name)}" for name in table.column_names)
    joined = f"SELECT {columns} FROM {moved.source} AS g LEFT JOIN found AS s ON {same_keys(table.key)}"
    query = f"{joined} ORDER BY s.{FILE} NULLS LAST, s.{ROW}"
    rows = collected(batches_of(engine, query, {"found": found}), table, stem, held=0)
    moved.remove()
    return rows
