"""Blocks: ranges of row groups, the unit of reading, of sampling and of failure.

Law: the blocks of a layout partition its row groups, so the rows of the blocks add up to the rows of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

MOST_BLOCKS = 1024
"""Targets grow so that even a huge table has about this many blocks: each costs scheduling and driver memory."""
FEWEST_BLOCKS = 64
"""Small tables get smaller blocks, down to `SMALLEST_ROWS`: fewer sampling units than this make wide intervals."""
SMALLEST_ROWS = 16_384
USUAL_ROWS = 131_072
USUAL_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Bounds of one column over some rows: every value v that is not null has low <= v <= high in Spark's order.

    A bound is None when unknown. Bounds of strings may be cut short by the writer, so they need not occur in the data.
    Footers leave NaN out, and Spark orders NaN above all numbers: a float column therefore has no `high`, and
    `high_number` bounds those values that are not NaN.
    """

    column: str
    low: Any
    high: Any
    nulls: int | None
    high_number: Any = None

    @property
    def bounded(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None


@dataclass(frozen=True, slots=True)
class PartitionValue:
    """The value that a Hive partition directory gives a column."""

    column: str
    value: Any


@dataclass(frozen=True, slots=True)
class FilePart:
    """A range of neighbouring row groups of one file, also as a range of its row numbers."""

    path: str
    first_row_group: int
    row_groups: int
    first_row: int
    rows: int
    file_rows: int

    @property
    def whole(self) -> bool:
        """Whether this is the whole file."""
        return self.rows == self.file_rows


@dataclass(frozen=True, slots=True)
class Block:
    """Some parts that are read together; all lie in one Hive partition and in one hash bucket.

    `rows` are those that are there; `gone` more lie in the parts, but were deleted.
    """

    id: int
    parts: tuple[FilePart, ...]
    rows: int
    bytes: int
    statistics: tuple[ColumnStatistics, ...] = field(default=(), hash=False)
    partition: tuple[PartitionValue, ...] = ()
    bucket: int | None = None
    gone: int = 0

    def statistics_of(self, column: str) -> ColumnStatistics | None:
        """What is known about a column, None when nothing is."""
        return next((each for each in self.statistics if each.column == column), None)

    def without(self, rows: int) -> Block:
        """The block after so many more of its rows were deleted: bounds still hold, but how many nulls are left is not known."""
        left = tuple(replace(each, nulls=each.nulls and None) for each in self.statistics)
        return replace(self, rows=self.rows - rows, gone=self.gone + rows, statistics=left)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group of one file: what blocks are made of."""

    path: str
    index: int
    first_row: int
    rows: int
    bytes: int
    file_rows: int
    statistics: tuple[ColumnStatistics, ...] = ()
    partition: tuple[PartitionValue, ...] = ()
    bucket: int | None = None

    def statistics_of(self, column: str) -> ColumnStatistics | None:
        return next((each for each in self.statistics if each.column == column), None)


@dataclass(frozen=True, slots=True)
class BlockTarget:
    """How large a block may grow by taking in further row groups; a larger row group is a block of its own."""

    rows: int = USUAL_ROWS
    bytes: int = USUAL_BYTES

    def admits(self, taken: Sequence[RowGroup], row_group: RowGroup) -> bool:
        """Whether the row group may join those taken. Files share a block only when both are small."""
        last = taken[-1]
        if (last.partition, last.bucket) != (row_group.partition, row_group.bucket):
            return False
        if last.path != row_group.path and max(last.file_rows, row_group.file_rows) > self.rows:
            return False
        rows = sum(each.rows for each in taken) + row_group.rows
        return rows <= self.rows and sum(each.bytes for each in taken) + row_group.bytes <= self.bytes


def target_for(rows: int, size: int) -> BlockTarget:
    """The usual target for a table of so many rows and compressed bytes.

    >>> target_for(6_000_000, 200 << 20).rows
    93750
    """
    spread = min(max(rows // FEWEST_BLOCKS, SMALLEST_ROWS), USUAL_ROWS)
    return BlockTarget(max(spread, rows // MOST_BLOCKS), max(USUAL_BYTES, size // MOST_BLOCKS))


def make_blocks(row_groups: Iterable[RowGroup], target: BlockTarget | None = None) -> tuple[Block, ...]:
    """Blocks over the row groups in the order given; row groups without rows vanish."""
    kept = [each for each in row_groups if each.rows]
    if target is None:
        target = target_for(sum(each.rows for each in kept), sum(each.bytes for each in kept))
    taken: list[list[RowGroup]] = []
    for row_group in kept:
        if taken and target.admits(taken[-1], row_group):
            taken[-1].append(row_group)
        else:
            taken.append([row_group])
    return tuple(_block(number, members) for number, members in enumerate(taken))


def _block(number: int, members: Sequence[RowGroup]) -> Block:
    return Block(
        id=number,
        parts=_parts(members),
        rows=sum(each.rows for each in members),
        bytes=sum(each.bytes for each in members),
        statistics=merge_statistics(members),
        partition=members[0].partition,
        bucket=members[0].bucket,
    )


def _parts(members: Sequence[RowGroup]) -> tuple[FilePart, ...]:
    parts: list[FilePart] = []
    for each in members:
        last = parts[-1] if parts else None
        if last and last.path == each.path and last.first_row_group + last.row_groups == each.index:
            rows = last.rows + each.rows
            parts[-1] = FilePart(each.path, last.first_row_group, last.row_groups + 1, last.first_row, rows, each.file_rows)
        else:
            parts.append(FilePart(each.path, each.index, 1, each.first_row, each.rows, each.file_rows))
    return tuple(parts)


def merge_statistics(members: Sequence[RowGroup]) -> tuple[ColumnStatistics, ...]:
    """Statistics of the union: an end is known when it is known for every member that has a value which is not null."""
    if len(members) == 1:
        return members[0].statistics
    names = [each.column for each in members[0].statistics]
    return tuple(_merge_column(name, members) for name in names)


def _merge_column(name: str, members: Sequence[RowGroup]) -> ColumnStatistics:
    found = [(each.rows, each.statistics_of(name)) for each in members]
    known = [statistics for _, statistics in found if statistics is not None]
    nulls = [statistics.nulls for statistics in known]
    filled = [statistics for rows, statistics in found if statistics is None or statistics.nulls != rows]
    return ColumnStatistics(
        name,
        _extreme(min, [each and each.low for each in filled]),
        _extreme(max, [each and each.high for each in filled]),
        sum(each or 0 for each in nulls) if len(known) == len(found) and None not in nulls else None,
        _extreme(max, [each and each.high_number for each in filled]),
    )


def _extreme(choose: Any, values: list[Any]) -> Any:
    return choose(values) if values and all(value is not None for value in values) else None
