"""What lies between two versions of a table, as parts of files: rows that came and are still there, and rows that went.

Law: the rows of the parts, each as often as its sign says, added to the rows of the earlier version are those of the later one.
Files never change, so where the later version has the earlier one's files and vectors, and more, the files it has more hold what
came, and the vectors it has more name what went; where a batch has these rows in a file, they are read there. Between descriptions
that share no files, the log tells which version both show, or a record tells what changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nearly.engine.storage.batches import Batch
from nearly.engine.storage.layouts import Layout, Table
from nearly.engine.storage.manifest import FileEntry


@dataclass(frozen=True, slots=True)
class VersionStep:
    """A description of a table, and the record of what changed since the version before, where there is one."""

    table: Table
    record: Batch | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of some files of a table: all but those at the places of `vectors`, or with `named` only these.

    `weight` is 1 for rows that came, -1 for rows that went. The files are of the table's base layout, unless they are `apart`: then
    they hold the table's columns by themselves.
    """

    table: Table
    files: tuple[FileEntry, ...]
    vectors: tuple[FileEntry, ...]
    weight: int
    named: bool = False
    apart: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files)

    @property
    def identity(self) -> Hashable:
        """Tells which rows in which order these are: those of other files are others, also where they are equal."""
        return self.weight, self.named, self.files, self.vectors

    @property
    def most_rows(self) -> int:
        """So many rows at most."""
        return sum(each.rows for each in (self.vectors if self.named else self.files))


def extends(before: Layout, after: Layout) -> bool:
    """Whether a layout has all files and vectors of another, in the same places."""
    files, vectors = before.manifest.files, before.vectors
    return after.manifest.files[: len(files)] == files and after.vectors[: len(vectors)] == vectors


def stayed(before: Table, after: Table) -> tuple[str, ...] | None:
    """The files whose rows, as far as the later version of a table has them, are those of both versions; None where none tell.

    Law: with what came between the two these rows are the later version, and with what went the earlier one.
    """
    return tuple(before.base.manifest.paths) if extends(before.base, after.base) else None


def difference(steps: Sequence[VersionStep], logged: Iterable[Batch] = ()) -> tuple[Part, ...]:
    """What changed from the first of some descriptions of a table to the last; neighbours of the same content are the same rows.

    Batches that were `logged` between them may have rows that went in files.
    """
    kept = {batch.base.vector: batch.went for batch in logged if batch.base.vector is not None and _tells_all(batch)}
    found: list[Part] = []
    for before, after in pairwise(steps):
        if extends(before.table.base, after.table.base):
            found += _added(before.table, after.table, kept)
        elif before.table.content != after.table.content:
            found += _replaced(before.table, after)
    return tuple(part for part in found if part.files)


def _tells_all(batch: Batch) -> bool:
    """Whether a batch has all rows in a file that its vector names."""
    return batch.went is not None and batch.source is None and batch.went.rows == batch.gone


def _added(before: Table, after: Table, kept: Mapping[FileEntry, FileEntry | None]) -> list[Part]:
    came = after.base.manifest.files[len(before.base.manifest.files) :]
    late = after.base.vectors[len(before.base.vectors) :]
    if after.base.partitioned_by or _lost_rows(after, came):  # what came and went meanwhile is no difference
        kept = {}
    told = tuple(file for vector in late if (file := kept.get(vector)) is not None)
    others = tuple(vector for vector in late if kept.get(vector) is None)
    return [
        Part(after, came, after.base.vectors, 1),
        Part(after, told, (), -1, apart=True),
        Part(after, _touched(before, after) if others else (), others, -1, named=True),
    ]


def _lost_rows(table: Table, files: Sequence[FileEntry]) -> bool:
    """Whether rows of some files are gone."""
    paths = {file.path for file in files}
    return any(block.gone and any(part.path in paths for part in block.parts) for block in table.base.blocks)


def _touched(before: Table, after: Table) -> tuple[FileEntry, ...]:
    """The files that were there before, and lost rows; all of them, where other blocks were made of them since."""
    gone = {block.parts: block.gone for block in before.base.blocks}
    same = [block for block in after.base.blocks if block.parts in gone]
    files = before.base.manifest.files
    if len(same) < len(gone):
        return files
    paths = {part.path for block in same if block.gone > gone[block.parts] for part in block.parts}
    return tuple(file for file in files if file.path in paths)


def _replaced(before: Table, after: VersionStep) -> list[Part]:
    """What a record tells of a table whose files were replaced; else all rows of both."""
    record, table = after.record, after.table
    if record is None or record.version != before.version + 1 or table.base.partitioned_by:
        return [Part(each, each.base.manifest.files, each.base.vectors, sign) for each, sign in ((before, -1), (table, 1))]
    went = (record.went,) if record.went is not None else ()
    return [Part(table, record.base.files, (), 1, apart=True), Part(table, went, (), -1, apart=True)]
