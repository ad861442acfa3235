"""What queries read: node aggregates, extents and sample features that follow from a state, fixed while changes go on."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from nearly.synopsis.query.features import Features
from nearly.synopsis.structure.frontier import Box, Frontier, Index
from nearly.synopsis.structure.rows import Mask
from nearly.synopsis.structure.state import State
from nearly.synopsis.structure.statistics import COUNT, POSITIVE, ROWS, SUM, Hull, roll_up


class View:
    """A consistent reading of a state; everything that changes in place is copied."""

    def __init__(self, state: State) -> None:
        frame, leaves = state.frame, state.leaves
        tree = frame.tree
        self.frame = frame
        self.catch_up = state.catch_up
        self.sample = state.sample
        self.leaf_statistics = leaves.statistics.copy()
        hull = leaves.hull
        if self.catch_up is not None:
            self.leaf_statistics += self.catch_up.estimated()
            hull = Hull.of_cells(tree)
        self.node_statistics = roll_up(tree, self.leaf_statistics, np.add)
        self._all_held = bool((self.leaf_statistics[:, ROWS] > 0).all())
        self.top = leaves.largest.top
        self.bottom = -leaves.smallest.top
        exact = (leaves.largest.exact & leaves.smallest.exact).astype(np.float64)
        self.node_top = roll_up(tree, self.top, np.maximum)
        self.node_bottom = roll_up(tree, self.bottom, np.minimum)
        self.node_exact: Mask = roll_up(tree, exact, np.minimum) > 0
        self.index = Index(tree, roll_up(tree, hull.low, np.minimum), roll_up(tree, hull.high, np.maximum))

    @cached_property
    def features(self) -> Features:
        extremes = self.bottom, self.top
        return Features(self.frame, self.sample, self.leaf_statistics, extremes, calibrate=self.catch_up is None)

    @cached_property
    def magnitude(self) -> float:
        """The sum of the absolute values of all rows."""
        totals = self.node_statistics[0]
        total = float(totals[SUM] + self.frame.centre * totals[COUNT])
        return float(2.0 * totals[POSITIVE] - total)

    @property
    def rows(self) -> float:
        return float(self.node_statistics[0, ROWS])

    def frontier(self, box: Box) -> Frontier:
        """The frontier of a query, without leaves that hold no row."""
        found = self.index.frontier(box)
        if self._all_held:
            return found
        return Frontier(found.covered, found.partial[self.leaf_statistics[found.partial, ROWS] > 0], found.visited)

    def reach(self, frontier: Frontier) -> tuple[float, float]:
        """The smallest and the largest value that a row of the frontier may have."""
        low = min(self.node_bottom[frontier.covered].min(initial=np.inf), self.bottom[frontier.partial].min(initial=np.inf))
        high = max(self.node_top[frontier.covered].max(initial=-np.inf), self.top[frontier.partial].max(initial=-np.inf))
        return float(low), float(high)
