"""What Spark does for catalogs and synopses, done by Arrow in this process: hundreds of processes can do it and be killed.

Only what Spark writes or reads is replaced; staging, commits, logs and snapshots are the library's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearly.engine.spark.cluster import Cluster
from nearly.engine.writing import append_refresh as growth
from nearly.engine.writing import parquet_writer, preparation
from nearly.engine.writing.parquet_writer import Destination
from nearly.errors import EngineError

ROW_GROUP = 2_000


class Tasks:
    """`spark.range(...).mapInArrow(task, schema).toArrow()`: each task is run here, one after the other."""

    def range(self, start: int, end: int, step: int, _: int) -> Tasks:
        self._numbers = range(start, end, step)
        return self

    def mapInArrow(self, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], _: str) -> Tasks:  # noqa: N802
        self._task = task
        return self

    def toArrow(self) -> pa.Table:  # noqa: N802
        from pyspark import cloudpickle

        pickled = cloudpickle.dumps(self._task)
        found: list[pa.RecordBatch] = []
        for number in self._numbers:
            found += cloudpickle.loads(pickled)(iter([pa.RecordBatch.from_pydict({"id": [number]})]))
        return pa.Table.from_batches(found)


def replace_spark() -> None:
    """From now on, in this process."""
    Cluster.spark = property(lambda _: Tasks())  # type: ignore[assignment, method-assign]
    Cluster.given = property(lambda _: Tasks())  # type: ignore[assignment, method-assign]
    module: Any
    for module in (preparation, growth):
        assert hasattr(module, "read_table")
        module.read_table = _read
    parquet_writer.write_plain = _write_plain  # type: ignore[assignment]
    parquet_writer.write_hashed = _write_hashed  # type: ignore[assignment]
    parquet_writer.write_shuffled = _write_shuffled  # type: ignore[assignment]
    growth._staged_rows = lambda _, staged: _table(str(each) for each in sorted(staged.source.rglob("*.parquet")))  # type: ignore[assignment]
    growth._fitting = lambda _, rows: rows  # type: ignore[assignment]


def _read(_: Any, table: Any, paths: Any = None) -> pa.Table:
    return _table(table.base.manifest.paths if paths is None else paths)


def _table(paths: Any) -> pa.Table:
    return pa.concat_tables([pq.ParquetFile(path).read() for path in paths])


def _write_plain(_: Any, rows: pa.Table, to: Destination, __: Any) -> None:
    _write(rows, to.directory / "part-0.parquet")


def _write_shuffled(_: Any, rows: pa.Table, __: int, seed: int, to: Destination, ___: Any) -> None:
    order = pa.array([hash((seed, row)) % 1_000_003 for row in range(rows.num_rows)])
    _write(rows.take(pc.sort_indices(order)), to.directory / "part-0.parquet")


def _write_hashed(_: Any, rows: pa.Table, __: int, columns: Any, buckets: int, to: Destination, ___: Any) -> None:
    keys = rows.column(columns[0].name)
    for bucket in range(buckets):
        mine = rows.filter(pc.equal(pc.subtract(keys, pc.multiply(pc.divide(keys, buckets), buckets)), bucket))
        if mine.num_rows:
            _write(mine, to.directory / f"nearly_bucket={bucket}" / "part-0.parquet")


def _write(rows: pa.Table, path: Path) -> None:
    """As Spark would: a disk that is full is an error of its job, which the library names."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            pq.write_table(rows, file, row_group_size=ROW_GROUP)
    except OSError as error:
        raise EngineError(f"the job cannot write {path}") from error
