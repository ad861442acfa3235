"""Building a state in two passes: a sample decides the tree, then every row is counted in its leaf and a few are sampled.

Pieces of a pass are merged by `LeafCounts.merge`, so rows may come in any order, from any number of tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearly.errors import SchemaError
from nearly.synopsis.partition import one_column
from nearly.synopsis.partition.one_column import Prefixes
from nearly.synopsis.partition.several_columns import MaximumVariance, grow
from nearly.synopsis.structure.rows import Floats, Integers, Rows, concatenate, empty
from nearly.synopsis.structure.state import Leaves, TreeState
from nearly.synopsis.structure.statistics import Scales, scales_for
from nearly.synopsis.structure.stored_rows import Outliers, Sample, arranged, lowest_tickets
from nearly.synopsis.structure.tree import Tree, among, from_cuts, single_leaf

SAMPLES_PER_LEAF = 32
"""Rows of the optimisation sample for each leaf of a tree on one column."""
SLACK = 1.25
"""The second pass offers this many times the wanted samples, because leaf sizes are only estimated before it."""
MOST_PLANNING_ROWS = 4096
"""The dynamic program takes time in proportion; more rows hardly change its cuts."""
MOST_LEAVES = 1 << 16
OUTLIERS = 0.25
MOST_OUTLIERS = 64
"""Share of the stored rows that are outliers of their leaves, and how many a leaf keeps at most."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a tree is to be made: which columns split it, how many leaves, how many sampled rows in all, by which partitioning, and
    for which of the measures."""

    columns: tuple[int, ...]
    leaves: int
    target: int
    method: str = "sampled"
    focus: str = "all"
    pooled: bool = False
    measure: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.leaves <= MOST_LEAVES:
            raise SchemaError(f"leaves={self.leaves} is not between 1 and {MOST_LEAVES}")

    @property
    def outliers(self) -> int:
        """How many outliers each leaf keeps."""
        return min(MOST_OUTLIERS, int(OUTLIERS * self.target / self.leaves))

    @property
    def drawn(self) -> int:
        """How many of the stored rows are drawn at random."""
        return self.target - self.outliers * self.leaves

    @property
    def optimisation_rows(self) -> int:
        return SAMPLES_PER_LEAF * self.leaves if len(self.columns) == 1 else max(4096, 16 * self.leaves)


def plan_tree(shape: Shape, sample: Rows, weights: Floats | None = None) -> Tree:
    """The tree that suits a sample of the rows; with weights, each sampled row stands for so many."""
    dimensions = len(sample.coordinates)
    if not len(sample) or shape.leaves == 1 or not shape.columns:
        return single_leaf(dimensions)
    equal_samples = not shape.pooled
    if len(shape.columns) > 1:
        measure = MaximumVariance(sample.coordinates, sample.values, shape.focus, equal_samples, weights)
        return grow(measure, shape.columns, shape.leaves)
    column = sample.coordinates[shape.columns[0]]
    most = one_column.MOST_GROUPS_EXHAUSTIVE if shape.method in ("optimal", "monotone") else MOST_PLANNING_ROWS
    chosen = np.argsort(column, kind="stable")
    if len(chosen) > most:
        chosen = chosen[np.linspace(0, len(chosen) - 1, most).astype(np.int64)]
    chosen_weights = None if weights is None else weights[chosen]
    prefixes = Prefixes(column[chosen], sample.values[chosen], shape.focus, equal_samples, chosen_weights)
    return from_cuts(one_column.cuts(prefixes, shape.leaves, shape.method), shape.columns[0], dimensions)


@dataclass(frozen=True, slots=True)
class Draft:
    """A tree before its rows were read: the scales, and for each leaf below which ticket a row is offered to the sample.

    With `only`, rows of these leaves are counted and no others.
    """

    scales: Scales
    quota: Integers
    ceiling: Floats
    shape: Shape
    only: slice | None = None


def draft(shape: Shape, sample: Rows, rows: int) -> Draft:
    """What the second pass needs, from the sample of the first and the number of rows."""
    return draft_for(shape, sample, rows, scales_for(plan_tree(shape, sample), sample), np.ones(len(sample)))


def draft_for(shape: Shape, sample: Rows, rows: int, scales: Scales, weights: Floats) -> Draft:
    """The same for a tree that is given; `weights` say how many rows each sampled one stands for."""
    tree = scales.tree
    leaf = tree.leaf_of(sample.coordinates)
    share = np.bincount(leaf, weights, tree.leaves) / max(float(weights.sum()), 1.0)
    quota = _quotas(shape, share * rows)
    spread = 3.0 * np.sqrt(np.maximum(share * len(sample), 1.0))
    fewest = np.maximum(share * len(sample) - spread, 0.5) / max(len(sample), 1) * rows
    ceiling = np.minimum(1.0, SLACK * (quota + 4.0 * np.sqrt(quota) + 4.0) / np.maximum(fewest, 1.0))
    if shape.pooled:
        ceiling = np.full(tree.leaves, min(1.0, 1.5 * _drawn_of(shape, rows) / max(rows, 1)))
    return Draft(scales, quota, ceiling, shape)


def _drawn_of(shape: Shape, rows: float) -> int:
    """How many rows are drawn: all of them where that was asked for."""
    return shape.drawn if shape.target < rows - 0.5 else shape.target


def _quotas(shape: Shape, expected: Floats) -> Integers:
    """Equal numbers of samples; what small leaves cannot use goes to the others."""
    quota = np.zeros(len(expected))
    left, open_ = float(_drawn_of(shape, float(expected.sum()))), np.ones(len(expected), bool)
    while open_.any() and left > 0:
        quota[open_] += left / open_.sum()
        full = open_ & (quota >= 2.0 * np.maximum(expected, 1.0))
        left = float((quota[full] - 2.0 * np.maximum(expected[full], 1.0)).sum())
        quota[full] = 2.0 * np.maximum(expected[full], 1.0)
        if not full.any():
            break
        open_ &= ~full
    return np.maximum(np.ceil(quota), 2).astype(np.int64)


@dataclass(slots=True)
class LeafCounts:
    """What one task of the second pass found."""

    leaves: Leaves
    outliers: Outliers
    offered: list[Rows]

    @classmethod
    def nothing(cls, plan: Draft) -> LeafCounts:
        return cls(Leaves.nothing(plan.scales), Outliers.nothing(plan.scales, plan.shape.outliers), [])

    def add(self, plan: Draft, rows: Rows) -> None:
        """Count rows, keep outliers, and all rows whose ticket is low enough."""
        leaf = plan.scales.tree.leaf_of(rows.coordinates)
        if plan.only is not None:
            inside = among(leaf, plan.only)
            rows, leaf = rows.take(inside), leaf[inside]
        self.offered.append(rows.take(rows.ticket < plan.ceiling[leaf]))
        self.leaves.come(plan.scales, rows, leaf)
        self.outliers, rest, leaf = self.outliers.with_rows(plan.scales, rows, leaf)
        self.leaves.count(plan.scales, rest, leaf)

    def merge(self, plan: Draft, other: LeafCounts) -> None:
        self.leaves.merge(other.leaves)
        self.outliers, rest, leaf = self.outliers.merged(plan.scales, other.outliers)
        self.leaves.count(plan.scales, rest, leaf)
        self.offered += other.offered


def finished(plan: Draft, part: LeafCounts) -> TreeState:
    """The state, once all parts are merged."""
    outliers, rest, leaf = part.outliers.cleared(plan.scales, plan.shape.outliers)
    part.leaves.count(plan.scales, rest, leaf)
    offered, leaf = _offered(plan, part)
    drawn = ~outliers.holds(plan.scales, offered, leaf)
    return TreeState(plan.scales, part.leaves, _drawn(plan, offered.take(drawn), leaf[drawn]), outliers)


def _offered(plan: Draft, part: LeafCounts) -> tuple[Rows, Integers]:
    offered = concatenate(part.offered) if part.offered else empty(plan.scales.tree.dimensions)
    return offered, plan.scales.tree.leaf_of(offered.coordinates)


def _drawn(plan: Draft, offered: Rows, leaf: Integers) -> Sample:
    if plan.shape.pooled:
        return arranged(offered, leaf, plan.ceiling, plan.shape.drawn, pooled=True).within()
    return lowest_tickets(offered, leaf, plan.quota, plan.ceiling, plan.shape.drawn)
