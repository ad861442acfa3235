"""How much of a query's units has been read, and the weights that follow from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearly.engine.stream.units import GROUPS, Units


@dataclass(frozen=True, slots=True)
class Reading:
    """The units at some positions of the order are read. Law: weight * rows read = rows in all.

    Replicates leave out one of `most_groups` groups of units.
    """

    plan: Units
    positions: frozenset[int]
    most_groups: int = GROUPS

    @classmethod
    def of(cls, units: Units, positions: Iterable[int]) -> Reading:
        return cls(units, frozenset(positions))

    @property
    def units(self) -> int:
        return len(self.positions)

    @property
    def rows(self) -> int:
        return sum(self._rows(position) for position in self.positions)

    @property
    def share(self) -> float:
        """The share of all rows that was read."""
        return self.rows / max(self.plan.total_rows, 1)

    @property
    def weight(self) -> float:
        return self.plan.total_rows / max(self.rows, 1)

    @property
    def group_rows(self) -> NDArray[np.float64]:
        """Rows read of each replicate group, groups without units left out."""
        rows = np.zeros(self.most_groups)
        for position in self.positions:
            rows[self._group(self.plan.group(position))] += self._rows(position)
        return rows[rows > 0]

    @property
    def groups(self) -> int:
        return len(self.group_rows)

    def in_groups(self, most: int) -> Reading:
        """The same units for at most so many replicates, a divisor of `GROUPS`."""
        return replace(self, most_groups=most)

    def _group(self, number: int) -> int:
        """The replicate group of a group of units."""
        return number % self.most_groups

    def _numbers(self) -> list[int]:
        """The groups of units read."""
        return sorted({self.plan.group(position) for position in self.positions if self._rows(position)})

    def incidence(self, found: Iterable[tuple[int, int, int]]) -> NDArray[np.float64]:
        """From (unit group, seen in, keys): group x k, how many keys of the group were seen in k groups, from k = 1 on."""
        places = {number: place for place, number in enumerate(self._numbers())}
        table = np.zeros((len(places), len(places)))
        for group, seen_in, keys in found:
            table[places[group], seen_in - 1] += keys
        return table

    def places(self, groups: NDArray[np.int32]) -> NDArray[np.int64]:
        """The place, in `group_rows`, of each of some groups of units."""
        return np.searchsorted(self._numbers(), groups)

    def weights(self) -> pa.Table:
        """Replicate r leaves out the r-th group read: (replicate, unit_group, unit_weight), zero weights left out."""
        numbers, rows = self._numbers(), self.group_rows
        total, read = self.plan.total_rows, rows.sum()
        columns: tuple[list[int], list[int], list[float]] = ([], [], [])
        for replicate, left_out in enumerate(sorted({self._group(number) for number in numbers})):
            weight = total / max(read - rows[replicate], 1)
            for number in numbers:
                if self._group(number) != left_out:
                    columns[0].append(replicate)
                    columns[1].append(number)
                    columns[2].append(weight)
        types = (pa.int32(), pa.int32(), pa.float64())
        arrays = [pa.array(values, type_) for values, type_ in zip(columns, types, strict=True)]
        return pa.Table.from_arrays(arrays, names=["replicate", "unit_group", "unit_weight"])

    def replicates(self) -> pa.Table:
        return pa.table({"replicate": pa.array(range(self.groups), pa.int32())})

    def _rows(self, position: int) -> int:
        return self.plan.order[position].rows
