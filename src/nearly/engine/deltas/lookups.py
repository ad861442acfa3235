"""Rows of a large table whose value in one column is among some keys, found by reading as little of it as may be.

Law: what is read are the rows of the table with these keys; what is left out are files and blocks that hold none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nearly.engine.deltas.workspace import Workspace
from nearly.engine.native.pieces import Pieces, blocks_with
from nearly.engine.native.reading import NativeReader
from nearly.engine.storage.blocks import Block, FilePart
from nearly.engine.storage.layouts import Table
from nearly.plan.quoting import native_name
from nearly.plan.types import DATE, INTEGERS

MOST_LOOKED_UP = 20_000
"""For so many keys blocks are looked for that can hold them."""
WORTH_PRUNING = 0.5
"""Blocks are read apart when they have less than this share of the rows."""
FEWEST_COLUMNS, FEWEST_BLOCKS = 4, 4
"""One column is looked at before others are read, where these are so many and there are blocks to leave out."""
RUN = 2_048
"""Rows that are looked at together to tell which blocks hold a key."""


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """A column of a table, and the temporary table of the keys that are looked for, in its column `k`.

    Rows are looked for in some of the table's files, where these are given.
    """

    reader: NativeReader
    space: Workspace
    table: Table
    column: str
    keys: str
    files: tuple[str, ...] | None = None

    def rows(self, columns: Sequence[str], count: int) -> str:
        """A query for the rows with these keys, so many: in a few blocks, else anywhere."""
        blocks = self._blocks(columns, count)
        if blocks is None:
            return self.reader.with_keys(self.table, columns, self.column, self.keys, self._test, paths=self.files)
        rows = Pieces(self.reader, self.table, self.table.base, tuple(dict.fromkeys((*columns, self.column)))).of_blocks(blocks)
        shown = ", ".join(f"s.{native_name(each)}" for each in columns)
        return f"SELECT {shown} FROM ({rows}) AS s SEMI JOIN {native_name(self.keys)} AS n ON {self._meets}"

    def rows_in_order(self, columns: Sequence[str]) -> str:
        """The same, in the order of the table's files and the rows in them, whichever columns are asked for."""
        held = self._looked_at(columns)
        paths = self.files if held is None else _paths(self.table, held)
        return self.reader.with_keys(self.table, columns, self.column, self.keys, self._test, in_order=True, paths=paths)

    @property
    def _where(self) -> list[Block]:
        """The blocks in which rows are looked for."""
        return blocks_of(self.table, self.files)

    @property
    def _test(self) -> str:
        return equality(self.space, self.keys)

    @property
    def _meets(self) -> str:
        return f"s.{native_name(self.column)} {self._test} n.k"

    def _blocks(self, columns: Sequence[str], count: int) -> Sequence[Block] | None:
        """The blocks that can hold the keys, where these are few: by their bounds, or by a look at the one column."""
        table = self.table
        if table.column(self.column).type in (*INTEGERS, DATE) and count <= MOST_LOOKED_UP:
            values = [row[0] for row in self.space.execute(f"SELECT k FROM {native_name(self.keys)}")]
            found = blocks_with(self._where, self.column, values)
            if is_part(found, self._where):
                return found
        held = self._looked_at(columns)
        return held if held is not None and is_part(held, self._where) else None

    def _looked_at(self, columns: Sequence[str]) -> list[Block] | None:
        """The blocks that hold one of the keys in a row that is not deleted; None where looking takes more than it spares."""
        if len(columns) < FEWEST_COLUMNS or len(self._where) < FEWEST_BLOCKS or self._is_anywhere():
            return None
        runs = self.reader.runs(self.table, self.column, self.keys, self._test, RUN, self.files)
        return _with_runs(self._where, self.files or self.table.base.manifest.paths, self.space.execute(runs))

    def _is_anywhere(self) -> bool:
        """Whether some block, taken from the middle, has one of the keys: then most of them are likely to."""
        middle = self._where[len(self._where) // 2]
        rows = Pieces(self.reader, self.table, self.table.base, (self.column,)).of_blocks([middle])
        found = f"SELECT 1 FROM ({rows}) AS s SEMI JOIN {native_name(self.keys)} AS n ON {self._meets} LIMIT 1"
        return bool(self.space.execute(found))


def equality(space: Workspace, keys: str) -> str:
    """How keys are compared: null with null where there is one among them."""
    return "IS NOT DISTINCT FROM" if space.count(f"{native_name(keys)} WHERE k IS NULL") else "="


def blocks_of(table: Table, files: Sequence[str] | None = None) -> list[Block]:
    """The blocks of a table, or of some of its files."""
    wanted = None if files is None else set(files)
    return [block for block in table.base.blocks if wanted is None or all(part.path in wanted for part in block.parts)]


def is_part(blocks: Sequence[Block], others: Sequence[Block]) -> bool:
    """Whether blocks are few enough to be read apart from the others among which they lie."""
    return sum(block.rows for block in blocks) < WORTH_PRUNING * sum(block.rows for block in others)


def _paths(table: Table, blocks: Iterable[Block]) -> tuple[str, ...]:
    """The files of some blocks, in the order of the table's; one at least, to be read in vain."""
    own = {part.path for block in blocks for part in block.parts}
    paths = table.base.manifest.paths
    return tuple(path for path in paths if path in own) or tuple(paths[:1])


def _with_runs(blocks: Iterable[Block], paths: Sequence[str], runs: Iterable[tuple[int, int]]) -> list[Block]:
    """The blocks that share rows with some runs of rows, by the place of their file among these and their number in it."""
    found = {(paths[place], number) for place, number in runs}

    def numbers(part: FilePart) -> range:
        return range(part.first_row // RUN, (part.first_row + max(part.rows, 1) - 1) // RUN + 1)

    return [block for block in blocks if any((part.path, each) in found for part in block.parts for each in numbers(part))]
