"""What one commit changed in a table: rows that came, as files of their own, and rows that went, as their places in files.

Law: a table at version v is its last whole description before v and the batches since then, one after the other; so every version
can be read as long as its files are kept, and what happened between two versions is what their batches say.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from nearly.engine.storage.blocks import Block, FilePart
from nearly.engine.storage.clustering import RANGE
from nearly.engine.storage.footers import checksum_of
from nearly.engine.storage.layouts import Layout, Table
from nearly.engine.storage.manifest import FileEntry, Manifest

Gone = tuple[int, int, int]
"""Rows deleted from one place: the number of a file in its layout's manifest, a row group of it, and how many."""


@dataclass(frozen=True, slots=True)
class LayoutChange:
    """What a commit did to one layout: files that came with their blocks, and the vector of rows that went."""

    layout: str
    files: tuple[FileEntry, ...] = ()
    blocks: tuple[Block, ...] = ()
    vector: FileEntry | None = None
    gone: tuple[Gone, ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """One commit. Of the rows that came and of those that went, the first `updated` are what rows became and what they were.

    Which rows went, the base layout's vector tells; where that is not enough for those who follow the changes, `went` is a file of
    them. A batch of a stream has its number there, one that was taken from a source with versions (`Origin`) the version it leads
    to.
    """

    version: int
    time: dt.datetime
    operation: str
    came: int
    gone: int
    updated: int
    layouts: tuple[LayoutChange, ...]
    went: FileEntry | None = None
    stream: tuple[str, int] | None = None
    source: str | None = None

    @property
    def inserted(self) -> int:
        """Rows that are new, not updated."""
        return self.came - self.updated

    @property
    def deleted(self) -> int:
        """Rows that are gone, not updated."""
        return self.gone - self.updated

    @property
    def base(self) -> LayoutChange:
        """What happened to the layout as registered."""
        return self.layouts[0]

    @property
    def digest(self) -> str:
        """A name for exactly this change."""
        files = [file for each in self.layouts for file in (*each.files, each.vector) if file is not None]
        text = "\n".join(f"{file.path}|{file.footer_checksum}" for file in files)
        return checksum_of(f"{self.version} {self.operation} {text}".encode())


def after(table: Table, batches: Iterable[Batch]) -> Table:
    """The table after some commits, in order."""
    for batch in batches:
        table = _after(table, batch)
    return table


def _after(table: Table, batch: Batch) -> Table:
    changes = {change.layout: change for change in batch.layouts}
    kept, behind = [], list(table.behind)
    for layout in table.layouts:
        change = changes.get(layout.name, LayoutChange(layout.name))
        complete = sum(file.rows for file in change.files) == batch.came and (change.vector is not None or not batch.gone)
        if complete:
            kept.append(changed(layout, change))
        else:
            behind.append(layout)
    content = checksum_of(f"{table.content} {batch.digest}".encode())
    columns = table.columns
    if batch.came:
        columns = tuple(replace(each, nullable=each.nullable or _has_nulls(batch.base.blocks, each.name)) for each in columns)
    origin = table.origin if batch.source is None else replace(table.origin, version=batch.source)
    return replace(
        table, columns=columns, layouts=tuple(kept), behind=tuple(behind), content=content, version=batch.version, origin=origin
    )


def changed(layout: Layout, change: LayoutChange) -> Layout:
    """A layout after a commit: a shuffled one with new rows is no longer mixed, a range goes on only at its end."""
    blocks = _without(layout, change.gone)
    came = tuple(replace(block, id=len(blocks) + place) for place, block in enumerate(change.blocks))
    clustering = layout.clustering
    if came and clustering is not None and clustering.kind == RANGE and not _goes_on(blocks, came, clustering.columns[0]):
        clustering = None
    return replace(
        layout,
        manifest=Manifest((*layout.manifest.files, *change.files)),
        blocks=(*blocks, *came),
        clustering=clustering,
        shuffled=layout.shuffled and not came,
        vectors=(*layout.vectors, change.vector) if change.vector is not None else layout.vectors,
    )


def _without(layout: Layout, gone: Sequence[Gone]) -> tuple[Block, ...]:
    """The blocks with fewer rows."""
    if not gone:
        return layout.blocks
    paths = layout.manifest.paths
    lost = {(paths[file], row_group): rows for file, row_group, rows in gone}
    found = []
    for block in layout.blocks:
        rows = sum(lost.get(place, 0) for part in block.parts for place in _row_groups(part))
        found.append(block.without(rows) if rows else block)
    return tuple(found)


def _row_groups(part: FilePart) -> list[tuple[str, int]]:
    return [(part.path, part.first_row_group + place) for place in range(part.row_groups)]


def _goes_on(before: Sequence[Block], came: Sequence[Block], column: str) -> bool:
    """Whether new blocks lie behind the old ones, in order, so that the ranges of all of them still are ranges."""
    ends = [block.statistics_of(column) for block in (*before[-1:], *came)]
    known = [each for each in ends if each is not None and each.bounded and (each.nulls == 0)]
    return len(known) == len(ends) and all(left.high <= right.low for left, right in pairwise(known))


def _has_nulls(blocks: Iterable[Block], column: str) -> bool:
    found = (block.statistics_of(column) for block in blocks)
    return any(each is None or each.nulls != 0 for each in found)
