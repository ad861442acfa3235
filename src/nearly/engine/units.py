"""Sampling units: the pieces in which streamed tables are read, in a random order that a seed fixes.

Unit i of a query is the i-th piece of each streamed table: a run of neighbouring blocks, or, where rows must meet by what the tables
are clustered by, a range of that column. Law: the pieces of all units together are the table, and no row is in two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sqlglot import exp

from nearly.engine.blocks import Block
from nearly.engine.layouts import Table
from nearly.engine.reading import NativeReader
from nearly.engine.shares import block_share, range_cuts, range_of, ranged_column, read_blocks, read_nothing, read_range
from nearly.plan.nodes import Scan
from nearly.rewrite.stream import UNIT, Cut

USUAL_UNITS = 192
"""Enough for narrow intervals; each unit costs some milliseconds of planning."""

GROUPS = 32
"""Units are put into so many groups for replicates: a replicate leaves one group out."""


@dataclass(frozen=True)
class Units:
    """The units of one query. `order` lists them as they are read; `rows` counts the rows of the largest streamed table in each."""

    scans: tuple[Scan, ...]
    tables: tuple[Table, ...]
    ranged: bool
    count: int
    rows: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def main(self) -> Table:
        return largest(self.tables)

    @cached_property
    def total_rows(self) -> int:
        return sum(self.rows)

    def group(self, position: int) -> int:
        """The replicate group of the unit that is read at this position; neighbours in the order are in different groups."""
        return position % GROUPS

    def queries(self, reader: NativeReader, scan: Scan) -> list[str]:
        """For each unit the query that reads its piece of a table, the unit's group to be filled in as `{group}`."""
        table = self.tables[self.scans.index(scan)]
        columns = [field.source for field in scan.fields if field.source != UNIT]
        cuts = self._cuts(table) if self._by_range(table) else None
        return [self._with_group(self._piece(reader, table, columns, cuts, unit)) for unit in range(self.count)]

    def blocks(self, table: Table, unit: int) -> list[Block]:
        """The blocks that hold rows of a unit, for their statistics; at the ends of a range they may hold others too."""
        return block_share(table.base.blocks, self.count, unit)

    def _by_range(self, table: Table) -> bool:
        clustering = table.base.clustering
        return self.ranged and clustering is not None and clustering.kind == "range"

    def _cuts(self, table: Table) -> list[Any]:
        """Tables that are clustered alike are cut at the same values: those of the largest."""
        alike = [each for each in self.tables if self._by_range(each) and _type(each) == _type(table)]
        return range_cuts(largest(alike), self.count)

    def _piece(self, reader: NativeReader, table: Table, columns: list[str], cuts: list[Any] | None, unit: int) -> exp.Expr:
        if cuts is None:
            return read_blocks(reader, table, table.base, columns, block_share(table.base.blocks, self.count, unit))
        if unit > len(cuts):
            return read_nothing(reader, table, columns)
        return read_range(reader, table, columns, *range_of(cuts, unit))

    def _with_group(self, query: exp.Expr) -> str:
        return f'SELECT *, {{group}}::INTEGER AS "{UNIT}" FROM ({query.sql(dialect="duckdb").replace("{", "{{").replace("}", "}}")})'


def units_of(cut: Cut, tables: Sequence[Table], seed: int, most: int = USUAL_UNITS) -> Units:
    """The units of a cut; `tables` are those of its scans, in order."""
    main = largest(tables)
    count = max(1, min(most, len(main.base.blocks)))
    rows = tuple(sum(block.rows for block in block_share(main.base.blocks, count, unit)) for unit in range(count))
    filled = [unit for unit in range(count) if rows[unit]]
    order = np.random.default_rng(seed).permutation(len(filled))
    empty = [unit for unit in range(count) if not rows[unit]]
    return Units(cut.scans, tuple(tables), cut.ranged, count, rows, (*(filled[place] for place in order), *empty))


def largest(tables: Sequence[Table]) -> Table:
    return max(tables, key=lambda table: (table.rows, table.name))


def _type(table: Table) -> str:
    return str(table.column(ranged_column(table)).type)
