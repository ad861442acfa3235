"""Passes over a table: Spark tasks stream their share of the rows through a function of the caller and send back what it found.

While an embedded Spark is not there yet, the driver makes the pass, in one task.

Rows come with the number of their file and their place in it, which do not depend on how many tasks there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from nearly.engine import spark_names
from nearly.engine.engine import Engine
from nearly.engine.native.engine import Settings, native
from nearly.engine.native.failures import read_in_batches
from nearly.engine.native.pieces import file_runs, row_range
from nearly.engine.native.reading import gone_rows
from nearly.engine.native.shares import block_share
from nearly.engine.storage.blocks import Block
from nearly.engine.storage.layouts import Table
from nearly.errors import EngineError, NearlyError, SchemaError, Unsupported

BATCH_ROWS = 131_072
TASKS_PER_CORE = 1
MOST_ROWS_PER_TASK = 64_000_000
_SCHEMA = "trouble string, payload binary"
_TROUBLES: dict[str, type[NearlyError]] = {each.__name__: each for each in (SchemaError, Unsupported, EngineError)}


class RowTask(Protocol):
    """What runs over the rows of one task; picklable before its first row, and made anew for each task."""

    def take(self, file: int, first_row: int, batch: pa.RecordBatch) -> None:
        """Look at rows that stand next to each other in a file."""
        ...

    def finish(self) -> bytes:
        """What the driver is told."""
        ...


@dataclass(frozen=True, slots=True)
class _Run:
    file: int
    first_row: int
    sql: str


class _Scan:
    """The function of a Spark task."""

    def __init__(self, task: RowTask, shares: Sequence[Sequence[_Run]], settings: Settings) -> None:
        self._task = task
        self._shares = shares
        self._settings = settings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for numbers in batches:
                for number in numbers.column(0).to_pylist():
                    for run in self._shares[number]:
                        self._stream(run)
            yield _row(None, self._task.finish())
        except NearlyError as trouble:
            yield _row(type(trouble).__name__, str(trouble).encode())

    def _stream(self, run: _Run) -> None:
        engine = native()
        engine.configure(self._settings)
        with engine.cursor() as cursor:
            row = run.first_row
            for batch in read_in_batches(cursor.sql(run.sql), BATCH_ROWS):
                self._task.take(run.file, row, batch)
                row += batch.num_rows


def _row(trouble: str | None, payload: bytes) -> pa.RecordBatch:
    """An error that the task raises on purpose travels as data, so that Spark does not retry it."""
    return pa.RecordBatch.from_arrays(
        [pa.array([trouble], pa.string()), pa.array([payload], pa.binary())], names=["trouble", "payload"]
    )


def scan_rows(
    engine: Engine, table: Table, columns: Sequence[str], task: RowTask, blocks: Sequence[Block] | None = None
) -> list[bytes]:
    """Every task's finding, after all rows of the table, or of some of its blocks, were seen once."""
    with engine.reading([table]):
        return _findings(engine, table, columns, task, table.base.blocks if blocks is None else blocks)


def _findings(engine: Engine, table: Table, columns: Sequence[str], task: RowTask, blocks: Sequence[Block]) -> list[bytes]:
    sites = engine.cluster.sites
    count = max(sites.executors * sites.cores * TASKS_PER_CORE, -(-table.rows // MOST_ROWS_PER_TASK))
    here = not engine.cluster.is_up and sites.executors == 1
    count = 1 if here else max(1, min(count, len(blocks)))
    shares = [_runs(engine, table, columns, block_share(blocks, count, number)) for number in range(count)]
    scan = _Scan(task, shares, Settings(1, engine.native.memory_mb, engine.cluster.time_zone))
    try:
        if here:
            rows = pa.Table.from_batches(scan(iter([pa.RecordBatch.from_pydict({"id": [0]})])))
        else:
            rows = engine.cluster.spark.range(0, count, 1, count).mapInArrow(scan, _SCHEMA).toArrow()
    except spark_names.PySparkException as trouble:
        raise EngineError(f"a pass over table {table.name!r} failed: {trouble}") from trouble
    for row in rows.to_pylist():
        if row["trouble"] is not None:
            raise _TROUBLES.get(row["trouble"], EngineError)(row["payload"].decode())
    return [payload.as_py() for payload in rows["payload"]]


def _runs(engine: Engine, table: Table, columns: Sequence[str], blocks: Sequence[Block]) -> list[_Run]:
    numbers = {path: place for place, path in enumerate(table.base.manifest.paths)}
    found = []
    for run in file_runs(blocks):
        gone = gone_rows(table.base, [run.path]) if table.base.vectors else None
        query = engine.native.reader.query(table, table.base, columns, [run.path], not run.whole, gone)
        if not run.whole:
            query = query.where(row_range(run), copy=False)
        found.append(_Run(numbers[run.path], run.first_row, query.sql(dialect="duckdb")))
    return found
