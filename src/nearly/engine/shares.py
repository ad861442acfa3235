"""Which part of a table each site reads: runs of blocks, or ranges of the column the table is clustered by.

Law: the shares of all sites together are the table, and no row is in two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from sqlglot import exp

from nearly.engine.blocks import Block, Part
from nearly.engine.layouts import Layout, Table
from nearly.engine.reading import NativeReader
from nearly.errors import EngineError
from nearly.plan.dialects import native
from nearly.plan.expressions import Literal
from nearly.plan.nodes import Scan

ROW_NUMBER = "file_row_number"


class Shares:
    """The shares of the spread tables of one stage; tables shared by ranges are cut at the same values."""

    def __init__(self, reader: NativeReader, tables: Sequence[tuple[Scan, Table]], sites: int) -> None:
        self._reader = reader
        self._sites = sites
        ranged = [table for scan, table in tables if scan.share == "range"]
        hashed = [table.layout(scan.layout).clustering for scan, table in tables if scan.share == "buckets"]
        counts = [clustering.buckets for clustering in hashed if clustering is not None and clustering.buckets is not None]
        self._coarsest = min(counts, default=1)
        self._cuts = range_cuts(max(ranged, key=lambda table: table.rows), sites) if ranged else []

    def view(self, scan: Scan, table: Table, site: int) -> str:
        """The query by which a site reads its share."""
        columns = [field.source for field in scan.fields]
        if scan.share == "range":
            return str(self._range(table, columns, site).sql(dialect="duckdb"))
        layout = table.layout(scan.layout)
        blocks = self._bucket_share(layout, site) if scan.share == "buckets" else block_share(layout.blocks, self._sites, site)
        return str(read_blocks(self._reader, table, layout, columns, blocks).sql(dialect="duckdb"))

    def _bucket_share(self, layout: Layout, site: int) -> list[Block]:
        """The blocks of a site's buckets; layouts of more buckets are folded to the fewest of the stage."""
        return [block for block in layout.blocks if (block.bucket or 0) % self._coarsest % self._sites == site]

    def _range(self, table: Table, columns: list[str], site: int) -> exp.Expr:
        if site > len(self._cuts):
            return read_nothing(self._reader, table, columns)
        return read_range(self._reader, table, columns, *range_of(self._cuts, site))


def range_of(cuts: Sequence[Any], place: int) -> tuple[Any, Any]:
    """The ends of the range at a place: [low, high), None where it is open."""
    low = cuts[place - 1] if 0 < place <= len(cuts) else None
    high = cuts[place] if place < len(cuts) else None
    return low, high


def read_range(reader: NativeReader, table: Table, columns: list[str], low: Any, high: Any) -> exp.Expr:
    """The query that reads the rows whose clustering column is in [low, high); only blocks at its ends are tested row by row."""
    name = ranged_column(table)
    blocks = [block for block in table.base.blocks if _may_hold(block, name, low, high)]
    inside = [block for block in blocks if _holds_only(block, name, low, high)]
    edges = [block for block in blocks if block not in inside]
    queries = [read_blocks(reader, table, table.base, columns, inside)] if inside else []
    for block in edges:
        edge = exp.Subquery(
            this=read_blocks(reader, table, table.base, _with(columns, name), [block]), alias=exp.TableAlias(this="edge")
        )
        query = exp.Select(
            expressions=[exp.column(each, quoted=True) for each in columns] or [exp.Star()], from_=exp.From(this=edge)
        )
        queries.append(query.where(_within(table, name, low, high), copy=False))
    if not queries:
        return read_nothing(reader, table, columns)
    return reduce(lambda left, right: exp.Union(this=left, expression=right, distinct=False), queries)


def _with(columns: list[str], name: str) -> list[str]:
    return columns if name in columns else [*columns, name]


def read_nothing(reader: NativeReader, table: Table, columns: list[str]) -> exp.Expr:
    """A query with the table's columns and no rows."""
    query = reader.query(table, table.base, columns, table.base.manifest.paths[:1])
    return query.where(exp.Boolean(this=False), copy=False)


def read_blocks(reader: NativeReader, table: Table, layout: Layout, columns: list[str], blocks: Sequence[Block]) -> exp.Expr:
    """The query that reads some blocks of a layout."""
    runs = file_runs(blocks)
    if not runs:
        return read_nothing(reader, table, columns)
    whole = [run.path for run in runs if run.whole]
    queries: list[exp.Expr] = [reader.query(table, layout, columns, whole)] if whole else []
    for run in (run for run in runs if not run.whole):
        part = reader.query(table, layout, columns, [run.path], row_numbers=True)
        queries.append(part.where(row_range(run), copy=False))
    return reduce(lambda left, right: exp.Union(this=left, expression=right, distinct=False), queries)


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


def ranged_column(table: Table) -> str:
    if table.base.clustering is None:
        raise EngineError(f"table {table.name!r} is not clustered, so it has no ranges to share")
    return table.base.clustering.columns[0]


def _may_hold(block: Block, name: str, low: Any, high: Any) -> bool:
    """Whether a block can hold a value in [low, high); nulls belong to the first range."""
    statistics = block.statistics_of(name)
    if statistics is None or statistics.low is None or statistics.high is None:
        return True
    if low is None and (statistics.nulls is None or statistics.nulls > 0):
        return True
    return (low is None or statistics.high >= low) and (high is None or statistics.low < high)


def _holds_only(block: Block, name: str, low: Any, high: Any) -> bool:
    """Whether every value of a block is in [low, high)."""
    statistics = block.statistics_of(name)
    if statistics is None or statistics.low is None or statistics.high is None or statistics.nulls != 0:
        return low is None and high is None
    return (low is None or statistics.low >= low) and (high is None or statistics.high < high)


def _within(table: Table, name: str, low: Any, high: Any) -> exp.Expr:
    type_ = table.column(name).type
    column = exp.column(name, quoted=True)
    tests: list[exp.Expr] = []
    if low is not None:
        tests.append(exp.GTE(this=column.copy(), expression=native.expression(Literal(type_, low))))
    if high is not None:
        tests.append(exp.LT(this=column.copy(), expression=native.expression(Literal(type_, high))))
    inside = exp.and_(*tests)
    return inside if low is not None else exp.or_(inside, exp.Is(this=column.copy(), expression=exp.Null()))


def file_runs(blocks: Sequence[Block]) -> list[Part]:
    """The blocks' parts, neighbours in a file joined."""
    runs: list[Part] = []
    for part in sorted((part for block in blocks for part in block.parts), key=lambda part: (part.path, part.first_row)):
        last = runs[-1] if runs else None
        if last is not None and last.path == part.path and last.first_row + last.rows == part.first_row:
            joined = last.row_groups + part.row_groups
            runs[-1] = Part(part.path, last.first_row_group, joined, last.first_row, last.rows + part.rows, part.file_rows)
        else:
            runs.append(part)
    return runs


def row_range(run: Part) -> exp.Expr:
    """The condition that a row of a file belongs to a run; the query must number its rows."""
    column = exp.column(ROW_NUMBER)
    return exp.and_(
        exp.GTE(this=column.copy(), expression=exp.Literal.number(run.first_row)),
        exp.LT(this=column.copy(), expression=exp.Literal.number(run.first_row + run.rows)),
    )
