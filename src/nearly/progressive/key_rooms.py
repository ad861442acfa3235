"""Whether what was read tells how many keys there are: footers know how far apart the keys of a block lie.

Where rows of a key lie together and a few keys have most rows, most blocks have next to no keys, and nearly all keys lie in a few
blocks. As long as none of these is read, no replicate knows of them, and the number of keys comes out far too small. But they can
be told by the ends of their keys, which lie far apart. If keys lie everywhere as densely as the K of the blocks read, a block b of
n_b rows, whose keys reach over a distance w_b, has room for about

    r_b = min(n_b, 1 + K w_b / (sum of w over the blocks read))

of them. The rows read stand for the keys of all others only if they have about as much room for them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearly.engine.stream.units import Units
from nearly.estimate.incidence import Incidence
from nearly.plan.expressions import Column
from nearly.plan.nodes import Filter, GroupBy, Input, Join, Limit, Plan, Project, Scan, Sort
from nearly.progressive.reading import UnitsRead
from nearly.rewrite.stream.cut import Cut

MORE_ROOM = 1.5
"""Where all blocks have so many times the room for keys, per row, that those read have, these say little about the others."""
_BYTES = 6
"""So much of a text, after what all begin with, tells how far it is from another."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Reach:
    """Of the blocks of a table: their units, their rows, and how far the values of a column reach; all whole values in `values`."""

    units: NDArray[np.int64]
    rows: Floats
    widths: Floats
    values: float

    def is_unlike(self, reading: UnitsRead, keys: float) -> bool:
        """Whether the units read, which have so many keys, have little room for keys beside the others."""
        if keys > self.values:
            return False  # the keys differ in other columns
        read = np.isin(self.units, list(reading.positions))
        reached = self.widths[read].sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(self.widths > 0, np.minimum(1 + keys * self.widths / reached, self.rows), 1.0)
        return bool(room.sum() / self.rows.sum() > MORE_ROOM * room[read].sum() / max(self.rows[read].sum(), 1.0))


@dataclass(slots=True)
class KeyRooms:
    """The room for keys of one query's aggregates; how far blocks reach is found once."""

    cut: Cut
    units: Units
    _reaches: dict[str, Reach | None] = field(default_factory=dict)

    def unlike(self, reading: UnitsRead, models: Mapping[GroupBy, Incidence]) -> frozenset[GroupBy]:
        """The aggregates most of whose keys may lie in units unlike those read."""
        if self.units.mixed or not reading.positions:
            return frozenset()
        return frozenset(
            aggregate
            for aggregate, model in models.items()
            if any(reach.is_unlike(reading, model.seen) for reach in self._reaches_of(aggregate))
        )

    def _reaches_of(self, aggregate: GroupBy) -> list[Reach]:
        """Those of the keys that are stored columns of the table that the units are of."""
        stages = {stage.name: stage.plan for stage in self.cut.stages}
        names = [key.expression.name for key in aggregate.keys if isinstance(key.expression, Column)]
        columns = [_stored(aggregate.child, name, stages, self.units.main.name) for name in names]
        reaches = [self._reach(column) for column in columns if column is not None]
        return [each for each in reaches if each is not None]

    def _reach(self, column: str) -> Reach | None:
        if column not in self._reaches:
            self._reaches[column] = _reach(self.units, column)
        return self._reaches[column]


def _reach(units: Units, column: str) -> Reach | None:
    """How far the values of a column reach in each block; None where footers do not tell."""
    blocks = [(position, block) for position in range(len(units.order)) for block in units.blocks(position) if block.rows]
    told = [block.statistics_of(column) for _, block in blocks]
    lows = [None if each is None else each.low for each in told]
    highs = [None if each is None else each.high_number if each.high is None else each.high for each in told]
    if not blocks or None in lows or None in highs:
        return None
    ends = _numbers([*lows, *highs])
    if ends is None:
        return None
    low, high = ends[: len(blocks)], ends[len(blocks) :]
    whole = isinstance(lows[0], int) or (isinstance(lows[0], dt.date) and not isinstance(lows[0], dt.datetime))
    values = high.max() - low.min() + 1 if whole else np.inf
    rows = np.array([block.rows for _, block in blocks], dtype=float)
    return Reach(np.array([position for position, _ in blocks]), rows, np.maximum(high - low, 0), float(values))


def _numbers(values: Sequence[Any]) -> Floats | None:
    """Values as numbers in the same order; None for a type that has none."""
    match values[0]:
        case bool():
            return None
        case int() | float() | Decimal():
            return np.array([float(each) for each in values])
        case dt.datetime():
            return np.array([(each - values[0]) / dt.timedelta(microseconds=1) for each in values])
        case dt.date():
            return np.array([float(each.toordinal()) for each in values])
        case str():
            return _places([each.encode() for each in values])
        case bytes():
            return _places(values)
    return None


def _places(texts: Sequence[bytes]) -> Floats:
    """Texts by their first bytes after those that all begin with.

    >>> _places([b"user-1", b"user-2", b"user-3"]).argsort().tolist()
    [0, 1, 2]
    """
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(min(texts), max(texts), strict=False)))
    return np.array([float(int.from_bytes(text[alike : alike + _BYTES].ljust(_BYTES, b"\0"))) for text in texts])


def _stored(plan: Plan, name: str, stages: dict[str, Plan], table: str) -> str | None:
    """The stored column of a table that a column of a plan is; None where it is none."""
    match plan:
        case Scan():
            field_ = next(each for each in plan.fields if each.name == name)
            return field_.source if plan.table == table else None
        case Input():
            return _stored(stages[plan.source], name, stages, table) if plan.source in stages else None
        case Filter() | Sort() | Limit():
            return _stored(plan.child, name, stages, table)
        case Join():
            return _stored(plan.left if name in plan.left.names else plan.right, name, stages, table)
        case Project():
            made = {each.name: each.expression for each in plan.outputs}.get(name)
        case GroupBy():
            made = {each.name: each.expression for each in plan.keys}.get(name)
        case _:
            return None
    return _stored(plan.child, made.name, stages, table) if isinstance(made, Column) else None
