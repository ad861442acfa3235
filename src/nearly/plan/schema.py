"""What the plan layer knows of a stored table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearly.plan.types import DataType

if TYPE_CHECKING:
    from nearly.plan.reading import Reading


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """A column; `nullable` is False only when the data is known to hold no null."""

    name: str
    type: DataType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class HashedLayout:
    """A layout whose files are buckets of a hash of some columns; bucket counts that divide each other line up."""

    name: str
    columns: tuple[str, ...]
    buckets: int


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A version of a table: its columns, its key (empty when none is known), its size, the column whose ranges its blocks divide.

    `shuffled` names a layout whose blocks are random samples of the rows. `reading` makes of the stored rows those that users see,
    where they differ.
    """

    name: str
    columns: tuple[SchemaColumn, ...]
    key: tuple[str, ...] = ()
    rows: int = 0
    blocks: int = 1
    ranges_of: str | None = None
    hashed: tuple[HashedLayout, ...] = ()
    shuffled: str | None = None
    version: int = 0
    reading: Reading | None = None


FindTable = Callable[[str], TableSchema]
"""Gives the schema of a table or raises `UnknownName`."""
