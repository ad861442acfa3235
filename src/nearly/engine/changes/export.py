"""A version of a table, written out for others to read.

Law: the destination appears all at once, complete, or not at all; nothing that is there is written over.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from nearly.engine.changes.given_rows import arrow_schema
from nearly.engine.changes.row_files import batches_of, write_files
from nearly.engine.changes.shown import shown_sql, shown_table
from nearly.engine.engine import Engine
from nearly.engine.storage.durable import writing_in
from nearly.engine.storage.lake_logs.delta import load_deltalake
from nearly.engine.storage.layouts import Table
from nearly.engine.writing.parquet_writer import Progress
from nearly.errors import EngineError, SchemaError

PARQUET, DELTA = "parquet", "delta"


def export(
    engine: Engine, table: Table, path: str | os.PathLike[str], form: str = PARQUET, progress: Progress | None = None
) -> Path:
    """Write the rows of a table in one of its versions to a new directory, as Parquet files or as a Delta table."""
    if form not in (PARQUET, DELTA):
        raise SchemaError(f"format={form!r} must be {PARQUET!r} or {DELTA!r}")
    destination = Path(path).expanduser().absolute()
    if destination.exists() or destination.is_symlink():
        raise EngineError(f"{destination} exists; export writes to a new directory, so name another or remove it")
    draft = destination.parent / f".{destination.name}.{uuid.uuid4().hex[:12]}"
    write = _write_delta if form == DELTA else write_files
    query = shown_sql(engine, table)
    with engine.reading([table]), writing_in(destination.parent):
        destination.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(engine, shown_table(table), query, draft / "part", progress)
            draft.rename(destination)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    if progress is not None:
        progress(1.0)
    return destination


def _write_delta(engine: Engine, table: Table, query: str, stem: Path, progress: Progress | None) -> None:
    schema = arrow_schema(table.columns)

    def rows() -> Iterator[pa.RecordBatch]:
        done = 0
        for batch in batches_of(engine, query):
            done += batch.num_rows
            if progress is not None:
                progress(min(0.95, done / max(1, table.rows)))
            yield from pa.Table.from_batches([batch]).cast(schema).to_batches()

    load_deltalake().write_deltalake(str(stem.parent), pa.RecordBatchReader.from_batches(schema, rows()))
