"""`prepare`: another layout of a table, written by Spark and committed when it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nearly.engine.spark.reading import read_table
from nearly.engine.storage.blocks import MOST_BLOCKS, target_for
from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.clustering import HASH, Clustering
from nearly.engine.storage.layouts import Layout, Table, resolve
from nearly.engine.writing import parquet_writer
from nearly.engine.writing.parquet_writer import Destination, Progress, Workbench
from nearly.engine.writing.staging import Arrangement, Staged, commit, new_directory, stage
from nearly.errors import EngineError, SchemaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHUFFLED = "shuffled"
MOST_BUCKETS = 1 << 16

SAMPLED_BUCKETS, BUCKET_ROWS = 512, 2048
"""A table has at least so many buckets, if they have that many rows: progressive queries take some as a sample."""


def prepare(
    catalog: Catalog,
    spark: SparkSession,
    name: str,
    by: str | Sequence[str] | None = None,
    buckets: int | None = None,
    progress: Progress | None = None,
    seed: int = 0,
) -> Table:
    """Write the table's rows once more, shuffled or in hash buckets of the columns `by`, as another layout.

    A layout of the same arrangement is replaced. The number of buckets is a power of two unless given, so that prepared
    tables of different sizes line up.
    """
    table = catalog.table(name)
    arrangement = arrangement_for(table, by, buckets)
    with catalog.held([table]), catalog.temporary(name) as temporary:
        table.base.verify()
        rows = read_table(spark, table)
        bench = Workbench(catalog, spark, temporary)
        staged = write_layout(bench, table, rows, table.rows, arrangement, progress, seed=seed)
        changed = commit(catalog, name, [staged], lambda present: same(table, present).with_layout(staged.layout))
    if progress is not None:
        progress(1.0)
    return changed


def arrangement_for(table: Table, by: str | Sequence[str] | None, buckets: int | None) -> Arrangement:
    """The arrangement that the arguments of `prepare` ask for."""
    if by is None:
        if buckets is not None:
            raise SchemaError("buckets are for a layout clustered by columns: give by=..., or leave them out to shuffle")
        return Arrangement(SHUFFLED, shuffled=True)
    names = resolve(table.columns, [by] if isinstance(by, str) else by, "by")
    if not names:
        raise SchemaError("by=[] names no column; leave it out to shuffle")
    parquet_writer.refuse_unhashable([table.column(each) for each in names])
    count = usual_buckets(table) if buckets is None else buckets
    if not 1 <= count <= MOST_BUCKETS:
        raise SchemaError(f"buckets={count} is not between 1 and {MOST_BUCKETS}")
    return Arrangement("by_" + "_".join(names), Clustering(HASH, names, count))


def arrangement_of(layout: Layout) -> Arrangement:
    """The arrangement in which an existing layout was written."""
    hashed = layout.clustering if layout.clustering and layout.clustering.kind == HASH else None
    return Arrangement(layout.name, hashed, layout.name == SHUFFLED)


def usual_buckets(table: Table) -> int:
    """The power of two that makes buckets about as large as blocks are, but enough of them to be sampled."""
    wanted = max(
        table.rows // target_for(table.rows, table.base.manifest.bytes).rows, min(SAMPLED_BUCKETS, table.rows // BUCKET_ROWS)
    )
    return min(1 << max(0, wanted - 1).bit_length(), MOST_BLOCKS)


def same(known: Table, present: Table | None) -> Table:
    """The table as it is now, which must have the content that was read."""
    if present is None or present.content != known.content:
        raise EngineError(f"table {known.name!r} was changed by someone else meanwhile; nothing was changed, try again")
    return present


def write_layout(
    bench: Workbench,
    table: Table,
    rows: DataFrame,
    count: int,
    arrangement: Arrangement,
    progress: Progress | None,
    seed: int = 0,
) -> Staged:
    """Write `count` rows of the table in an arrangement, not yet committed."""
    spark = bench.spark
    destination = new_directory(bench.catalog, table.name, arrangement.name)
    size = table.base.manifest.bytes * count // max(table.rows, 1)
    to = Destination(bench.directory / destination.name, target_for(count, size).rows, size)
    if arrangement.hashed is not None:
        keys = [table.column(each) for each in arrangement.hashed.columns]
        parquet_writer.write_hashed(spark, rows, count, keys, arrangement.hashed.buckets or 1, to, progress)
    elif arrangement.shuffled:
        parquet_writer.write_shuffled(spark, rows, count, seed, to, progress)
    else:
        parquet_writer.write_plain(spark, rows, to, progress)
    return stage(to.directory, destination, arrangement)
