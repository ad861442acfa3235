"""Accuracy on two to five columns: a tree that splits its worst leaf, with samples per leaf, beside a balanced k-d tree of exact
aggregates with one uniform sample for what they leave open (KD-US of the seed), at equal tuples per query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.report import Record
from benchmarks.synopses.data import several_columns
from nearly.synopsis.build.drafting import Draft, LeafCounts, Shape, draft, draft_for, finished
from nearly.synopsis.partition.several_columns import MaximumVariance, grow
from nearly.synopsis.query.estimates import answer
from nearly.synopsis.query.reading import TreeReading
from nearly.synopsis.structure.rows import Floats, Mask, Rows, tickets_of
from nearly.synopsis.structure.state import TreeState
from nearly.synopsis.structure.statistics import COUNT, SUM, scales_for
from nearly.synopsis.structure.tree import Box, Condition

ROWS = 1_000_000
LEAVES = 1024
RATE = 0.005
DRAWS = 4
"""Independent samples over which coverage is averaged: the queries of one draw share its leaves."""
SMALLEST_COUNT = 100
"""Queries with fewer rows say little about either side."""


@dataclass(frozen=True, slots=True)
class UniformOverTree:
    """Covered nodes are exact; rows of cut leaves are estimated by N/K times their sum in a uniform sample of K rows."""

    reading: TreeReading
    sample: Rows
    rows: int

    def sum(self, box: Box) -> tuple[float, float]:
        """The estimate and half its interval."""
        frontier = self.reading.frontier(box)
        covered = self.reading.node_statistics[frontier.covered].sum(axis=0)
        exact = float(covered[SUM] + self.reading.scales.centre * covered[COUNT])
        leaf = self.reading.scales.tree.leaf_of(self.sample.coordinates)
        open_ = np.isin(leaf, frontier.partial) & _inside(self.sample, box)
        response = np.where(open_, self.sample.values, 0.0) * self.rows
        return exact + float(response.mean()), 1.96 * float(response.std()) / np.sqrt(len(self.sample))


def measure(queries: int, size: int) -> Iterator[Record]:
    coordinates, values = several_columns(size)
    identity = np.arange(len(values), dtype=np.uint64)
    budget = round(RATE * len(values))
    for dimensions in range(2, 6):
        draws = [Rows(coordinates[:dimensions], values, identity, tickets_of(identity, draw)) for draw in range(DRAWS)]
        rows = draws[0]
        cut = _cut_share(TreeReading(_build(rows, dimensions, LEAVES * 2)), rows)
        mine = [TreeReading(_build(each, dimensions, round(budget / cut))) for each in draws]
        chosen = np.random.default_rng(14).choice(len(rows), budget, replace=False)
        other = UniformOverTree(TreeReading(_balanced(rows, dimensions)), rows.take(chosen), len(rows))
        yield _compare(rows, mine, other, dimensions, queries)


def _compare(rows: Rows, mine: Sequence[TreeReading], other: UniformOverTree, dimensions: int, queries: int) -> Record:
    """Errors of the first draw; coverage and violations of the certain bounds over all."""
    rng = np.random.default_rng(13)
    errors, widths, processed, covered, broken = [], [], [], 0, 0
    for _ in range(queries):
        box = _box(rows.coordinates, rng)
        inside = _inside(rows, box)
        if inside.sum() < SMALLEST_COUNT:
            continue
        truth = float(rows.values[inside].sum())
        every, (value, half) = [answer(reading, "sum", box, 0.95) for reading in mine], other.sum(box)
        found = every[0]
        errors.append([abs(found.value - truth) / truth, abs(value - truth) / truth])
        widths.append([(found.high - found.low) / 2 / truth, half / truth])
        processed.append(found.processed / len(rows))
        covered += sum(each.low <= truth <= each.high for each in every)
        broken += sum(not each.hard_low <= truth <= each.hard_high for each in every)
    error, width = np.median(errors, axis=0), np.median(widths, axis=0)
    return {
        "columns": dimensions, "leaves": mine[0].scales.tree.leaves, "queries": len(errors),
        "median error %": 100 * float(error[0]),
        "KD-US error %": 100 * float(error[1]), "interval %": 100 * float(width[0]), "KD-US interval %": 100 * float(width[1]),
        "processed %": 100 * float(np.mean(processed)), "KD-US processed %": 100 * RATE,
        "stored %": 100 * len(mine[0].sample) / len(rows),
        "coverage": covered / len(errors) / len(mine), "hard failures": float(broken),
    }  # fmt: skip


def _cut_share(reading: TreeReading, rows: Rows) -> float:
    """The share of leaves that a query cuts, on average: with it, storage is set so that both sides look at as many tuples."""
    rng = np.random.default_rng(15)
    boxes = [_box(rows.coordinates, rng) for _ in range(150)]
    cut = [len(reading.frontier(box).partial) for box in boxes if _inside(rows, box).sum() >= SMALLEST_COUNT]
    return float(np.mean(cut)) / reading.scales.tree.leaves


def _inside(rows: Rows, box: Box) -> Mask:
    inside = np.ones(len(rows), bool)
    for each in box:
        inside &= (rows.coordinates[each.dimension] >= each.low) & (rows.coordinates[each.dimension] <= each.high)
    return inside


def _box(coordinates: Floats, rng: np.random.Generator) -> Box:
    """A box between two random rows, as in one column."""
    corners = np.sort(coordinates[:, rng.integers(0, coordinates.shape[1], 2)], axis=1)
    return tuple(Condition(place, low, high) for place, (low, high) in enumerate(corners.tolist()))


def _planning(rows: Rows, shape: Shape) -> Rows:
    return rows.take(np.unique(np.random.default_rng(0).integers(0, len(rows), shape.optimisation_rows)))


def _build(rows: Rows, dimensions: int, target: int) -> TreeState:
    shape = Shape(tuple(range(dimensions)), LEAVES, target)
    return _counted(draft(shape, _planning(rows, shape), len(rows)), rows)


def _balanced(rows: Rows, dimensions: int) -> TreeState:
    """Always the largest leaf is split."""
    shape = Shape(tuple(range(dimensions)), LEAVES, LEAVES)
    sample = _planning(rows, shape)
    tree = grow(MaximumVariance(sample.coordinates, sample.values, "count"), shape.columns, LEAVES)
    return _counted(draft_for(shape, sample, len(rows), scales_for(tree, sample), np.ones(len(sample))), rows)


def _counted(plan: Draft, rows: Rows) -> TreeState:
    part = LeafCounts.nothing(plan)
    part.add(plan, rows)
    return finished(plan, part)
