"""Registering Parquet files as a table, from their footers alone and without Spark."""

from __future__ import annotations

import os
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from nearly.engine.storage.blocks import Block, BlockTarget, RowGroup, make_blocks
from nearly.engine.storage.catalog import Catalog, check_name
from nearly.engine.storage.clustering import Clustering, check_declared, detect
from nearly.engine.storage.footers import Footer, checksum_of, read_footers
from nearly.engine.storage.hive_partitions import partition_columns, partition_statistics, partition_values
from nearly.engine.storage.layouts import BASE, Layout, Origin, Table, arrange, resolve
from nearly.engine.storage.listing import FoundFile, find_files, local_path
from nearly.engine.storage.manifest import manifest_of, schema_checksum
from nearly.errors import SchemaError
from nearly.plan.schema import SchemaColumn

Source: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def register_parquet(
    catalog: Catalog,
    name: str,
    source: Source,
    key: Sequence[str] = (),
    clustered_by: Sequence[str] | None = None,
    target: BlockTarget | None = None,
    hashed: bool = False,
) -> Table:
    """Register local Parquet files, given by a path, a glob, a directory or several of them, in the catalog."""
    check_name(name)
    return catalog.save(describe_parquet(name, locations_of(source), key, clustered_by, target, hashed))


def locations_of(source: Source) -> tuple[str, ...]:
    """Absolute paths, so that the table does not depend on the working directory."""
    given = [source] if isinstance(source, str | os.PathLike) else list(source)
    texts = [os.fspath(each) for each in given]
    return tuple(local_path(text) or text for text in texts)


def describe_parquet(
    name: str,
    locations: Sequence[str],
    key: Sequence[str] = (),
    clustered_by: Sequence[str] | None = None,
    target: BlockTarget | None = None,
    hashed: bool = False,
) -> Table:
    """The table that the files are now, not committed anywhere; `hashed` by their contents, which reads them whole."""
    found = find_files(locations)
    footers = read_footers([file.path for file in found])
    files = ReadFiles(tuple(found), tuple(footers), partition_columns(found))
    columns = (*common_columns(footers), *files.partitions)
    _refuse_overlap(columns, files.partitions)
    layout = base_layout(files, columns, key, clustered_by, ", ".join(locations), target)
    if hashed:
        layout = replace(layout, manifest=manifest_of(footers, contents=True))
    origin = Origin("parquet", tuple(locations))
    return Table(name, columns, resolve(columns, key, "key"), (layout,), content_of(columns, layout), origin)


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """Files whose footers were read, and the columns that their directories tell."""

    found: tuple[FoundFile, ...]
    footers: tuple[Footer, ...]
    partitions: tuple[SchemaColumn, ...] = ()

    @property
    def row_groups(self) -> list[RowGroup]:
        return _row_groups(self.found, self.footers, self.partitions)


def base_layout(
    files: ReadFiles,
    columns: Sequence[SchemaColumn],
    key: Sequence[str],
    clustered_by: Sequence[str] | None,
    path: str,
    target: BlockTarget | None = None,
) -> Layout:
    """Files as the base layout of a table with these columns."""
    row_groups = files.row_groups
    clustering = _clustering(row_groups, columns, key, clustered_by)
    return Layout(BASE, path, manifest_of(files.footers), arrange(row_groups, clustering, target), clustering)


def blocks_of(locations: Sequence[str], paths: Container[str]) -> tuple[Block, ...]:
    """The blocks of some of the files of a table used in place."""
    everything = find_files(locations)
    found = [file for file in everything if file.path in paths]
    footers = read_footers([file.path for file in found])
    return make_blocks(_row_groups(found, footers, partition_columns(everything)))


def content_of(columns: Sequence[SchemaColumn], base: Layout) -> str:
    """A name for the content of a table: its schema and the files of its base layout."""
    return checksum_of(f"{schema_checksum(columns)} {base.manifest.digest}".encode())


def common_columns(footers: Sequence[Footer]) -> tuple[SchemaColumn, ...]:
    """The columns that all files have in common, which must be all of them, in one order."""
    first = footers[0]
    for other in footers[1:]:
        if difference := schema_difference(first.columns, other.columns):
            raise SchemaError(f"{first.path} and {other.path} differ in schema: {difference}; register them apart")
    nullable = [any(each) for each in zip(*([column.nullable for column in f.columns] for f in footers), strict=True)]
    return tuple(replace(column, nullable=each) for column, each in zip(first.columns, nullable, strict=True))


def schema_difference(left: Sequence[SchemaColumn], right: Sequence[SchemaColumn]) -> str | None:
    """The first difference in names, types or order."""
    for a, b in zip(left, right, strict=False):
        if (a.name, a.type) != (b.name, b.type):
            return f"{a.name} {a.type} against {b.name} {b.type}"
    if len(left) != len(right):
        longer = left if len(left) > len(right) else right
        return f"column {longer[min(len(left), len(right))].name} is in one of them only"
    return None


def _refuse_overlap(columns: Sequence[SchemaColumn], partitions: Sequence[SchemaColumn]) -> None:
    names = [column.name.lower() for column in columns]
    for column in partitions:
        if names.count(column.name.lower()) > 1:
            raise SchemaError(f"partition column {column.name!r} occurs twice, in the path or in the files; rename one")


def _row_groups(found: Sequence[FoundFile], footers: Sequence[Footer], partitions: Sequence[SchemaColumn]) -> list[RowGroup]:
    """All row groups, with the values and statistics of their partition columns."""
    if not partitions:
        return [row_group for footer in footers for row_group in footer.row_groups]
    complete = []
    for file, footer in zip(found, footers, strict=True):
        values = partition_values(file, partitions)
        for each in footer.row_groups:
            statistics = (*each.statistics, *partition_statistics(values, each))
            complete.append(replace(each, statistics=statistics, partition=values))
    return complete


def _clustering(
    row_groups: Sequence[RowGroup], columns: Sequence[SchemaColumn], key: Sequence[str], declared: Sequence[str] | None
) -> Clustering | None:
    if declared:
        return check_declared(row_groups, resolve(columns, declared, "clustered_by"))
    return detect(row_groups, columns, resolve(columns, key, "key"))
