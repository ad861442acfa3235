"""How many missing rows lie in each cell: the integer programme behind every range, in blocks that do not influence each other.

A block has cells and bounds on sums of their counts. It answers two questions exactly: what is the greatest total gain when a row
in cell i gains g_i, and is there an instance at all when some cells must stay empty?

    maximise    sum_i gain_i x_i
    subject to  low_j <= sum { x_i : cell i in predicate j } <= high_j      for every constraint j,  x_i a natural number

Constraints that touch no other one are solved greedily. Others go to HiGHS, and what it returns in floating point is rounded to
whole counts, verified, and valued with exact arithmetic. A doubtful cell counts for no upper bound and for every lower bound that
it may help: each instance of the true programme is one of this programme, so its optimum is a bound, if not a tight one. The same
holds for the dual bound that a solver has when its time is over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from nearly.algebra.solver import INFEASIBLE, integer_minimum, linear_minimum
from nearly.missing.programmes.cells import Cell, TimeLimit

EXACT = 2.0**50
"""Whole objective values up to here are exact in the solver, with room for its tolerances."""
RELATIVE = 1e-9
"""Beyond that, an objective is taken as reached when solver and exact value agree to this fraction."""

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


@dataclass(frozen=True)
class Programme:
    """The cells of one component and the row bounds of its constraints."""

    cells: tuple[Cell, ...]
    low: tuple[int, ...]
    high: tuple[int | None, ...]
    deadline: TimeLimit

    def best(self, gains: Sequence[Gain]) -> Allocation:
        """The greatest total gain of any instance."""
        unlimited = self._unlimited(gains)
        if unlimited is not None:
            return unlimited
        kept = self._undominated(gains)
        if not kept:
            return Allocation(0, (0,) * len(self.cells))
        return self._solved([0 if gain is None else gain for gain in gains], kept)

    def instance(self, empty: Sequence[bool], needed: int | None = None) -> tuple[int, ...] | None:
        """Counts of an instance without rows in the `empty` cells and with a row in cell `needed`; None if there is none.

        No counts at all where time ran out before that was known: callers take it as possible, which only widens a range.
        """
        kept = [place for place, must in enumerate(empty) if not must]
        if not any(self.low) and needed is None:
            return (0,) * len(self.cells)
        if not kept or (needed is not None and empty[needed]):
            return None
        found = self._milp(np.zeros(len(kept)), kept, needed)
        if found.x is None:
            return None if found.status == INFEASIBLE else ()
        return self._rounded(found.x, kept) or ()

    def prices(self, gains: Sequence[float]) -> tuple[dict[int, float], dict[int, float]]:
        """By constraint: what one row more in its upper bound, and one less in its lower one, adds to the relaxed optimum."""
        kept = list(range(len(self.cells)))
        matrix, floors, ceilings = self._matrix(kept)
        capped = [index for index, high in enumerate(self.high) if high is not None]
        floored = [index for index, low in enumerate(self.low) if low > 0]
        signs = np.array([1.0] * len(capped) + [-1.0] * len(floored))
        limits = np.where(np.isfinite(ceilings), ceilings, -floors)
        relaxed = linear_minimum(-np.asarray(gains), matrix * signs[:, None], limits, 0.0, np.inf)
        if relaxed.status != 0 or not len(signs):
            return {}, {}
        prices = [-float(price) for price in relaxed.ineqlin.marginals]
        return dict(zip(capped, prices[: len(capped)], strict=True)), dict(zip(floored, prices[len(capped) :], strict=True))

    def _unlimited(self, gains: Sequence[Gain]) -> Allocation | None:
        """An instance whose total has no limit: a row of unlimited gain, or gaining rows without a limit on their number."""
        for place, (gain, cell) in enumerate(zip(gains, self.cells, strict=True)):
            endless = gain is not None and gain > 0 and self._limit(cell) is None
            if gain is None or endless:
                counts = self.instance([False] * len(self.cells), place)
                if counts is not None:
                    return Allocation(None, counts or (0,) * len(self.cells), proven=bool(counts))
        return None

    def _undominated(self, gains: Sequence[Gain]) -> list[int]:
        """Cells that an optimal instance can be made of; those of unlimited gain are known to hold no row.

        A row may always move to a cell that gains no less, counts for no further upper bound and for no fewer lower bounds. So
        cells dominated in this sense can stay empty, as can those that lose where no lower bound asks for them. A doubtful cell
        without sure members has a limit of its own and so dominates none.
        """
        upper, lower = self._masks
        finite = [(gain, place) for place, gain in enumerate(gains) if gain is not None]
        order = sorted(finite, key=lambda each: (-each[0], len(self.cells[each[1]].members)))
        kept: list[int] = []
        rivals = 0
        rival_upper, rival_lower = np.empty_like(upper), np.empty_like(lower)
        for gain, place in order:
            if gain <= 0 and not lower[place].any():
                continue
            fewer = ~(rival_upper[:rivals] & ~upper[place]).any(axis=1)
            helps = ~(lower[place] & ~rival_lower[:rivals]).any(axis=1)
            if (fewer & helps).any():
                continue
            kept.append(place)
            if self.cells[place].members:
                rival_upper[rivals], rival_lower[rivals] = upper[place], lower[place]
                rivals += 1
        return sorted(kept)

    @cached_property
    def _masks(self) -> tuple[Any, Any]:
        """For each cell, the constraints whose upper bound it counts for, and those whose lower bound it may help."""
        upper = np.zeros((len(self.cells), len(self.low)), dtype=bool)
        lower = np.zeros_like(upper)
        for place, cell in enumerate(self.cells):
            upper[place, list(cell.members)] = True
            lower[place, [*cell.members, *cell.doubtful]] = True
        upper &= np.array([high is not None for high in self.high], dtype=bool)
        lower &= np.array([low > 0 for low in self.low], dtype=bool)
        return upper, lower

    def _solved(self, gains: Sequence[int], kept: Sequence[int]) -> Allocation:
        divisor = math.gcd(*(gains[place] for place in kept)) or 1
        costs = [-(gains[place] // divisor) for place in kept]
        largest = max(map(abs, costs)) or 1
        scale = 1.0 if largest < EXACT / 2**20 else largest / 2**30
        found = self._milp(np.array([cost / scale for cost in costs]), kept)
        counts = None if found.x is None else self._rounded(found.x, kept)
        value = None if counts is None else sum(gains[place] * counts[place] for place in kept)
        bound = self._bound(found, scale, kept, costs) * divisor
        if counts is not None and value is not None and _reached(value, bound, divisor, exact=scale == 1.0):
            return Allocation(value, counts)
        if bound == math.inf:
            return Allocation(None, counts or (0,) * len(self.cells), proven=False)
        outward = math.ceil(bound + RELATIVE * abs(bound))
        return Allocation(max(outward, value if value is not None else outward), counts or (0,) * len(self.cells), proven=False)

    def _milp(self, cost: Any, kept: Sequence[int], needed: int | None = None) -> Any:
        matrix, floors, ceilings = self._matrix(kept)
        limits = self._limits(kept)
        least = np.zeros(len(kept))
        if needed is not None:
            least[list(kept).index(needed)] = 1
        if (least > limits).any():
            limits = np.maximum(limits, least)
        return integer_minimum(cost, matrix, floors, ceilings, least, limits, self.deadline.left)

    def _matrix(self, kept: Sequence[int]) -> tuple[Any, Any, Any]:
        """One row for each bound: upper bounds over the cells surely inside, lower bounds over those perhaps inside."""
        upper, lower = (mask[list(kept)] for mask in self._masks)
        capped = [index for index, high in enumerate(self.high) if high is not None]
        floored = [index for index, low in enumerate(self.low) if low > 0]
        matrix = np.concatenate([upper[:, capped].T, lower[:, floored].T]).astype(float)
        floors = np.array([-np.inf] * len(capped) + [float(self.low[index]) for index in floored])
        ceilings = np.array([float(self.high[index] or 0) for index in capped] + [np.inf] * len(floored))
        return matrix, floors, ceilings

    def _limits(self, kept: Sequence[int]) -> Any:
        """The most rows that each cell can hold by itself."""
        limits = (self._limit(self.cells[place]) for place in kept)
        return np.array([np.inf if limit is None else float(limit) for limit in limits])

    def _limit(self, cell: Cell) -> int | None:
        """A row of a cell without sure members is in some doubtful one, so their bounds together limit it."""
        highs = [self.high[index] for index in cell.members or cell.doubtful]
        finite = [high for high in highs if high is not None]
        if not cell.members:
            return sum(finite) if len(finite) == len(highs) else None
        return min(finite, default=None)

    def _rounded(self, found: Any, kept: Sequence[int]) -> tuple[int, ...] | None:
        """Whole counts, when they satisfy every bound exactly."""
        counts = [0] * len(self.cells)
        for place, value in zip(kept, found, strict=True):
            counts[place] = round(value)
        sure, perhaps = [0] * len(self.low), [0] * len(self.low)
        for cell, count in zip(self.cells, counts, strict=True):
            for index in cell.members:
                sure[index] += count
                perhaps[index] += count
            for index in cell.doubtful:
                perhaps[index] += count
        fits = all(high is None or total <= high for total, high in zip(sure, self.high, strict=True))
        return tuple(counts) if fits and all(total >= low for total, low in zip(perhaps, self.low, strict=True)) else None

    def _bound(self, found: Any, scale: float, kept: Sequence[int], costs: Sequence[int]) -> float:
        """A value that no instance exceeds: the solver's, the relaxation's when it has none, or that of all cells full."""
        dual = getattr(found, "mip_dual_bound", None)
        if dual is not None and math.isfinite(dual):
            return float(-dual * scale)
        matrix, _, ceilings = self._matrix(kept)
        limits = self._limits(kept)
        finite = np.isfinite(ceilings)
        scaled = np.array([cost / scale for cost in costs])
        relaxed = linear_minimum(scaled, matrix[finite], ceilings[finite], 0.0, limits)
        if relaxed.status == 0:
            return float(-relaxed.fun * scale)
        return float(sum(-cost * limit for cost, limit in zip(costs, limits, strict=True) if cost < 0))


AllocationBlock: TypeAlias = Independent | Programme
"""Cells whose counts are bounded together."""


def _reached(value: int, bound: float, divisor: int, *, exact: bool) -> bool:
    """Whether the value of an instance is the optimum: totals are multiples of the divisor, so a smaller gap is none."""
    if exact and abs(bound) < EXACT * divisor:
        return bound < value + 0.999 * divisor
    return bound <= value + RELATIVE * max(1.0, abs(value))
