"""Exact aggregates of the leaves, and of the nodes above them.

Law: statistics of a union of disjoint bags are the sums of their statistics, so inserts add, deletes subtract and shards merge.
Values are kept as deviations from one constant centre: sums of squares of large, nearly equal numbers would lose their digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearly.synopsis.structure.rows import Floats, Integers, Rows
from nearly.synopsis.structure.tree import Tree

ROWS, COUNT, SUM, SQUARES, CUBES, FOURTHS, POSITIVE = range(7)
"""Columns: all rows; those with a value; sums of four powers of deviations from the centre; sum of the positive values."""
FIXED = 7
SIZES, SQUARE_SIZES, UNEVEN = range(3)
"""Columns of a turnover: what all absolute values and deviations ever came to; their squares; how often a value was not whole."""
TURNOVER = 3


@dataclass(frozen=True, slots=True)
class Scales:
    """What turns rows into statistics: the tree, the centre, each leaf's own scale of the split columns, and its middle value.

    A row's position in its leaf, u = clip((c - origin) / span, 0, 1), has a leaf total that is known exactly; the estimators
    calibrate samples with it. Values far from the leaf's middle are its outliers.
    """

    tree: Tree
    centre: float
    origin: Floats
    span: Floats
    middle: Floats

    @property
    def auxiliaries(self) -> tuple[int, ...]:
        """The columns whose positions are kept."""
        return self.tree.split_dimensions

    def positions(self, coordinates: Floats, leaf: Integers) -> Floats:
        """Position of each row in its leaf, one line per split column."""
        lines = [
            np.clip((coordinates[each] - self.origin[leaf, place]) / self.span[leaf, place], 0.0, 1.0)
            for place, each in enumerate(self.auxiliaries)
        ]
        return np.array(lines).reshape(len(lines), len(leaf))

    @property
    def width(self) -> int:
        return FIXED + len(self.auxiliaries)

    def distances(self, values: Floats, leaf: Integers) -> Floats:
        """How far values lie from the middle of their leaf; NaN for a null."""
        found: Floats = np.abs(values - self.middle[leaf])
        return found


def scales_for(tree: Tree, sample: Rows, centre: float | None = None) -> Scales:
    """A scales whose scales come from a sample; the centre is a whole number, so that sums of whole numbers stay exact."""
    if centre is None:
        known = sample.values[~np.isnan(sample.values)]
        centre = float(np.round(known.mean())) if known.size else 0.0
    leaf = tree.leaf_of(sample.coordinates)
    shape = (tree.leaves, len(tree.split_dimensions))
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    for place, dimension in enumerate(tree.split_dimensions):
        column = sample.coordinates[dimension]
        finite = np.isfinite(column)
        np.minimum.at(low[:, place], leaf[finite], column[finite])
        np.maximum.at(high[:, place], leaf[finite], column[finite])
    usable = high > low
    return Scales(tree, centre, np.where(usable, low, 0.0), np.where(usable, high - low, 1.0), _middles(tree, sample, leaf, centre))


def _middles(tree: Tree, sample: Rows, leaf: Integers, centre: float) -> Floats:
    """The median of each leaf's sampled values; the centre where there is none."""
    known = ~np.isnan(sample.values)
    order = np.lexsort((sample.values[known], leaf[known]))
    values, starts = sample.values[known][order], np.searchsorted(leaf[known][order], np.arange(tree.leaves + 1))
    found = np.full(tree.leaves, centre)
    some = np.diff(starts) > 0
    found[some] = values[((starts[:-1] + starts[1:]) // 2)[some]]
    return found


def leaf_statistics(scales: Scales, rows: Rows, leaf: Integers) -> Floats:
    """The statistics that these rows add to each leaf: one line per leaf."""
    leaves = scales.tree.leaves
    known = ~np.isnan(rows.values)
    complete = bool(known.all())
    values = rows.values if complete else rows.values[known]
    of_values = leaf if complete else leaf[known]
    delta = values - scales.centre
    found = np.empty((leaves, scales.width))
    found[:, ROWS] = np.bincount(leaf, minlength=leaves)
    found[:, COUNT] = found[:, ROWS] if complete else np.bincount(of_values, minlength=leaves)
    found[:, SUM] = np.bincount(of_values, delta, leaves)
    square = delta * delta
    found[:, SQUARES] = np.bincount(of_values, square, leaves)
    found[:, CUBES] = np.bincount(of_values, square * delta, leaves)
    found[:, FOURTHS] = np.bincount(of_values, square * square, leaves)
    found[:, POSITIVE] = np.bincount(of_values, np.maximum(values, 0.0), leaves)
    for place, line in enumerate(scales.positions(rows.coordinates, leaf)):
        found[:, FIXED + place] = np.bincount(leaf, line, leaves)
    return found


def statistics_of(values: Floats, centre: float) -> Floats:
    """The statistics of some rows together, positions left out."""
    known = values[~np.isnan(values)]
    delta = known - centre
    square = delta * delta
    sums = (delta.sum(), square.sum(), (square * delta).sum(), (square * square).sum(), np.maximum(known, 0.0).sum())
    return np.array([len(values), len(known), *sums])


def turnover(scales: Scales, rows: Rows, leaf: Integers) -> Floats:
    """What rows that come or go add to the turnover of each leaf: sums can be wrong by their rounding, which grows with it."""
    known = ~np.isnan(rows.values)
    values, leaf = (rows.values, leaf) if known.all() else (rows.values[known], leaf[known])
    delta, leaves = values - scales.centre, scales.tree.leaves
    sizes = np.bincount(leaf, np.abs(values) + np.abs(delta), leaves)
    uneven = np.bincount(leaf, np.trunc(values) != values, leaves)
    return np.stack([sizes, np.bincount(leaf, delta * delta, leaves), uneven], axis=1)


def roll_up(tree: Tree, of_leaves: Floats, combine: np.ufunc) -> Floats:
    """The values of all nodes from those of the leaves, by a commutative combination such as `np.add`."""
    of_nodes = np.empty((tree.nodes, *of_leaves.shape[1:]))
    of_nodes[tree.leaf_nodes] = of_leaves
    for level in tree.levels:
        of_nodes[level] = combine(of_nodes[level + 1], of_nodes[tree.right[level]])
    return of_nodes


@dataclass(slots=True)
class Hull:
    """The smallest and largest coordinates seen in each leaf. Deletes do not shrink it: it stays an outer bound."""

    low: Floats
    high: Floats

    @classmethod
    def nothing(cls, leaves: int, dimensions: int) -> Hull:
        return cls(np.full((leaves, dimensions), np.inf), np.full((leaves, dimensions), -np.inf))

    def include(self, coordinates: Floats, leaf: Integers) -> None:
        """Widen to hold these rows; only rows that stick out are looked at twice."""
        for dimension, column in enumerate(coordinates):
            below = column < self.low[leaf, dimension]
            above = column > self.high[leaf, dimension]
            np.minimum.at(self.low[:, dimension], leaf[below], column[below])
            np.maximum.at(self.high[:, dimension], leaf[above], column[above])

    def merge(self, other: Hull) -> None:
        np.minimum(self.low, other.low, out=self.low)
        np.maximum(self.high, other.high, out=self.high)


ONE, VALUE, DELTA, SQUARE = range(4)
"""Responses of a matching row: 1; v, whether it has a value; v times its deviation from the centre; v times that squared."""
_EXPONENTS = (0, 0, 1, 2)


def product(one: int, two: int) -> int:
    """The place of the product of two responses among 1, v, v*d, v*d^2, v*d^3, v*d^4, for a deviation d."""
    return 0 if one == two == ONE else 1 + _EXPONENTS[one] + _EXPONENTS[two]
