"""Layouts between writing and commit.

A layout is written below a temporary directory, described from its footers under the paths it will have, and moved
there in the same step that commits the table. A process that dies before that leaves only the temporary directory.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nearly.engine.storage.blocks import RowGroup
from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.clustering import Clustering, detect
from nearly.engine.storage.footers import Footer, read_footers
from nearly.engine.storage.layouts import Layout, Table, arrange
from nearly.engine.storage.listing import natural_order
from nearly.engine.storage.manifest import Manifest, manifest_of
from nearly.engine.storage.registration import common_columns
from nearly.plan.schema import SchemaColumn

_BUCKET = re.compile(r"/nearly_(?:bucket_*=|tickets_)([0-9]+)/")


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What a written layout is to be: as the rows come, shuffled, or in buckets of a hash or of tickets."""

    name: str
    hashed: Clustering | None = None
    shuffled: bool = False


@dataclass(frozen=True, slots=True)
class Staged:
    """A written layout: where its new files are, where they will be, and the layout and its columns as they will be."""

    source: Path
    destination: Path
    layout: Layout
    columns: tuple[SchemaColumn, ...]


def new_directory(catalog: Catalog, table: str, layout: str) -> Path:
    """A fresh place for files of a layout."""
    plain = re.sub(r"[^a-z0-9_]+", "", layout.lower())[:40]
    return catalog.directory(table) / f"{plain}-{uuid.uuid4().hex[:12]}"


def stage(source: Path, destination: Path, arrangement: Arrangement) -> Staged:
    """Describe the files in `source` under the paths that they will have."""
    written = read_footers(sorted((str(path) for path in source.rglob("*.parquet")), key=natural_order))
    files = manifest_of(written, contents=True).files
    manifest = Manifest(tuple(replace(file, path=_moved(file.path, source, destination)) for file in files))
    footers = [_moved_footer(footer, source, destination) for footer in written]
    columns = common_columns(footers) if footers else ()
    row_groups = [row_group for footer in footers for row_group in footer.row_groups]
    clustering = arrangement.hashed
    if clustering is not None:
        row_groups = _in_buckets(row_groups)
    elif not arrangement.shuffled:
        clustering = detect(row_groups, columns)
    layout = Layout(arrangement.name, str(destination), manifest, arrange(row_groups, clustering), clustering, arrangement.shuffled)
    return Staged(source, destination, layout, columns)


def commit(
    catalog: Catalog, name: str, staged: Sequence[Staged], change: Callable[[Table | None], Table], operation: str = "register"
) -> Table:
    """Move all staged files to their places and commit the table that refers to them, one step to other processes."""

    def moved(present: Table | None) -> Table:
        table = change(present)
        place(staged)
        return table

    return catalog.commit(name, moved, operation)


def place(staged: Sequence[Staged]) -> None:
    """Move staged files to their places."""
    for each in staged:
        each.source.rename(each.destination)


def _moved(path: str, source: Path, destination: Path) -> str:
    return str(destination / Path(path).relative_to(source))


def _moved_footer(footer: Footer, source: Path, destination: Path) -> Footer:
    path = _moved(footer.path, source, destination)
    return replace(footer, path=path, row_groups=tuple(replace(each, path=path) for each in footer.row_groups))


def _in_buckets(row_groups: Sequence[RowGroup]) -> list[RowGroup]:
    """The row groups by bucket, which the directory of a file names."""
    found = [(_BUCKET.search(each.path), each) for each in row_groups]
    marked = [replace(each, bucket=int(bucket[1]) if bucket else None) for bucket, each in found]
    return sorted(marked, key=lambda each: each.bucket if each.bucket is not None else -1)
