"""Orders of reading as progressive queries have them: which blocks are read when a share of the rows is, and in which group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.sampling.populations import Floats, Integers
from nearly.engine.stream.units import GROUPS, Units


@dataclass(frozen=True, slots=True)
class Sample:
    """The blocks that one seed has read, those of a group together; group r begins at `starts[r]`."""

    blocks: Integers
    starts: Integers

    @property
    def group_of(self) -> Integers:
        """The group of each block."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.blocks)))

    def sums(self, partials: Floats) -> Floats:
        """Sums of the blocks' partials (blocks x features) in each group."""
        return np.asarray(np.add.reduceat(partials[self.blocks], self.starts, axis=0), dtype=float)


@dataclass(frozen=True, slots=True)
class Reading:
    """For each seed, what it has read after the same number of units."""

    samples: tuple[Sample, ...]
    units: int

    @property
    def groups(self) -> int:
        return min(self.units, GROUPS)

    def group_sums(self, partials: Floats) -> Floats:
        """Sums in each group: seeds x groups x features."""
        return np.stack([sample.sums(partials) for sample in self.samples])


def positions_of(units: Units) -> Integers:
    """For each block, at which position of the order it is read."""
    positions = np.zeros(len(units.main.base.blocks), dtype=np.int64)
    for position, unit in enumerate(units.order):
        for first, end in unit.spans:
            positions[first:end] = position
    return positions


def units_read(orders: Sequence[Units], share: float) -> int:
    """After how many units, of all seeds together, the share of rows read is nearest to this one."""
    fewest = min(len(order.order) for order in orders)
    rows = np.cumsum(np.mean([[unit.rows for unit in order.order[:fewest]] for order in orders], axis=0))
    return int(np.argmin(np.abs(rows / orders[0].total_rows - share))) + 1


def reading(positions: Sequence[Integers], units: int) -> Reading:
    """What every seed has read after so many units; `positions` are those of its blocks."""
    return Reading(tuple(_sample(each, units) for each in positions), units)


def _sample(positions: Integers, units: int) -> Sample:
    blocks = np.flatnonzero(positions < units)
    groups = positions[blocks] % GROUPS
    order = np.argsort(groups, kind="stable")
    return Sample(blocks[order], np.flatnonzero(np.diff(groups[order], prepend=-1)))
