"""The parts that estimates of a stale view are made of, and what the rows of each weigh.

Tickets below a bound are clean; they are dealt into groups by their order, which is random. The parts are all stored rows, and by
group: the stored rows that were drawn, those among them whose key changed (old), and the clean rows of these keys (new). Rows
that are known for sure whatever their ticket, outliers, are apart from the sample: they have the same parts, without groups. With
m the share of tickets that is clean:

    stale     stored 1
    merged    stored 1    old -1      new 1      sure old -1    sure new 1
    aqp       drawn 1/m   old -1/m    new 1/m    sure old -1    sure new 1    sure drawn 1
    corr      stored 1    old -1/m    new 1/m    sure old -1    sure new 1

A replicate leaves a group out and weighs the others up: instead of 1/m it has G/((G - 1) m), and 0 in the group left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearly.plan.functions.tickets import TICKETS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

GROUPS = 32
STORED, SURE_DRAWN, SURE_OLD, SURE_NEW = range(4)
_FIRST = 4

STALE, MERGED, DIRECT, CORRECTED = range(4)
"""Sets of weights: the view as it is stored, with what was cleaned put in place, from the sample alone, and corrected by it."""
POINTS = 4


@dataclass(frozen=True, slots=True)
class Strata:
    """The clean share of the tickets, and in how many groups it is dealt."""

    share: float
    groups: int = GROUPS

    @property
    def bound(self) -> int:
        """Tickets below it are clean."""
        return ceil(self.share * TICKETS)

    @property
    def units(self) -> int:
        return _FIRST + 3 * self.groups

    @property
    def drawn(self) -> slice:
        return slice(_FIRST, _FIRST + self.groups)

    @property
    def old(self) -> slice:
        return slice(_FIRST + self.groups, _FIRST + 2 * self.groups)

    @property
    def new(self) -> slice:
        return slice(_FIRST + 2 * self.groups, _FIRST + 3 * self.groups)

    def units_of(self, part: slice, tickets: Integers) -> NDArray[np.int32]:
        """The units of rows of a part by their tickets."""
        return np.asarray(part.start + tickets * self.groups // self.bound, dtype=np.int32)

    def group_of(self, units: Integers) -> Integers:
        """The group of units that have one."""
        return np.asarray((units - _FIRST) % self.groups)

    def weights(self, kind: int, left_out: int | None = None) -> Floats:
        """What a row of each unit weighs."""
        found = np.zeros(self.units)
        if kind != DIRECT:
            found[STORED] = 1.0
        if kind == STALE:
            return found
        scale = np.full(self.groups, 1 / self.share if left_out is None else self.groups / ((self.groups - 1) * self.share))
        if left_out is not None:
            scale[left_out] = 0.0
        if kind == MERGED:
            scale = np.ones(self.groups)
        found[SURE_OLD], found[SURE_NEW] = -1.0, 1.0
        found[self.old], found[self.new] = -scale, scale
        if kind == DIRECT:
            found[SURE_DRAWN], found[self.drawn] = 1.0, scale
        return found

    def copies(self, kind: int) -> Floats:
        """The weights of all replicates of an estimate: groups x units."""
        return np.array([self.weights(kind, group) for group in range(self.groups)])

    def first_copy(self, kind: int) -> int:
        """The number of an estimate's first replicate among the sets of weights."""
        return POINTS + (self.groups if kind == CORRECTED else 0)

    def table(self, replicated: bool) -> pa.Table:
        """All sets of weights: (replicate, unit_group, unit_weight), zero weights left out."""
        sets = [self.weights(kind) for kind in range(POINTS)]
        if replicated:
            sets += [*self.copies(DIRECT), *self.copies(CORRECTED)]
        matrix = np.array(sets)
        number, unit = np.nonzero(matrix)
        columns = [pa.array(number, pa.int32()), pa.array(unit, pa.int32()), pa.array(matrix[number, unit], pa.float64())]
        return pa.Table.from_arrays(columns, names=["replicate", "unit_group", "unit_weight"])
