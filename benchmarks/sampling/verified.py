"""The product's own answers against what was measured: the same estimates and intervals, and certain bounds that hold."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pyarrow as pa

from benchmarks.sampling.answers import Stored
from benchmarks.sampling.measures import Asked
from benchmarks.sampling.populations import Floats, Population
from benchmarks.sampling.trials import Trial
from nearly.answer import Answer

CLOSE = 1e-7
"""Sums of doubles in another order differ by less, relative to their size."""

LONGER = {"nested"}
"""Numbers of rows that an estimate picks: the product lengthens their intervals by half-samples, which are not measured here."""


@dataclass(frozen=True, slots=True)
class Verified:
    """Numbers of the product that were compared, those that differ from what was measured, and certain bounds that fail."""

    compared: int = 0
    different: int = 0
    hard_failures: int = 0

    def __add__(self, other: Verified) -> Verified:
        return Verified(self.compared + other.compared, self.different + other.different, self.hard_failures + other.hard_failures)


def verified(stored: Stored, asked: Asked, trials: Mapping[str, Sequence[Trial]], counts: Sequence[int], seeds: int) -> Verified:
    """Have the product answer a query after the same numbers of units, for the first seeds, and compare."""
    found = Verified()
    for seed, lasting in product(range(seeds), (False, True)):
        for look, answer in enumerate(stored.answers(asked.text, seed, counts, lasting=lasting)):
            rows = [0] if asked.by is None else answer.table[asked.by].to_pylist()
            for name in asked.measures:
                trial = trials[name][look]
                ends = (trial.anytime_low, trial.anytime_high) if lasting else (trial.low, trial.high)
                found += _compared(answer, name, replace(trial, low=ends[0], high=ends[1]), seed, rows)
    return found


def _tell(where: str, product: object, mine: object) -> None:
    print(f"{where}: the product has {product}, measured was {mine}", file=sys.stderr, flush=True)


def _compared(answer: Answer, name: str, trial: Trial, seed: int, rows: list[int]) -> Verified:
    """One column of an answer: its cells are those of the trial, moved to where they can be for sure."""
    sides = {side: _floats(getattr(answer, side), name) for side in ("table", "low", "high", "hard_low", "hard_high")}
    estimate = trial.estimate[seed]
    if pa.types.is_integer(answer.table[name].type):  # a number half-way between whole ones may become either
        rounded = np.rint(estimate[rows])
        same = np.abs(sides["table"] - estimate[rows]) <= 0.5 + CLOSE * np.abs(estimate[rows])
        estimate = estimate.copy()
        estimate[rows] = np.where(same, sides["table"], rounded)
    different = 0
    for side, mine in (("table", estimate), ("low", trial.low[seed]), ("high", trial.high[seed])):
        inside = np.fmin(np.fmax(mine[rows], sides["hard_low"]), sides["hard_high"])
        withheld = sides.get(f"hard_{side}", np.full(len(rows), np.nan))  # what holds for sure is shown instead
        expected = np.where(np.isnan(mine[rows]), withheld, inside)
        size = CLOSE * np.abs(estimate[rows])
        apart = ~np.isclose(sides[side], expected, rtol=CLOSE, atol=size, equal_nan=True)
        if name in LONGER and side != "table":
            apart &= ~(sides[side] < expected if side == "low" else sides[side] > expected)
        if apart.any():
            _tell(f"{name}, seed {seed}, {answer.stats['units']} units: {side}", sides[side][apart], expected[apart])
        different += int(apart.sum())
    failures = _outside(trial.truth[seed][rows], sides["hard_low"], sides["hard_high"])
    return Verified(3 * len(rows), different, failures)


def certain_bounds(stored: Stored, population: Population, counts: Sequence[int], seeds: int) -> Verified:
    """Five aggregates, with and without a predicate: how many certain bounds there are, and how many fail."""
    found = Verified()
    everywhere = np.ones(population.rows, dtype=bool)
    for test, rows in (("TRUE", everywhere), (f"x > {population.limit!r}D", population.x > population.limit)):
        values = population.y[rows & ~np.isnan(population.y)]
        truths = {"count": len(values), "sum": values.sum(), "avg": values.mean(), "min": values.min(), "max": values.max()}
        calls = ", ".join(f"{name}(y) AS `{name}`" for name in truths)
        for seed in range(seeds):
            for answer in stored.answers(f"SELECT {calls} FROM t WHERE {test}", seed, counts):
                for name, truth in truths.items():
                    low, high = (_floats(side, name) for side in (answer.hard_low, answer.hard_high))
                    found += Verified(hard_failures=_outside(np.array([truth], dtype=float), low, high))
    return found


def _outside(truth: Floats, low: Floats, high: Floats) -> int:
    """How many truths are not between ends, where there are ends."""
    return int(((truth < low) | (truth > high)).sum())


def _floats(table: pa.Table, name: str) -> Floats:
    return np.asarray(table[name].cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float)
