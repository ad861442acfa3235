"""Small synopses in memory, with the rows they were built from as the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nearly.synopsis.build.definition import TablePlace
from nearly.synopsis.build.drafting import Draft, LeafCounts, Shape, draft, finished
from nearly.synopsis.query.estimates import Estimate, answer
from nearly.synopsis.query.reading import TreeReading
from nearly.synopsis.structure.rows import Rows, tickets_of
from nearly.synopsis.structure.state import Changes, TreeState, apply, concerning
from nearly.synopsis.structure.tree import Box, Condition
from nearly.synopsis.upkeep.live import LiveTree


def rows_of(coordinates: np.ndarray, values: np.ndarray, first: int = 0, seed: int = 0) -> Rows:
    """Rows with identities from `first` on."""
    identity = np.arange(first, first + len(values), dtype=np.uint64)
    return Rows(np.atleast_2d(coordinates).astype(float), np.asarray(values, float), identity, tickets_of(identity, seed))


def built(rows: Rows, shape: Shape, seed: int = 0) -> TreeState:
    """A state built in two passes from rows in memory."""
    rng = np.random.default_rng(seed)
    size = min(len(rows), shape.optimisation_rows)
    plan = draft(shape, rows.take(rng.choice(len(rows), size, replace=False)), len(rows))
    part = LeafCounts.nothing(plan)
    for start in range(0, len(rows), 5_000):
        part.add(plan, rows.take(np.arange(start, min(len(rows), start + 5_000))))
    return finished(plan, part)


def at(number: int) -> TablePlace:
    """After so many changes."""
    return TablePlace(number, "")


@dataclass(slots=True)
class History:
    """Rows kept in memory, and the changes since."""

    rows: Rows
    log: list[Changes] = field(default_factory=list)

    def recount(self, draft: Draft, place: TablePlace) -> TreeState:
        part = LeafCounts.nothing(draft)
        part.add(draft, self.rows)
        state = finished(draft, part)
        for changes in self.log[: place.version]:
            apply(state, concerning(changes, draft.scales, draft.only))
        return state


def live_tree(rows: Rows, shape: Shape) -> tuple[LiveTree, History]:
    history = History(rows)
    return LiveTree(shape, built(rows, shape), history.recount, at(0)), history


def ask(reading: TreeReading, aggregate: str, *ranges: tuple[int, float, float], confidence: float = 0.95) -> Estimate:
    return answer(reading, aggregate, tuple(Condition(*each) for each in ranges), confidence)


def inside(rows: Rows, box: Box | Sequence[tuple[int, float, float]]) -> np.ndarray:
    """Which rows lie in a box, by definition."""
    found = np.ones(len(rows), bool)
    for each in box:
        dimension, low, high = (each.dimension, each.low, each.high) if isinstance(each, Condition) else each
        found &= (rows.coordinates[dimension] >= low) & (rows.coordinates[dimension] <= high)
    return found


@dataclass(frozen=True)
class Truth:
    """Aggregates by definition; NaN for SQL's null."""

    values: np.ndarray
    rows: int

    def of(self, aggregate: str) -> float:
        known = self.values[~np.isnan(self.values)]
        count = len(known)
        if aggregate == "rows":
            return self.rows
        if aggregate == "count":
            return count
        if not count or (aggregate.endswith("samp") and count < 2):
            return float("nan")
        spread = 1 if aggregate.endswith("samp") else 0
        return float({
            "sum": np.sum, "avg": np.mean, "min": np.min, "max": np.max,
            "var_samp": lambda v: np.var(v, ddof=spread), "var_pop": lambda v: np.var(v, ddof=spread),
            "stddev_samp": lambda v: np.std(v, ddof=spread), "stddev_pop": lambda v: np.std(v, ddof=spread),
        }[aggregate](known))  # fmt: skip


def truth(rows: Rows, *ranges: tuple[int, float, float]) -> Truth:
    chosen = inside(rows, ranges)
    return Truth(rows.values[chosen], int(chosen.sum()))
