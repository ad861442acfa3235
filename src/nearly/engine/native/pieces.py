"""The text of queries over parts of a table: some blocks, or a range of the column it is clustered by.

A progressive query reads a table in a hundred pieces and must not spend its first second on rendering SQL, so the reader's query is
rendered once, and files, rows and values are put in as text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

from sqlglot import exp

from nearly.engine.native.reading import ROW_NUMBER, NativeReader, gone_rows, literal_path
from nearly.engine.native.splice import spliced_constant, spliced_tables
from nearly.engine.storage.blocks import Block, FilePart
from nearly.engine.storage.layouts import Layout, Table
from nearly.errors import EngineError
from nearly.plan.dialects import native
from nearly.plan.expressions import Literal
from nearly.plan.quoting import native_name, native_text

_FILES, _GONE = "@files@", "@gone@"
_HERE = "\0"
"""Where files go in a text, in which no engine allows it."""
_ALL = " UNION ALL "


class Pieces:
    """Queries over pieces of one layout, all with the same columns; a query for no column reads some one."""

    def __init__(self, reader: NativeReader, table: Table, layout: Layout, columns: Sequence[str]) -> None:
        self._table = table
        self._layout = layout
        self._columns = list(columns) or [table.columns[0].name]
        self._reader = reader
        self._literals: dict[Any, str] = {}
        self._templates: dict[tuple[bool, bool, bool], tuple[str, ...]] = {}

    def of_blocks(self, blocks: Sequence[Block]) -> str:
        """The rows of some blocks: one scan for the files that are whole, and one for each other file."""
        by_file: dict[str, list[FilePart]] = {}
        for run in file_runs(blocks):
            by_file.setdefault(run.path, []).append(run)
        files = [path for path, runs in by_file.items() if runs[0].whole]
        queries = [self._files(files)] if files else []
        for path, runs in by_file.items():
            if not runs[0].whole:
                queries.append(f"{self._files([path], numbered=True)} WHERE {_rows_of(runs)}")
        return _ALL.join(queries) or self.nothing()

    def of_range(self, low: Any, high: Any, holes: Sequence[tuple[Any, Any]] = ()) -> str:
        """The rows whose clustering column is in [low, high) but in no hole, nulls at the open lower end.

        It is one scan even where the ends share blocks with other ranges: DuckDB plans joins badly over unions of scans.
        """
        name = ranged_column(self._table)
        blocks = self._candidates(name, low, high)
        if not blocks:
            return self.nothing()
        files = list(dict.fromkeys(part.path for block in blocks for part in block.parts))
        inside = not holes and all(_holds_only(block, name, low, high) for block in blocks)
        if inside and all(run.whole for run in file_runs(blocks)):
            return self._files(files)
        rows = self._files(files, tested=True)
        return f"SELECT {self._shown} FROM ({rows}) AS tested WHERE {self._within(low, high, holes)}"

    def _within(self, low: Any, high: Any, holes: Sequence[tuple[Any, Any]]) -> str:
        column = self._clustering_column
        tests = [f"{column} >= {self._literal(low)}"] if low is not None else []
        tests += [f"{column} < {self._literal(high)}"] if high is not None else []
        tests += [f"({column} < {self._literal(first)} OR {column} >= {self._literal(end)})" for first, end in holes]
        inside = " AND ".join(tests) or "TRUE"
        return inside if low is not None else f"({inside} OR {column} IS NULL)"

    @cached_property
    def _shown(self) -> str:
        return ", ".join(map(native_name, self._columns))

    @cached_property
    def _clustering_column(self) -> str:
        return native_name(ranged_column(self._table))

    def _literal(self, value: Any) -> str:
        if type(value) is int:
            return str(value)
        if value not in self._literals:
            type_ = self._table.column(ranged_column(self._table)).type
            self._literals[value] = str(native.expression(Literal(type_, value)).sql(dialect="duckdb"))
        return self._literals[value]

    @cached_property
    def _ends(self) -> tuple[list[Any], list[Any]] | None:
        """Least and greatest values of the blocks in order; None when one is unknown or there are nulls."""
        name = ranged_column(self._table)
        ends = [block.statistics_of(name) for block in self._layout.blocks]
        known = [each for each in ends if each is not None and each.bounded and each.nulls == 0]
        return ([each.low for each in known], [each.high for each in known]) if len(known) == len(ends) else None

    def nothing(self) -> str:
        """No row, with the same columns."""
        return f"{self._spliced(self._template(), self._layout.manifest.paths[:1])} WHERE FALSE"

    def _candidates(self, name: str, low: Any, high: Any) -> Sequence[Block]:
        """The blocks that may hold a value of the range; they lie in the order of the column."""
        blocks = self._layout.blocks
        if self._ends is None:
            return [block for block in blocks if _may_hold(block, name, low, high)]
        lows, highs = self._ends
        first = 0 if low is None else bisect_left(highs, low)
        last = len(blocks) if high is None else bisect_left(lows, high)
        return blocks[first:last]

    def _files(self, paths: Sequence[str], numbered: bool = False, tested: bool = False) -> str:
        """The rows of some files that were not deleted; with `tested` also the clustering column, to be compared."""
        if not any(path in self._touched for path in paths):
            return self._spliced(self._template(numbered, tested), paths)
        body = self._spliced(self._template(numbered, tested, True), paths)
        return spliced_tables(body, {_GONE: gone_rows(self._layout, paths)})

    def _template(self, numbered: bool = False, tested: bool = False, touched: bool = False) -> tuple[str, ...]:
        """The query around its files."""
        known = (numbered, tested, touched)
        if known not in self._templates:
            columns = self._columns
            if tested and ranged_column(self._table) not in columns:
                columns = [*columns, ranged_column(self._table)]
            gone = f'SELECT * FROM "{_GONE}"' if touched else None
            query = self._reader.query(self._table, self._layout, columns, [_FILES], numbered, gone)
            text = spliced_constant(str(query.sql(dialect="duckdb")), _FILES, _HERE)
            self._templates[known] = tuple(text.split(_HERE))
        return self._templates[known]

    @cached_property
    def _touched(self) -> frozenset[str]:
        """The files some of whose rows may have been deleted."""
        return frozenset(part.path for block in self._layout.blocks if block.gone for part in block.parts)

    def _spliced(self, template: tuple[str, ...], paths: Sequence[str]) -> str:
        return ", ".join(native_text(literal_path(path)) for path in paths).join(template)


def ranged_column(table: Table) -> str:
    """The column that a table is clustered by."""
    if table.base.clustering is None:
        raise EngineError(f"table {table.name!r} is not clustered, so it has no ranges to share")
    return table.base.clustering.columns[0]


def file_runs(blocks: Sequence[Block]) -> list[FilePart]:
    """The blocks' parts, neighbours in a file joined."""
    runs: list[FilePart] = []
    for part in sorted((part for block in blocks for part in block.parts), key=lambda part: (part.path, part.first_row)):
        last = runs[-1] if runs else None
        if last is not None and last.path == part.path and last.first_row + last.rows == part.first_row:
            joined = last.row_groups + part.row_groups
            runs[-1] = FilePart(part.path, last.first_row_group, joined, last.first_row, last.rows + part.rows, part.file_rows)
        else:
            runs.append(part)
    return runs


def blocks_with(blocks: Sequence[Block], column: str, values: Collection[Any]) -> list[Block]:
    """The blocks that can hold one of some values of a column; None among them is null."""
    ordered = sorted(value for value in values if value is not None)
    nulls = len(ordered) < len(values)
    return [block for block in blocks if _may_hold_one(block, column, ordered, nulls)]


def _may_hold_one(block: Block, column: str, ordered: Sequence[Any], nulls: bool) -> bool:
    found = block.statistics_of(column)
    if found is None or not found.bounded or (nulls and found.nulls != 0):
        return True
    place = bisect_left(ordered, found.low)
    return place < len(ordered) and bool(ordered[place] <= found.high)


def row_range(run: FilePart) -> exp.Expr:
    """The condition that a row of a file belongs to a run; the query must number its rows."""
    column = exp.column(ROW_NUMBER)
    return exp.and_(
        exp.GTE(this=column.copy(), expression=exp.Literal.number(run.first_row)),
        exp.LT(this=column.copy(), expression=exp.Literal.number(run.first_row + run.rows)),
    )


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


def _rows_of(runs: Sequence[FilePart]) -> str:
    """The condition that a row of a file is in some runs, as a range but its holes: DuckDB skips row groups by ranges."""
    tests = [f"{ROW_NUMBER} >= {runs[0].first_row} AND {ROW_NUMBER} < {runs[-1].first_row + runs[-1].rows}"]
    for before, after in pairwise(runs):
        tests.append(f"NOT ({ROW_NUMBER} >= {before.first_row + before.rows} AND {ROW_NUMBER} < {after.first_row})")
    return " AND ".join(tests)
