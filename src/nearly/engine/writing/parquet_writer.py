"""Writing rows as Parquet through Spark, classic or Connect, without touching the session's configuration."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from nearly.engine import spark_names
from nearly.engine.storage.catalog import Catalog
from nearly.errors import EngineError, SchemaError, Unsupported
from nearly.plan import types
from nearly.plan.quoting import spark_name
from nearly.plan.schema import SchemaColumn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Progress: TypeAlias = Callable[[float], None]

POLL_SECONDS = 0.25
ROWS_PER_TASK = 500_000
UNCOUNTED_ROW_GROUP = 32_768
"""Rows in a row group when the number of rows is not known beforehand: enough row groups for small tables too."""


@dataclass(frozen=True, slots=True)
class Workbench:
    """What writing a table needs: its catalog, a session, and a temporary directory of the catalog."""

    catalog: Catalog
    spark: SparkSession
    directory: Path


@dataclass(frozen=True, slots=True)
class Destination:
    """Where rows go and how: the directory, rows in a row group, and the bytes expected, which scale the progress."""

    directory: Path
    row_group: int = UNCOUNTED_ROW_GROUP
    expected_bytes: int = 0


def refuse_unwritable(rows: DataFrame, what: str) -> None:
    """A table needs columns of different names and rows that end."""
    if rows.isStreaming:
        raise Unsupported(f"{what} is a stream; register what it has written, or use a standing query")
    if not rows.columns:
        raise SchemaError(f"{what} has no columns")
    refuse_equal_names(rows.columns, what)


def refuse_equal_names(names: Sequence[str], what: str) -> None:
    """Columns of a table are told apart by their names, whatever the case."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise SchemaError(f"{what} has two columns named {name!r} (case does not count); rename one of them")
        seen.add(name.lower())


def share(progress: Progress | None, number: int, count: int) -> Progress | None:
    """The progress of step `number` of `count` equal ones, as progress of the whole."""
    return None if progress is None else lambda done: progress((number + done) / count)


def write_plain(spark: SparkSession, rows: DataFrame, to: Destination, progress: Progress | None) -> None:
    """Write the rows in the order they come."""
    _write(spark, rows, to, None, progress)


def write_shuffled(spark: SparkSession, rows: DataFrame, count: int, seed: int, to: Destination, progress: Progress | None) -> None:
    """Write the rows in random order: a random number for each row picks its file and its place in it."""
    order = _free_name(rows, "nearly_order")
    drawn = rows.selectExpr("*", f"rand({seed}) AS {order}")
    mixed = drawn.repartition(_tasks(count), order).sortWithinPartitions(order).drop(order)
    _write(spark, mixed, to, None, progress)


def write_hashed(
    spark: SparkSession,
    rows: DataFrame,
    count: int,
    columns: Sequence[SchemaColumn],
    buckets: int,
    to: Destination,
    progress: Progress | None,
) -> None:
    """Write one directory, mostly of one file, for each hash bucket, sorted by the columns; the name tells it."""
    bucket = _free_name(rows, "nearly_bucket")
    keys = [spark_name(column.name) for column in columns]
    marked = rows.selectExpr("*", f"{bucket_expression(columns, buckets)} AS {bucket}")
    together = marked.repartition(min(buckets, _tasks(count)), bucket).sortWithinPartitions(bucket, *keys)
    _write(spark, together, to, bucket, progress)


def bucket_expression(columns: Sequence[SchemaColumn], buckets: int) -> str:
    """The bucket of a row, in Spark SQL; integers of all widths hash as bigint so equal keys of two tables meet."""
    keys = []
    for column in columns:
        name = spark_name(column.name)
        keys.append(f"CAST({name} AS BIGINT)" if column.type in types.INTEGERS else name)
    return f"pmod(hash({', '.join(keys)}), {buckets})"


def refuse_unhashable(columns: Sequence[SchemaColumn]) -> None:
    """Equal keys must have equal hashes, which floats and nested types do not promise."""
    for column in columns:
        if column.type in (*types.FRACTIONS, types.NULL) or not types.is_simple(column.type):
            raise Unsupported(f"column {column.name!r} is {column.type}, which cannot cluster a layout; use integers or strings")


def _tasks(count: int) -> int:
    return max(2, -(-count // ROWS_PER_TASK))


def _free_name(rows: DataFrame, wish: str) -> str:
    taken = {name.lower() for name in rows.columns}
    while wish in taken:
        wish += "_"
    return wish


def _write(spark: SparkSession, rows: DataFrame, to: Destination, directories: str | None, progress: Progress | None) -> None:
    writer = rows.write.option("parquet.block.row.count.limit", str(to.row_group)).option("compression", "snappy")
    if directories is not None:
        writer = writer.partitionBy(directories)
    _run(spark, lambda: writer.parquet("file://" + str(to.directory)), to, progress)
    if not to.directory.is_dir():
        raise EngineError(
            f"Spark wrote to {to.directory}, but nothing is there: Spark runs on machines that do not share this "
            f"directory; put the catalog on a shared file system"
        )


def _run(spark: SparkSession, work: Callable[[], None], to: Destination, progress: Progress | None) -> None:
    """Do the work in another thread and report meanwhile; an interrupt or an error of the reporter cancels the job."""
    tag = f"nearly-{uuid.uuid4().hex[:12]}"

    def tagged() -> None:
        spark.addTag(tag)
        try:
            work()
        finally:
            spark.removeTag(tag)

    with ThreadPoolExecutor(max_workers=1) as pool:
        running = pool.submit(tagged)
        try:
            while not wait([running], timeout=POLL_SECONDS).done:
                if progress is not None and to.expected_bytes:
                    progress(min(0.95, _written_bytes(to.directory) / to.expected_bytes))
        except BaseException:
            spark.interruptTag(tag)
            raise
        try:
            running.result()
        except spark_names.PySparkException as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise EngineError(f"Spark could not write {to.directory}: {reason}; the table is as it was") from error


def _written_bytes(directory: Path) -> int:
    """The size of what is there now; Spark moves files and directories meanwhile, so that some may be gone already."""
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            if name.endswith(".parquet"):
                with suppress(FileNotFoundError):
                    total += Path(parent, name).stat().st_size
    return total
