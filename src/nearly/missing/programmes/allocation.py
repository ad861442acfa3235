"""How many missing rows lie in each cell: the integer programme behind every range, in blocks that do not influence each other.

A block has cells and bounds on sums of their counts. It answers two questions exactly: what is the greatest total gain when a row
in cell i gains g_i, and is there an instance at all when some cells must stay empty?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Gain: TypeAlias = int | None
"""What one row gains; None is without limit."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Counts of rows per cell with the greatest total gain.

    `bound` is a total that no instance exceeds, None when there is no limit; `proven` says that the counts reach it.
    """

    bound: int | None
    counts: tuple[int, ...]
    proven: bool = True


class AllocationBlock(Protocol):
    """Cells whose counts are bounded together."""

    def best(self, gains: Sequence[Gain]) -> Allocation:
        """The greatest total gain of any instance."""
        ...

    def instance(self, empty: Sequence[bool], needed: int | None = None) -> tuple[int, ...] | None:
        """Counts of an instance without rows in the `empty` cells and with a row in cell `needed`; None if there is none.

        No counts at all where time ran out before that was known: callers take it as possible, which only widens a range.
        """
        ...

    def prices(self, gains: Sequence[float]) -> tuple[dict[int, float], dict[int, float]]:
        """By constraint: what one row more in its upper bound, and one row less in its lower bound, adds to the total gain."""
        ...


@dataclass(frozen=True, slots=True)
class Independent:
    """Cells with bounds of their own: constraints that touch no other one. The greedy choice is optimal."""

    low: tuple[int, ...]
    high: tuple[int | None, ...]

    def best(self, gains: Sequence[Gain]) -> Allocation:
        """Law: the greatest total is the sum of `gain * high` where a row gains and `gain * low` where it loses."""
        counts = []
        total: int | None = 0
        for gain, low, high in zip(gains, self.low, self.high, strict=True):
            count = low if gain is not None and gain <= 0 else high
            if count is None or (gain is None and count):
                total = None
                count = max(low, 1)
            elif total is not None and gain is not None:
                total += gain * count
            counts.append(count)
        return Allocation(total, tuple(counts))

    def instance(self, empty: Sequence[bool], needed: int | None = None) -> tuple[int, ...] | None:
        if any(must and low for must, low in zip(empty, self.low, strict=True)):
            return None
        counts = list(self.low)
        if needed is not None:
            if self.high[needed] == 0 or empty[needed]:
                return None
            counts[needed] = max(1, counts[needed])
        return tuple(counts)

    def prices(self, gains: Sequence[float]) -> tuple[dict[int, float], dict[int, float]]:
        upper = {place: gain for place, gain in enumerate(gains) if gain > 0 and self.high[place] is not None}
        lower = {place: -gain for place, gain in enumerate(gains) if gain < 0 and self.low[place] > 0}
        return upper, lower
