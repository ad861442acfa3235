"""Sources with a log of their own, which says at every version which files hold the rows, and which rows of them are deleted.

`delta` and `iceberg` read such logs; what they find is described here as a table, from the footers of the files as always.
Law: a table described from a snapshot holds exactly the rows that the source's own reader gives for that version; whatever of it is
not understood is `Unsupported`, never left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearly.engine.storage.footers import Footer, read_footers
from nearly.engine.storage.hive_partitions import partition_values, refuse_partition_type
from nearly.engine.storage.layouts import Origin, Table, resolve
from nearly.engine.storage.listing import FoundFile, local_path
from nearly.engine.storage.registration import ReadFiles, base_layout, content_of
from nearly.errors import SchemaError, Unsupported
from nearly.plan.schema import SchemaColumn

Rows = NDArray[np.int64]
"""Numbers of rows in a file, in order."""


@dataclass(frozen=True, slots=True)
class EqualRows:
    """Rows that are deleted by their values: those of some files that equal a row of another file in some columns."""

    file: str
    columns: tuple[str, ...]
    applies_to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LakeSnapshot:
    """One version of a source: its columns in order, its files, and what was deleted from them since they were written."""

    version: str
    operation: str
    columns: tuple[SchemaColumn, ...]
    files: tuple[FoundFile, ...]
    partitions: tuple[str, ...] = ()
    gone: Mapping[str, Rows] = field(default_factory=dict)
    equal: tuple[EqualRows, ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether all its files are still there."""
        return all(Path(file.path).exists() for file in self.files)


class Lake(Protocol):
    """A source with versions."""

    @property
    def kind(self) -> str: ...

    @property
    def location(self) -> str: ...

    def snapshot(self, version: str | None = None) -> LakeSnapshot:
        """The source at one of its versions, or now."""

    def later(self, version: str) -> list[str]:
        """The versions after one, the oldest first; of older ones the log may tell no longer what they were."""

    def feed(self, version: str) -> pa.Table | None:
        """The rows that a version changed, with `_change_type`, where the source keeps a record of that."""


def describe_lake(
    name: str, lake: Lake, snapshot: LakeSnapshot, key: Sequence[str] = (), clustered_by: Sequence[str] | None = None
) -> Table:
    """A table of the files of a snapshot, all their rows included; not committed anywhere."""
    footers = read_footers([file.path for file in snapshot.files])
    columns = _columns(snapshot, footers)
    typed = {column.name: column for column in columns}
    files = ReadFiles(snapshot.files, tuple(footers), tuple(typed[each] for each in snapshot.partitions))
    layout = base_layout(files, columns, key, clustered_by, lake.location)
    origin = Origin(lake.kind, (lake.location,), snapshot.version)
    return Table(name, columns, resolve(columns, key, "key"), (layout,), content_of(columns, layout), origin)


def local_file(location: str, kind: str) -> str:
    """The path of a file that a log names by its address."""
    path = local_path(location)
    if path is None:
        raise Unsupported(f"the {kind} table has files that are not local, such as {location}; register it through Spark")
    return path


def _columns(snapshot: LakeSnapshot, footers: Sequence[Footer]) -> tuple[SchemaColumn, ...]:
    """The columns of the source's schema; every file must have them as they are now."""
    stored = [column for column in snapshot.columns if column.name not in snapshot.partitions]
    wanted = {column.name: column.type for column in stored}
    nullable = {column.name: not footers for column in snapshot.columns}
    for footer in footers:
        found = {column.name: column.type for column in footer.columns}
        for name in (*wanted, *found):
            if found.get(name) != wanted.get(name):
                raise Unsupported(
                    f"{footer.path} was written with another schema: column {name!r} is {found.get(name, 'absent')} there and "
                    f"{wanted.get(name, 'absent')} in the table now; rewrite the table's files, or register it through Spark"
                )
        for column in footer.columns:
            nullable[column.name] |= column.nullable
    kept = [column for column in snapshot.columns if column.name in snapshot.partitions]
    for column in kept:
        refuse_partition_type(column)
    for file in snapshot.files:
        for value in partition_values(file, [_column(snapshot, name) for name in snapshot.partitions]):
            nullable[value.column] |= value.value is None
    return tuple(replace(column, nullable=nullable[column.name]) for column in snapshot.columns)


def _column(snapshot: LakeSnapshot, name: str) -> SchemaColumn:
    for column in snapshot.columns:
        if column.name == name:
            return column
    raise SchemaError(f"the source has no column {name!r}, which its files are partitioned by")
