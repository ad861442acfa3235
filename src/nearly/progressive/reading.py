"""How much of a query's units has been read, and the weights that follow from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearly.engine.stream.units import GROUPS, Units
from nearly.estimate.half_samples import balanced_weights


@dataclass(frozen=True, slots=True)
class Replicates:
    """Some replicates of a query, and what a plan in replicates reads: the weight of every group of units in each."""

    count: int
    weights: dict[str, pa.Table]

    @property
    def inputs(self) -> dict[str, pa.Table]:
        return {**self.weights, "replicates": pa.table({"replicate": pa.array(range(self.count), pa.int32())})}


@dataclass(frozen=True, slots=True)
class UnitsRead:
    """The units at some positions of the order are read. Law: weight * rows read = rows in all.

    Replicates leave out one of `most_groups` groups of units.
    """

    plan: Units
    positions: frozenset[int]
    most_groups: int = GROUPS

    @classmethod
    def of(cls, units: Units, positions: Iterable[int]) -> UnitsRead:
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

    @property
    def beside(self) -> UnitsRead | None:
        """What was read of a table that is sampled by itself."""
        return None if self.plan.beside is None else replace(self, plan=self.plan.beside)

    @property
    def least_share(self) -> float:
        """The share of the table of which the least was read."""
        return self.share if self.beside is None else min(self.share, self.beside.share)

    def in_groups(self, most: int) -> UnitsRead:
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

    def weights(self, of: UnitsRead | None = None) -> pa.Table:
        """Replicate r leaves out the r-th group read: (replicate, unit_group, unit_weight), zero weights left out.

        `of` are units of another table, the same groups of which are left out.
        """
        read = of or self
        rows = Counter[int]()
        for position in read.positions:
            rows[self._group(read.plan.group(position))] += read._rows(position)
        columns: tuple[list[int], list[int], list[float]] = ([], [], [])
        for replicate, left_out in enumerate(sorted({self._group(number) for number in self._numbers()})):
            weight = read.plan.total_rows / max(rows.total() - rows[left_out], 1)
            for number in read._numbers():
                if self._group(number) != left_out:
                    columns[0].append(replicate)
                    columns[1].append(number)
                    columns[2].append(weight)
        return _weights_table(*columns)

    def replicates(self) -> Replicates:
        """One for each group of units, which it leaves out."""
        others = {} if self.beside is None else {"weights_beside": self.weights(self.beside)}
        return Replicates(self.groups, {"weights": self.weights(), **others})

    def half_samples(self) -> Replicates:
        """Replicates in which half of the groups weigh more and half less (`estimate.half_samples`); of one table."""
        factors = balanced_weights(self.group_rows, self.share) * self.weight
        places = {number: place for place, number in enumerate(sorted({self._group(each) for each in self._numbers()}))}
        rows = [
            (replicate, number, factors[replicate, places[self._group(number)]])
            for replicate in range(len(factors))
            for number in self._numbers()
        ]
        return Replicates(len(factors), {"weights": _weights_table(*(list(column) for column in zip(*rows, strict=True)))})

    def _rows(self, position: int) -> int:
        return self.plan.order[position].rows


def _weights_table(replicate: list[int], unit_group: list[int], unit_weight: list[float]) -> pa.Table:
    columns = {
        "replicate": (replicate, pa.int32()),
        "unit_group": (unit_group, pa.int32()),
        "unit_weight": (unit_weight, pa.float64()),
    }
    return pa.table({name: pa.array(values, type_) for name, (values, type_) in columns.items()})
