"""Sampling units: the pieces in which streamed tables are read, in a random order that a seed fixes.

A unit is a piece of each streamed table: some runs of neighbouring blocks, or, where rows must meet by what the tables are
clustered by, some ranges of that column or some buckets of its hash. The last units are as large as is good for reading; the first
ones are single blocks or buckets cut out of larger units at random places, so that the first answer needs little and still sees
many places. Between them sizes rise in steps: where rows of a unit are alike, a unit that is as large as all those before it would
decide the answer by itself, and make it worse than the one before.

Law: the pieces of all units together are the table, and no row is in two of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, log
from typing import Any

import numpy as np

from nearly.engine.native.pieces import Pieces, ranged_column
from nearly.engine.native.reading import NativeReader
from nearly.engine.storage.blocks import Block
from nearly.engine.storage.clustering import HASH
from nearly.engine.storage.layouts import Layout, Table
from nearly.plan.nodes import Scan
from nearly.rewrite.stream.cut import UNIT, Cut

LARGE_UNITS = 32
"""At most about so many units are read as a whole: each costs some planning, and shares row groups at its ends with others."""

SMALL_UNITS = 16
"""So many units are single blocks, read first; and so many have each size between them and the large ones."""

LARGEST_STEP = 3
"""By about this factor, at most, units of one size are larger than those of the size before."""

GROUPS = 32
"""Units are put into so many groups for replicates: a replicate leaves one group out."""

Span = tuple[int, int]
"""Neighbouring cells of the largest streamed table: first and one past the last, by place."""

Cell = tuple[Block, ...]
"""What is not cut further: a block, or all blocks of a hash bucket."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Spans of cells and their rows."""

    spans: tuple[Span, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Units:
    """The units of one query in the order they are read."""

    scans: tuple[Scan, ...]
    tables: tuple[Table, ...]
    main: Table
    """The table that the units are cut from: the largest."""
    ranged: bool
    order: tuple[Unit, ...]
    cells: dict[str, tuple[Cell, ...]]
    """Of each table by name, in the layout that is read: those at the same place belong together when they are buckets."""
    beside: Units | None = None
    """Units of another table at the same positions, in a random order of its own: its rows meet the others only at the driver."""

    @property
    def total_rows(self) -> int:
        return self.main.rows

    @property
    def mixed(self) -> bool:
        """Whether the rows were shuffled, so that rows of one kind do not lie together."""
        return all(self._layout(scan).shuffled for scan in self.scans) and (self.beside is None or self.beside.mixed)

    @property
    def fingerprint(self) -> str:
        """Tells what is read in which order: equal for a query that is asked again or resumed, unless tables or layouts changed."""
        other = () if self.beside is None else (self.beside.fingerprint,)
        return hashlib.sha256(repr((self._stored(), self.ranged, self.order, *other)).encode()).hexdigest()[:16]

    def group(self, position: int) -> int:
        """The replicate group of the unit that is read at this position; neighbours in the order are in different groups."""
        return position % GROUPS

    def blocks(self, position: int) -> list[Block]:
        """The blocks of the largest table that hold the rows of a unit; at the ends of a range they may hold a few others."""
        return _blocks(self.cells[self.main.name], self.order[position].spans)

    def queries(self, reader: NativeReader, scan: Scan, end: int | None = None) -> list[str]:
        """For each unit before `end`, in order, the query that reads its piece of a table, and its group where the scan has it."""
        columns = columns_read(scan)
        return self._of(scan)._queries(reader, scan, columns, len(columns) < len(scan.fields), end or len(self.order))

    def first(self, reader: NativeReader, scan: Scan, columns: Sequence[str], end: int) -> str:
        """The query for what a scan's table has in the units before `end`: some columns, and the unit's group."""
        return " UNION ALL ".join(self._of(scan)._queries(reader, scan, columns, True, end))

    def rows_before(self, scan: Scan, end: int) -> Hashable:
        """Tells which rows `first` reads: equal for queries that begin with the same rows of the same table."""
        units = self._of(scan)
        read = (scan.table, scan.layout), units._by_range(units._table(scan), units._layout(scan))
        return read, units._stored(), units.order[:end]

    def _of(self, scan: Scan) -> Units:
        """The units that a scan reads."""
        return self if self.beside is None or scan in self.scans else self.beside

    def _stored(self) -> tuple[Hashable, ...]:
        return tuple(
            (table.name, table.content, self._layout(scan).files) for scan, table in zip(self.scans, self.tables, strict=True)
        )

    def _table(self, scan: Scan) -> Table:
        return self.tables[self.scans.index(scan)]

    def _layout(self, scan: Scan) -> Layout:
        return self._table(scan).layout(scan.layout)

    def _by_range(self, table: Table, layout: Layout) -> bool:
        plain = layout is table.base and self.ranged and _is_ranged(table) and _is_ranged(self.main)
        return plain and _key_type(table) == _key_type(self.main)

    def _queries(self, reader: NativeReader, scan: Scan, columns: Sequence[str], grouped: bool, end: int) -> list[str]:
        found = []
        table, layout = self._table(scan), self._layout(scan)
        pieces = Pieces(reader, table, layout, columns)
        by_range = self._by_range(table, layout)
        for position, unit in enumerate(self.order[:end]):
            if by_range:
                query = pieces.of_range(self._cut(unit.spans[0][0]), self._cut(unit.spans[-1][1]), self._holes(unit))
            else:
                query = pieces.of_blocks([block for span in unit.spans for block in self._share(table, span)])
            found.append(_with_group(query, self.group(position) if grouped else None))
        return found

    def _holes(self, unit: Unit) -> list[tuple[Any, Any]]:
        """The ranges between the spans of a unit."""
        return [(self._cut(before[1]), self._cut(after[0])) for before, after in pairwise(unit.spans)]

    def _cut(self, place: int) -> Any:
        """The value at which the ranges before and after a place meet."""
        blocks = self.main.base.blocks
        statistics = blocks[place].statistics_of(ranged_column(self.main)) if 0 < place < len(blocks) else None
        return None if statistics is None else statistics.low

    def _share(self, table: Table, span: Span) -> Sequence[Block]:
        """The blocks of a table that belong to a span of the largest one: at the same fraction of the way."""
        cells, whole = self.cells[table.name], len(self.cells[self.main.name])
        return _blocks(cells, ((len(cells) * span[0] // whole, len(cells) * span[1] // whole),))


def columns_read(scan: Scan) -> tuple[str, ...]:
    """The stored columns that a scan reads."""
    return tuple(field.source for field in scan.fields if field.source != UNIT)


def units_of(cut: Cut, tables: Sequence[Table], seed: int) -> Units:
    """The units of a cut; `tables` are those of its scans, in order."""
    read = dict(zip(cut.scans, tables, strict=True))
    main = _units({scan: table for scan, table in read.items() if scan.table not in cut.beside}, cut.ranged, (seed,))
    others = {scan: table for scan, table in read.items() if scan.table in cut.beside}
    return replace(main, beside=_as_many(_units(others, False, (seed, 1)), len(main.order))) if others else main


def _as_many(units: Units, count: int) -> Units:
    """The units as so many: with empty ones at the end, or with the last ones as one."""
    order = units.order
    if len(order) > count:
        rest = order[count - 1 :]
        order = (*order[: count - 1], Unit(tuple(span for unit in rest for span in unit.spans), sum(unit.rows for unit in rest)))
    return replace(units, order=(*order, *[Unit((), 0)] * (count - len(order))))


def _units(read: Mapping[Scan, Table], ranged: bool, seed: tuple[int, ...]) -> Units:
    tables = tuple(read.values())
    main = largest(tables)
    layouts = {table.name: table.layout(scan.layout) for scan, table in read.items()}
    buckets = min(
        (each.clustering.buckets or 1 for each in layouts.values() if each.clustering and each.clustering.kind == HASH), default=0
    )
    cells = {name: cells_of(layout, buckets) for name, layout in layouts.items()}
    ranges_of = ranged_column(main) if ranged and not buckets and _is_ranged(main) else None
    rows = [sum(block.rows for block in cell) for cell in cells[main.name]]
    spans = large_spans(cells[main.name], ranges_of)
    random = np.random.default_rng(seed if len(seed) > 1 else seed[0])
    free: list[tuple[Span, ...]] = [(span,) for span in spans]
    order = []
    for size in _sizes(spans) if 2 * len(spans) >= 3 * SMALL_UNITS else ():
        runs = [(place, run) for place, each in enumerate(free) for run in _runs(each, size)]
        for chosen in random.permutation(len(runs))[:SMALL_UNITS]:
            place, run = runs[chosen]
            order.append(_unit(rows, (run,)))
            free[place] = _without(free[place], run)
    rest = [_unit(rows, each) for each in free if each]
    order += [rest[place] for place in random.permutation(len(rest))]
    return Units(tuple(read), tables, main, ranged, tuple(order), cells)


def _sizes(spans: Sequence[Span]) -> list[int]:
    """How many cells the units have that are cut out of larger ones: one, then more, in even steps up to the size of these."""
    cells = max(1.0, sum(end - first for first, end in spans) / len(spans))
    steps = max(1, ceil(log(cells) / log(LARGEST_STEP) - 1e-9))
    return [round(cells ** (step / steps)) for step in range(steps)]


def _runs(free: tuple[Span, ...], size: int) -> list[Span]:
    """The free cells in runs of about so many."""
    found: list[Span] = []
    for first, end in free:
        parts = max(1, round((end - first) / size))
        found += pairwise(first + (end - first) * part // parts for part in range(parts + 1))
    return found


def _without(free: tuple[Span, ...], taken: Span) -> tuple[Span, ...]:
    """The free cells without those of a run."""
    parts = [part for first, end in free for part in ((first, min(end, taken[0])), (max(first, taken[1]), end))]
    return tuple((first, end) for first, end in parts if first < end)


def cells_of(layout: Layout, buckets: int) -> tuple[Cell, ...]:
    """The blocks of a layout, or, where there are `buckets`, those of each; a layout of more buckets is folded to so many."""
    if not buckets:
        return tuple((block,) for block in layout.blocks)
    found: list[list[Block]] = [[] for _ in range(buckets)]
    for block in layout.blocks:
        found[(block.bucket or 0) % buckets].append(block)
    return tuple(map(tuple, found))


def large_spans(cells: Sequence[Cell], ranges_of: str | None) -> list[Span]:
    """The cells in about `LARGE_UNITS` runs, ended where a file ends when that is near.

    A run of a range begins at a value of its own, so that ranges of the column `ranges_of` are not empty.
    """
    sizes = [sum(block.rows for block in cell) for cell in cells]
    target = max(1, sum(sizes) // LARGE_UNITS)
    spans: list[Span] = []
    first, rows = 0, 0
    for place, cell in enumerate(cells):
        full = rows + sizes[place] / 2 >= target or (rows >= 0.6 * target and _file(cell) != _file(cells[place - 1]))
        if full and place > first and _begins_anew(cells[first], cell, ranges_of):
            spans.append((first, place))
            first, rows = place, 0
        rows += sizes[place]
    return [*spans, (first, len(cells))] if cells else []


def _blocks(cells: Sequence[Cell], spans: Iterable[Span]) -> list[Block]:
    return [block for first, end in spans for cell in cells[first:end] for block in cell]


def _file(cell: Cell) -> str | None:
    return cell[0].parts[0].path if cell else None


def _begins_anew(before: Cell, cell: Cell, name: str | None) -> bool:
    if name is None:
        return True
    left, right = before[0].statistics_of(name), cell[0].statistics_of(name)
    return left is not None and right is not None and right.low is not None and left.low is not None and right.low > left.low


def _unit(rows: Sequence[int], spans: tuple[Span, ...]) -> Unit:
    return Unit(spans, sum(sum(rows[first:end]) for first, end in spans))


def _with_group(query: str, group: int | None) -> str:
    return query if group is None else f'SELECT *, {group}::INTEGER AS "{UNIT}" FROM ({query})'


def largest(tables: Sequence[Table]) -> Table:
    return max(tables, key=lambda table: (table.rows, table.name))


def _is_ranged(table: Table) -> bool:
    return table.base.clustering is not None and table.base.clustering.kind == "range"


def _key_type(table: Table) -> str:
    return str(table.column(ranged_column(table)).type)
