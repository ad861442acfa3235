"""A partition of rows by values of columns, and summaries of its parts; runs inside Spark's Python workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nearly.algebra import arrow as pc

PART = "part"
ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of the partition."""

    number: int


@dataclass(frozen=True, slots=True)
class Split:
    """Rows below `value` in the column go to `below`, the others to `rest`; with no value, nulls go to `below`."""

    column: str
    value: Any
    below: Node
    rest: Node


Node = Leaf | Split


@dataclass(frozen=True, slots=True)
class Partition:
    """A binary tree of splits. Law: every row is in exactly one part; nulls are split off before a column is compared."""

    root: Node

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(sorted(_columns(self.root)))

    def assign(self, table: pa.Table) -> Any:
        """The number of each row's part."""
        parts = np.zeros(table.num_rows, dtype=np.int64)
        columns = {name: table.column(name).combine_chunks() for name in self.columns}
        _assign(self.root, np.arange(table.num_rows), columns, parts)
        return parts


def _columns(node: Node) -> set[str]:
    return set() if isinstance(node, Leaf) else {node.column} | _columns(node.below) | _columns(node.rest)


def _assign(node: Node, places: Any, columns: dict[str, Any], parts: Any) -> None:
    if isinstance(node, Leaf):
        parts[places] = node.number
        return
    values = columns[node.column].take(pa.array(places))
    mask = pc.is_null(values) if node.value is None else pc.less(values, pa.scalar(node.value, values.type))
    below = pc.fill_null(mask, False).to_numpy(zero_copy_only=False).astype(bool)
    _assign(node.below, places[below], columns, parts)
    _assign(node.rest, places[~below], columns, parts)


def summarise(table: pa.Table, partition: Partition, measures: Sequence[str]) -> pa.Table:
    """For every part with rows: how many, and for measure number i its `min_i`, `max_i`, and the numbers `null_i` and `nan_i`."""
    columns = {PART: pa.array(partition.assign(table), pa.int64()), ROWS: pa.repeat(1, table.num_rows)}
    for number, name in enumerate(measures):
        values = table.column(name)
        strange = pc.fill_null(pc.is_nan(values), False) if pa.types.is_floating(values.type) else pa.repeat(False, len(values))
        plain = pc.if_else(strange, pa.scalar(None, values.type), values)
        columns |= {f"min_{number}": plain, f"max_{number}": plain}
        columns |= {f"null_{number}": pc.cast(pc.is_null(values), pa.int64()), f"nan_{number}": pc.cast(strange, pa.int64())}
    return merged(pa.table(columns), measures)  # a row is the summary of itself


def merged(partials: pa.Table, measures: Sequence[str]) -> pa.Table:
    """Summaries of rows of the same partition, put together."""
    wanted = [(ROWS, "sum")]
    for number in range(len(measures)):
        wanted += [(f"min_{number}", "min"), (f"max_{number}", "max"), (f"null_{number}", "sum"), (f"nan_{number}", "sum")]
    whole = partials.group_by(PART).aggregate(wanted)
    return whole.rename_columns([name if name == PART else name.rsplit("_", 1)[0] for name in whole.column_names])
