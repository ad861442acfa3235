"""The state of one tree: aggregates of its leaves, extreme values, outliers and the sample, and how changes move it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nearly.synopsis.structure.extremes import Largest, Outliers
from nearly.synopsis.structure.rows import Floats, Integers, Rows
from nearly.synopsis.structure.sample import Sample
from nearly.synopsis.structure.statistics import TURNOVER, Hull, Scales, leaf_statistics, turnover


@dataclass(slots=True)
class Leaves:
    """What is known of each leaf: `statistics` of its rows without the outliers, the other things of all its rows.

    Law: merging the leaves of two bags of rows gives the leaves of their union.
    """

    statistics: Floats
    turnover: Floats
    hull: Hull
    largest: Largest
    smallest: Largest

    @classmethod
    def nothing(cls, frame: Scales) -> Leaves:
        leaves = frame.tree.leaves
        hull = Hull.nothing(leaves, frame.tree.dimensions)
        return cls(
            np.zeros((leaves, frame.width)), np.zeros((leaves, TURNOVER)), hull, Largest.nothing(leaves), Largest.nothing(leaves)
        )

    def count(self, frame: Scales, rows: Rows, leaf: Integers) -> None:
        """Take rows, none of them an outlier, into the statistics."""
        self.statistics += leaf_statistics(frame, rows, leaf)

    def discount(self, frame: Scales, rows: Rows, leaf: Integers) -> None:
        self.statistics -= leaf_statistics(frame, rows, leaf)

    def come(self, frame: Scales, rows: Rows, leaf: Integers) -> None:
        """New rows, outliers among them."""
        self.turnover += turnover(frame, rows, leaf)
        self.hull.include(rows.coordinates, leaf)
        leaf, values = _known(rows, leaf)
        self.largest.insert(leaf, values)
        self.smallest.insert(leaf, -values)

    def go(self, frame: Scales, rows: Rows, leaf: Integers) -> None:
        """Rows that are deleted, outliers among them."""
        self.turnover += turnover(frame, rows, leaf)
        leaf, values = _known(rows, leaf)
        self.largest.delete(leaf, values)
        self.smallest.delete(leaf, -values)

    def merge(self, other: Leaves) -> None:
        self.statistics += other.statistics
        self.turnover += other.turnover
        self.hull.merge(other.hull)
        self.largest.merge(other.largest)
        self.smallest.merge(other.smallest)


def _known(rows: Rows, leaf: Integers) -> tuple[Integers, Floats]:
    known = ~np.isnan(rows.values)
    return (leaf, rows.values) if known.all() else (leaf[known], rows.values[known])


@dataclass(slots=True)
class TreeState:
    """One tree with everything that belongs to it."""

    frame: Scales
    leaves: Leaves
    sample: Sample
    outliers: Outliers
    built_variance: Floats = field(default_factory=lambda: np.empty(0))

    def insert(self, rows: Rows) -> None:
        leaf = self.frame.tree.leaf_of(rows.coordinates)
        self.leaves.come(self.frame, rows, leaf)
        self.outliers, rest, leaf = self.outliers.with_rows(self.frame, rows, leaf)
        self.leaves.count(self.frame, rest, leaf)
        self.sample = self.sample.with_rows(rest, leaf)

    def delete(self, rows: Rows) -> None:
        leaf = self.frame.tree.leaf_of(rows.coordinates)
        self.leaves.go(self.frame, rows, leaf)
        far = self.outliers.holds(self.frame, rows, leaf)
        self.outliers = self.outliers.without(rows.take(far))
        self.leaves.discount(self.frame, rows.take(~far), leaf[~far])
        self.sample = self.sample.without(rows.take(~far))
