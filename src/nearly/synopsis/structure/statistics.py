"""Exact aggregates of the leaves, and of the nodes above them.

Law: statistics of a union of disjoint bags are the sums of their statistics, so inserts add, deletes subtract and shards merge.
Values are kept as deviations from one constant centre: sums of squares of large, nearly equal numbers would lose their digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearly.synopsis.structure.rows import Floats, Integers, Rows
from nearly.synopsis.structure.tree import Tree

ROWS, COUNT, SUM, SQUARES, POSITIVE = range(5)
"""Columns: all rows; those with a value; sum and sum of squares of deviations from the centre; sum of the positive values."""
FIXED = 5


@dataclass(frozen=True, slots=True)
class Frame:
    """What turns rows into statistics: the tree, the centre, and each leaf's own scale of the split columns.

    A row's position in its leaf, u = clip((c - origin) / span, 0, 1), has a leaf total that is known exactly; the estimators
    calibrate samples with it.
    """

    tree: Tree
    centre: float
    origin: Floats
    span: Floats

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


def frame_for(tree: Tree, sample: Rows, centre: float | None = None) -> Frame:
    """A frame whose scales come from a sample; the centre is a whole number, so that sums of whole numbers stay exact."""
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
    return Frame(tree, centre, np.where(usable, low, 0.0), np.where(usable, high - low, 1.0))


def leaf_statistics(frame: Frame, rows: Rows, leaf: Integers) -> Floats:
    """The statistics that these rows add to each leaf: one line per leaf."""
    leaves = frame.tree.leaves
    known = ~np.isnan(rows.values)
    complete = bool(known.all())
    values = rows.values if complete else rows.values[known]
    of_values = leaf if complete else leaf[known]
    delta = values - frame.centre
    found = np.empty((leaves, frame.width))
    found[:, ROWS] = np.bincount(leaf, minlength=leaves)
    found[:, COUNT] = found[:, ROWS] if complete else np.bincount(of_values, minlength=leaves)
    found[:, SUM] = np.bincount(of_values, delta, leaves)
    found[:, SQUARES] = np.bincount(of_values, delta * delta, leaves)
    found[:, POSITIVE] = np.bincount(of_values, np.maximum(values, 0.0), leaves)
    for place, line in enumerate(frame.positions(rows.coordinates, leaf)):
        found[:, FIXED + place] = np.bincount(leaf, line, leaves)
    return found


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

    @classmethod
    def of_cells(cls, tree: Tree) -> Hull:
        """The cells themselves: what is known when not every row was seen."""
        low, high = tree.cells
        return cls(low[tree.leaf_nodes].copy(), high[tree.leaf_nodes].copy())

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
