"""Rows of a layout by where they lie: the number of a file in the manifest, and of a row in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearly.engine.native.reading import FILE, ROW
from nearly.engine.storage.batches import Gone
from nearly.engine.storage.blocks import FilePart
from nearly.engine.storage.layouts import Layout
from nearly.engine.storage.manifest import FileEntry

_ROW_BITS = 40
"""A place as one number has the row in so many bits, and the file above them."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Rows of a layout's files, in order of file and row."""

    files: NDArray[np.int32]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, found: pa.Table) -> Positions:
        files = found[FILE].to_numpy().astype(np.int32)
        rows = found[ROW].to_numpy().astype(np.int64)
        order = np.lexsort((rows, files))
        return cls(files[order], rows[order])

    @classmethod
    def at(cls, rows: Mapping[str, NDArray[np.int64]], paths: Sequence[str]) -> Positions:
        """Rows of files, given by path, as positions in a manifest of these paths."""
        named = [(number, rows[path]) for number, path in enumerate(paths) if path in rows]
        files = [np.full(len(found), number, np.int32) for number, found in named]
        return cls(
            np.concatenate([np.empty(0, np.int32), *files]),
            np.concatenate([np.empty(0, np.int64), *(np.sort(r) for _, r in named)]),
        )

    @classmethod
    def stored(cls, vectors: Sequence[FileEntry]) -> Positions:
        """What deletion vectors hold."""
        found = [pq.read_table(vector.path, partitioning=None) for vector in vectors]
        files = np.concatenate([np.empty(0, np.int32), *(each["file"].to_numpy() for each in found)])
        rows = np.concatenate([np.empty(0, np.int64), *(each["row"].to_numpy() for each in found)])
        order = np.lexsort((rows, files))
        return cls(files[order].astype(np.int32), rows[order].astype(np.int64))

    def by_path(self, paths: Sequence[str]) -> dict[str, NDArray[np.int64]]:
        """The rows of each file, of those that have some; the paths are the manifest's."""
        numbers, starts = np.unique(self.files, return_index=True)
        parts = np.split(self.rows, starts[1:])
        return {paths[number]: rows for number, rows in zip(numbers.tolist(), parts, strict=True)} if len(self) else {}

    @property
    def packed(self) -> NDArray[np.int64]:
        """Each place as one number, in order; `unpacked` tells them apart again."""
        return packed(self.files, self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def table(self) -> pa.Table:
        """As a deletion vector is stored."""
        return pa.table({"file": pa.array(self.files, pa.int32()), "row": pa.array(self.rows, pa.int64())})

    def by_block(self, layout: Layout) -> tuple[Gone, ...]:
        """How many of them lie in each part of a block."""
        numbers = {path: number for number, path in enumerate(layout.manifest.paths)}
        parts = ((numbers[part.path], part) for block in layout.blocks for part in block.parts)
        counted = ((number, part.first_row_group, self._inside(number, part)) for number, part in parts)
        return tuple(each for each in counted if each[2])

    def _inside(self, number: int, part: FilePart) -> int:
        """How many of them lie in a part of the file with this number."""
        first, end = np.searchsorted(self.files, [number, number + 1])
        inside = np.searchsorted(self.rows[first:end], [part.first_row, part.first_row + part.rows])
        return int(inside[1] - inside[0])


def packed(files: NDArray[np.int32] | int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places as one number each: in order of files and rows."""
    return (np.asarray(files, np.int64) << _ROW_BITS) | rows


def first_place(file: int) -> int:
    """The place of a file's first row, packed."""
    return file << _ROW_BITS


def unpacked(places: NDArray[np.int64]) -> Positions:
    """Places that were packed, in their order."""
    return Positions((places >> _ROW_BITS).astype(np.int32), places & ((1 << _ROW_BITS) - 1))
