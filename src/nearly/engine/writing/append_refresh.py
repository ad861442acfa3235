"""Tables that grow: `append` adds rows to what the library wrote, `refresh` follows the user's own sources."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

import pyarrow as pa

from nearly.engine.spark.cluster import GetSpark
from nearly.engine.spark.reading import read_table, spark_path
from nearly.engine.storage.batches import Batch, LayoutChange
from nearly.engine.storage.catalog import Catalog, view_refusal
from nearly.engine.storage.layouts import BASE, Layout, Table
from nearly.engine.storage.manifest import FileEntry
from nearly.engine.storage.registration import blocks_of, describe_parquet, schema_difference
from nearly.engine.storage.versions import now
from nearly.engine.writing.parquet_writer import Progress, Workbench, refuse_unwritable, share
from nearly.engine.writing.preparation import SHUFFLED, arrangement_of, prepare, same, write_layout
from nearly.engine.writing.sources import ReadPlainly, by_spark_only, described, hold, materialise, read_origin
from nearly.engine.writing.staging import Arrangement, Staged, commit, place
from nearly.errors import Conflict, SchemaError, UnknownName, Unsupported
from nearly.plan import types
from nearly.plan.quoting import spark_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def append(catalog: Catalog, spark: SparkSession, name: str, rows: DataFrame, progress: Progress | None = None) -> Table:
    """Add rows to every layout of a table whose files the library wrote, as one commit.

    The rows are computed once, for the base layout; the other layouts take them from there, so all hold the same rows.
    """
    table = catalog.table(name)
    if table.view is not None:
        raise view_refusal(table)
    if table.origin.in_place:
        raise Unsupported(
            f"table {name!r} is your own files ({table.origin}), which nearly does not change; add a file there and call refresh"
        )
    ordered = _fitting(table, rows)
    for layout in table.layouts:
        layout.verify()
    with catalog.held([table]), catalog.temporary(name) as temporary:
        bench = Workbench(catalog, spark, temporary)
        base = write_layout(bench, table, ordered, 0, Arrangement(BASE), None)
        others = _rewrite(bench, table, _staged_rows(spark, base), base.layout.rows, table.layouts[1:], progress)
        changed = _add(catalog, table, "append", [base, *others])
    if progress is not None:
        progress(1.0)
    return changed


def _add(catalog: Catalog, table: Table, operation: str, staged: Sequence[Staged], in_place: LayoutChange | None = None) -> Table:
    """Commit rows that came, as new files of every layout."""
    changes = [LayoutChange(each.layout.name, each.layout.manifest.files, each.layout.blocks) for each in staged]
    if in_place is not None:
        changes = [in_place, *changes]
    came = sum(file.rows for file in changes[0].files)
    batch = Batch(table.version + 1, now(), operation, came, 0, 0, tuple(changes))
    with catalog.changing(table.name):
        place(staged)
        try:
            (changed,) = catalog.commit_batches([(table, batch)])
        except Conflict:
            for each in staged:
                rmtree(each.destination, ignore_errors=True)
            raise
    return changed


def refresh(
    catalog: Catalog, spark: GetSpark, name: str, progress: Progress | None = None, read: ReadPlainly = by_spark_only
) -> Table:
    """Bring a table up to date with its source: new, changed and removed files, or the source read again; one commit.

    Files used in place that have no other layout need no Spark.

    New files are added to the clustered layouts; shuffled ones, and all when an old file changed, are written again.
    """
    table = catalog.table(name)
    if table.origin.kind == "dataframe":
        raise Unsupported(f"table {name!r} was made from a DataFrame, which is gone; use append, or register it again")
    if table.origin.in_place:
        changed = _follow_files(catalog, spark, table, progress)
    else:
        rows = None if table.layouts[1:] else read(table.origin)
        changed = _copy_again(catalog, spark, table, progress) if rows is None else _held_again(catalog, table, rows)
    if progress is not None:
        progress(1.0)
    return changed


def _follow_files(catalog: Catalog, get_spark: GetSpark, table: Table, progress: Progress | None) -> Table:
    fresh = _described_again(table)
    if difference := schema_difference(table.columns, fresh.columns):
        raise SchemaError(f"the files of table {table.name!r} changed their schema: {difference}; register them again")
    own = [file for file in table.base.manifest.files if not Path(file.path).is_relative_to(catalog.directory(table.name))]
    kept = set(own) & set(fresh.base.manifest.files)
    added = [file for file in fresh.base.manifest.files if file not in kept]
    if len(kept) == len(own):
        return _take_added(catalog, get_spark, table, fresh, added, progress) if added else table
    if len(own) < len(table.base.manifest.files) or table.base.vectors:
        raise Unsupported(
            f"files of table {table.name!r} changed or vanished, and rows were changed through nearly since; which holds is "
            f"not known. Put the files back, or export the table and register it again"
        )
    if not table.layouts[1:]:
        return catalog.commit(table.name, lambda present: same(table, present) and fresh, "refresh")
    spark = get_spark()
    with catalog.temporary(table.name) as temporary:
        bench = Workbench(catalog, spark, temporary)
        staged = _rewrite(bench, fresh, read_table(spark, fresh), fresh.rows, table.layouts[1:], progress)
        changed = replace(fresh, layouts=(fresh.base, *(each.layout for each in staged)))
        return commit(catalog, table.name, staged, lambda present: same(table, present) and changed, "refresh")


def _take_added(
    catalog: Catalog, get_spark: GetSpark, table: Table, fresh: Table, added: Sequence[FileEntry], progress: Progress | None
) -> Table:
    """Files that appeared, as rows that came; what the others hold stays, rows that were deleted from them included."""
    base = LayoutChange(table.base.name, tuple(added), blocks_of(table.origin.locations, {file.path for file in added}))
    if not table.layouts[1:]:
        return _add(catalog, table, "refresh", [], base)
    spark, growing = get_spark(), [layout for layout in table.layouts[1:] if layout.name != SHUFFLED]
    with catalog.held([table]), catalog.temporary(table.name) as temporary:
        for layout in growing:
            layout.verify()
        rows = read_table(spark, fresh, [file.path for file in added])
        count = sum(file.rows for file in added)
        staged = _rewrite(Workbench(catalog, spark, temporary), fresh, rows, count, growing, progress)
        changed = _add(catalog, table, "refresh", staged, base)
    mixed = any(layout.name == SHUFFLED for layout in table.layouts)
    return prepare(catalog, spark, table.name, progress=progress) if mixed else changed


def _copy_again(catalog: Catalog, get_spark: GetSpark, table: Table, progress: Progress | None) -> Table:
    spark = get_spark()
    rows = read_origin(spark, table.origin)
    refuse_unwritable(rows, f"the source of table {table.name!r}")
    with catalog.temporary(table.name) as temporary:
        bench = Workbench(catalog, spark, temporary)
        base = materialise(bench, table.name, rows, table.origin, None)
        fresh = described(table.name, base, table.key, table.origin)
        copied = _staged_rows(spark, base)
        others = _rewrite(bench, fresh, copied, fresh.rows, table.layouts[1:], progress)
        changed = replace(fresh, layouts=(fresh.base, *(each.layout for each in others)))
        return commit(catalog, table.name, [base, *others], lambda present: same(table, present) and changed, "refresh")


def _held_again(catalog: Catalog, table: Table, rows: pa.Table) -> Table:
    with catalog.temporary(table.name) as temporary:
        base = hold(catalog, table.name, rows, temporary)
        fresh = described(table.name, base, table.key, table.origin)
        return commit(catalog, table.name, [base], lambda present: same(table, present) and fresh, "refresh")


def _rewrite(
    bench: Workbench, table: Table, rows: DataFrame, count: int, layouts: Sequence[Layout], progress: Progress | None
) -> list[Staged]:
    """Write rows in the arrangement of each layout."""
    staged = []
    for number, layout in enumerate(layouts):
        step = share(progress, number, len(layouts))
        staged.append(write_layout(bench, table, rows, count, arrangement_of(layout), step))
    return staged


def _staged_rows(spark: SparkSession, staged: Staged) -> DataFrame:
    """The rows that were just written: reading them back is the only way to have them once."""
    names = [spark_name(column.name) for column in staged.columns]
    return spark.read.parquet(spark_path(staged.source)).select(*names)


def _fitting(table: Table, rows: DataFrame) -> DataFrame:
    """The rows with their columns in the table's order; names and types must be the table's."""
    refuse_unwritable(rows, f"what is appended to table {table.name!r}")
    given = {name.lower(): types.from_name(kind) for name, kind in rows.dtypes}
    wanted = {column.name.lower(): column.type for column in table.columns}
    for name in wanted.keys() | given.keys():
        if given.get(name) != wanted.get(name):
            raise SchemaError(
                f"cannot append to table {table.name!r}: column {name!r} is {wanted.get(name, 'absent')} in the table "
                f"and {given.get(name, 'absent')} in the new rows; cast or select the new rows to fit"
            )
    return rows.selectExpr(*(spark_name(column.name) for column in table.columns))


def _described_again(table: Table) -> Table:
    """The table as its files are now; a declared clustering stays when it still holds."""
    clustering, hashed = table.base.clustering, table.base.manifest.hashed
    if clustering is not None:
        with suppress(SchemaError, UnknownName):
            return describe_parquet(table.name, table.origin.locations, table.key, clustering.columns, hashed=hashed)
    return describe_parquet(table.name, table.origin.locations, table.key, hashed=hashed)
