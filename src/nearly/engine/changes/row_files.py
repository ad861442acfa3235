"""Rows on their way into files, some at a time: in memory they are held only as long as they are few."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearly.engine.changes.given_rows import arrow_schema
from nearly.engine.engine import Engine
from nearly.engine.native.failures import final, read_in_batches
from nearly.engine.native.reading import literal_path
from nearly.engine.storage.blocks import target_for
from nearly.engine.storage.durable import flush, writing_in
from nearly.engine.storage.layouts import Table
from nearly.engine.storage.ticket_order import directory_of_bucket
from nearly.engine.writing.parquet_writer import Progress
from nearly.plan.quoting import native_text

MOST_HELD = 128 << 20
"""Bytes of rows that are held in memory; more of them go to files as they come."""
ROWS_IN_FILE = 4_000_000
BATCH_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class FiledRows:
    """Rows that are too many for memory, in order, in files that hold nothing else."""

    schema: pa.Schema
    paths: tuple[str, ...]
    num_rows: int

    def select(self, names: Sequence[str]) -> pa.Table:
        """Some columns of all rows, in memory."""
        found = [pq.read_table(path, columns=list(names), partitioning=None) for path in self.paths]
        return pa.concat_tables(found).cast(pa.schema([self.schema.field(name) for name in names]))

    def batches(self) -> Iterator[pa.RecordBatch]:
        for path in self.paths:
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches(BATCH_ROWS)

    def remove(self) -> None:
        for path in self.paths:
            Path(path).unlink()

    @property
    def source(self) -> str:
        """What DuckDB selects from."""
        return f"read_parquet([{', '.join(native_text(literal_path(path)) for path in self.paths)}], hive_partitioning = false)"


ManyRows: TypeAlias = pa.Table | FiledRows
"""Rows with the columns of a table, however many."""


def collected(batches: Iterable[pa.RecordBatch], table: Table, stem: Path, held: int | None = None) -> ManyRows:
    """Rows of a table as they come, in memory, or, where they take more than `held` bytes, in files whose names begin alike.

    Rows of partition directories stay in memory: which file each belongs to is known when all are there.
    """
    schema = arrow_schema(table.columns)
    most = sys.maxsize if table.base.partitioned_by else held
    return gathered((_fitting(batch, schema) for batch in batches), schema, stem, _row_group(table), most)


def gathered(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, stem: Path, group: int = BATCH_ROWS, held: int | None = None
) -> ManyRows:
    """The same for rows of any columns."""
    most, first, size, coming = MOST_HELD if held is None else held, list[pa.RecordBatch](), 0, iter(batches)
    for batch in coming:
        first.append(batch)
        size += batch.nbytes
        if size > most:
            break
    else:
        whole: ManyRows = pa.Table.from_batches(first, schema)
        return whole
    with writing_in(stem.parent):
        stem.parent.mkdir(parents=True, exist_ok=True)
        with FileWriter(stem, schema, group) as writer:
            while first:
                writer.write(first.pop(0))
            for batch in coming:
                writer.write(batch)
    return FiledRows(schema, tuple(writer.paths), writer.rows)


def _row_group(table: Table) -> int:
    return target_for(table.rows, table.base.manifest.bytes).rows


def _fitting(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of a batch, taken in order for those of a schema."""
    arrays = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def write_files(engine: Engine, table: Table, query: str, stem: Path, progress: Progress | None, in_buckets: bool = False) -> None:
    """Write the rows of a query into files of a new directory, whose names begin alike; `in_buckets` its last column tells."""
    with writing_in(stem.parent):
        stem.parent.mkdir()
        schema, group = arrow_schema(table.columns), _row_group(table)
        with BucketWriter(stem.parent, schema, group) if in_buckets else FileWriter(stem, schema, group) as writer:
            for batch in batches_of(engine, query):
                engine.life.refuse_over()
                writer.write(batch)
                if progress is not None:
                    progress(min(0.95, writer.rows / max(1, table.rows)))


def batches_of(engine: Engine, query: str, inputs: dict[str, pa.Table] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a query of the driver's engine, some at a time."""
    local = engine.native.local
    local.configure(engine.native.settings)
    try:
        with local.cursor() as cursor:
            for name, table in (inputs or {}).items():
                cursor.register(name, table)
            yield from read_in_batches(cursor.sql(query), BATCH_ROWS)
    except duckdb.Error as trouble:
        raise final(trouble) from trouble


class BucketWriter:
    """Writes rows into files by the number of their bucket, in which order they come: it is the last column, and is not written."""

    def __init__(self, directory: Path, schema: pa.Schema, group: int) -> None:
        self._directory, self._schema, self._group = directory, schema, group
        self._bucket: int | None = None
        self._writer: FileWriter | None = None
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        *columns, numbers = batch.columns
        buckets = np.asarray(numbers.to_numpy(zero_copy_only=False))
        ends = [*(np.flatnonzero(np.diff(buckets)) + 1).tolist(), len(buckets)] if len(buckets) else []
        rows = pa.RecordBatch.from_arrays(columns, names=self._schema.names)
        for first, end in pairwise([0, *ends]):
            self._of(int(buckets[first])).write(rows.slice(first, end - first))
        self.rows += len(buckets)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None and self._writer is None:
            self._of(0)
        if self._writer is not None:
            self._writer.__exit__(kind, error, trace)

    def _of(self, bucket: int) -> FileWriter:
        if self._writer is None or bucket != self._bucket:
            if self._writer is not None:
                self._writer.__exit__(None, None, None)
            directory = self._directory / directory_of_bucket(bucket)
            directory.mkdir(parents=True)
            self._bucket, self._writer = bucket, FileWriter(directory / "part", self._schema, self._group)
        return self._writer


class FileWriter:
    """Writes rows into files of about the same size, whose names begin alike."""

    def __init__(self, stem: Path, schema: pa.Schema, group: int) -> None:
        self._stem = self._path = stem
        self._schema, self._group = schema, group
        self._open: pq.ParquetWriter | None = None
        self._pending: list[pa.RecordBatch] = []
        self._in_file = 0
        self.paths: list[str] = []
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._pending.append(batch)
        self.rows += batch.num_rows
        if sum(each.num_rows for each in self._pending) >= self._group:
            self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Write what is left; after an error the file is given up, whatever else it says."""
        if kind is None:
            if self._pending or not self.paths:
                self._flush()
            self._close()
        elif self._open is not None:
            with suppress(pa.ArrowException, OSError, ValueError):
                self._open.close()

    def _flush(self) -> None:
        if self._open is None:
            self._path = self._stem.with_name(f"{self._stem.name}-{len(self.paths):05d}.parquet")
            self._open = pq.ParquetWriter(self._path, self._schema, compression="snappy", store_decimal_as_integer=True)
            self.paths.append(str(self._path))
        rows = pa.Table.from_batches(self._pending).cast(self._schema) if self._pending else self._schema.empty_table()
        self._open.write_table(rows, row_group_size=self._group)
        self._in_file += rows.num_rows
        self._pending = []
        if self._in_file >= ROWS_IN_FILE:
            self._close()

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()
            flush(self._path)
            self._open, self._in_file = None, 0
