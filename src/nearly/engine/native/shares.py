"""Which part of a table each site reads: runs of blocks, or ranges of the column the table is clustered by.

Law: the shares of all sites together are the table, and no row is in two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nearly.engine.native.pieces import Pieces, ranged_column
from nearly.engine.native.reading import NativeReader
from nearly.engine.storage.blocks import Block
from nearly.engine.storage.layouts import Layout, Table
from nearly.plan.nodes import Scan
from nearly.plan.types import DataType


class Shares:
    """The shares of the spread tables of one stage; tables shared by ranges of one type are cut at the same values."""

    def __init__(self, reader: NativeReader, tables: Sequence[tuple[Scan, Table]], sites: int) -> None:
        self._reader = reader
        self._sites = sites
        ranged = [table for scan, table in tables if scan.share == "range"]
        hashed = [table.layout(scan.layout).clustering for scan, table in tables if scan.share == "buckets"]
        counts = [clustering.buckets for clustering in hashed if clustering is not None and clustering.buckets is not None]
        self._coarsest = min(counts, default=1)
        by_size = sorted(ranged, key=lambda table: table.rows)
        self._cuts = {_key_type(table): range_cuts(table, sites) for table in by_size}

    def view(self, scan: Scan, table: Table, site: int) -> str:
        """The query by which a site reads its share."""
        layout = table.base if scan.share == "range" else table.layout(scan.layout)
        pieces = Pieces(self._reader, table, layout, [field.source for field in scan.fields])
        if scan.share == "range":
            cuts = self._cuts[_key_type(table)]
            return pieces.of_range(*range_of(cuts, site)) if site <= len(cuts) else pieces.nothing()
        blocks = self._bucket_share(layout, site) if scan.share == "buckets" else block_share(layout.blocks, self._sites, site)
        return pieces.of_blocks(blocks)

    def _bucket_share(self, layout: Layout, site: int) -> list[Block]:
        """The blocks of a site's buckets; layouts of more buckets are folded to the fewest of the stage."""
        return [block for block in layout.blocks if (block.bucket or 0) % self._coarsest % self._sites == site]


def _key_type(table: Table) -> DataType:
    """Keys of different types are never equal, so their ranges need not line up."""
    return table.column(ranged_column(table)).type


def range_of(cuts: Sequence[Any], place: int) -> tuple[Any, Any]:
    """The ends of the range at a place: [low, high), None where it is open."""
    low = cuts[place - 1] if 0 < place <= len(cuts) else None
    high = cuts[place] if place < len(cuts) else None
    return low, high


def block_share(blocks: Sequence[Block], sites: int, site: int) -> list[Block]:
    """The run of neighbouring blocks that one site reads, about equal in rows for all sites."""
    total = sum(block.rows for block in blocks) or 1
    share, seen = [], 0
    for block in blocks:
        if min(sites - 1, (seen + block.rows // 2) * sites // total) == site:
            share.append(block)
        seen += block.rows
    return share


def range_cuts(table: Table, sites: int) -> list[Any]:
    """Values that cut the clustering column's range into parts of about equal row counts."""
    name = ranged_column(table)
    cuts: list[Any] = []
    seen, total = 0, table.rows
    for block in table.base.blocks:
        statistics = block.statistics_of(name)
        due = len(cuts) + 1 < sites and seen * sites >= total * (len(cuts) + 1)
        if due and statistics is not None and statistics.low is not None and (not cuts or statistics.low > cuts[-1]):
            cuts.append(statistics.low)
        seen += block.rows
    return cuts
