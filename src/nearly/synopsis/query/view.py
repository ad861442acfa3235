"""What queries read: node aggregates, extents and sample features that follow from a state, fixed while changes go on."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from nearly.synopsis.query.features import Features
from nearly.synopsis.structure.rows import Floats, Mask
from nearly.synopsis.structure.state import TreeState
from nearly.synopsis.structure.statistics import ROWS, leaf_statistics, roll_up
from nearly.synopsis.structure.tree import Box, Frontier, Index


class View:
    """A consistent reading of a state; everything that changes in place is copied.

    `rest_statistics` are those of each leaf without its outliers, `leaf_statistics` those of all its rows.
    """

    def __init__(self, state: TreeState) -> None:
        frame, leaves = state.frame, state.leaves
        tree = frame.tree
        self.frame = frame
        self.sample = state.sample
        self.outliers = state.outliers
        self.rest_statistics = leaves.statistics.copy()
        hull = leaves.hull
        self.leaf_statistics = self.rest_statistics + leaf_statistics(frame, self.outliers.rows, self.outliers.leaf)
        self.node_statistics = roll_up(tree, self.leaf_statistics, np.add)
        self._leaf_turnover = leaves.turnover.copy()
        self._node_turnover = roll_up(tree, self._leaf_turnover, np.add)
        self._all_held = bool((self.leaf_statistics[:, ROWS] > 0).all())
        self.top = leaves.largest.top
        self.bottom = -leaves.smallest.top
        exact = (leaves.largest.exact & leaves.smallest.exact).astype(np.float64)
        self.node_top = roll_up(tree, self.top, np.maximum)
        self.node_bottom = roll_up(tree, self.bottom, np.minimum)
        self.node_exact: Mask = roll_up(tree, exact, np.minimum) > 0
        self.index = Index(tree, roll_up(tree, hull.low, np.minimum), roll_up(tree, hull.high, np.maximum))

    @cached_property
    def rest_top(self) -> Floats:
        """The largest value that a row of a leaf may have that is no outlier."""
        return np.minimum(self.top, self.frame.middle + self.outliers.bound)

    @cached_property
    def rest_bottom(self) -> Floats:
        return np.maximum(self.bottom, self.frame.middle - self.outliers.bound)

    @cached_property
    def features(self) -> Features:
        extremes = self.rest_bottom, self.rest_top
        return Features(self.frame, self.sample, self.rest_statistics, extremes)

    @property
    def rows(self) -> float:
        return float(self.node_statistics[0, ROWS])

    def frontier(self, box: Box) -> Frontier:
        """The frontier of a query, without leaves that hold no row."""
        if any(each.low > each.high for each in box):
            return Frontier(np.empty(0, np.int64), np.empty(0, np.int64), 0)
        found = self.index.frontier(box)
        if self._all_held:
            return found
        return Frontier(found.covered, found.partial[self.leaf_statistics[found.partial, ROWS] > 0], found.visited)

    def reach(self, frontier: Frontier) -> tuple[float, float]:
        """The smallest and the largest value that a row of the frontier may have."""
        low = min(self.node_bottom[frontier.covered].min(initial=np.inf), self.bottom[frontier.partial].min(initial=np.inf))
        high = max(self.node_top[frontier.covered].max(initial=-np.inf), self.top[frontier.partial].max(initial=-np.inf))
        return float(low), float(high)

    def turnover(self, frontier: Frontier) -> Floats:
        """The turnover of all leaves that the frontier touches."""
        found: Floats = self._node_turnover[frontier.covered].sum(axis=0) + self._leaf_turnover[frontier.partial].sum(axis=0)
        return found

    @cached_property
    def read(self) -> Floats:
        """How many rows of each leaf are stored."""
        outliers = np.bincount(self.outliers.leaf, minlength=self.frame.tree.leaves)
        return (outliers + self.sample.sizes).astype(np.float64)

    def share(self, frontier: Frontier) -> float:
        """The share of the frontier's rows that an answer is based on: all of covered nodes, the stored ones of cut leaves."""
        covered = float(self.node_statistics[frontier.covered, ROWS].sum())
        cut = float(self.leaf_statistics[frontier.partial, ROWS].sum())
        read = covered + min(float(self.read[frontier.partial].sum()), cut)
        return read / (covered + cut) if covered + cut > 0 else 1.0

    def outliers_in(self, frontier: Frontier, box: Box) -> Floats:
        """The values of the outliers of cut leaves that lie in the box."""
        if not len(self.outliers):
            return self.outliers.rows.values
        cut = np.zeros(self.frame.tree.leaves, bool)
        cut[frontier.partial] = True
        chosen = cut[self.outliers.leaf]
        for each in box:
            column = self.outliers.rows.coordinates[each.dimension]
            chosen &= (column >= each.low) & (column <= each.high)
        return self.outliers.rows.values[chosen]
