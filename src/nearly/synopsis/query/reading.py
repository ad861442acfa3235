"""What is read of a state, fixed while changes go on: node aggregates, extents, sample features, variances; the tree as text."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from nearly.synopsis.partition.several_columns import MaximumVariance
from nearly.synopsis.query.features import Features
from nearly.synopsis.structure.domain import Domain
from nearly.synopsis.structure.rows import Floats, Mask
from nearly.synopsis.structure.state import TreeState
from nearly.synopsis.structure.statistics import COUNT, ROWS, SQUARES, SUM, leaf_statistics, roll_up
from nearly.synopsis.structure.tree import Box, Frontier, Index, Tree

BAR = 20


class TreeReading:
    """A consistent reading of a state; everything that changes in place is copied.

    `rest_statistics` are those of each leaf without its outliers, `leaf_statistics` those of all its rows.
    """

    def __init__(self, state: TreeState) -> None:
        scales, leaves = state.scales, state.leaves
        tree = scales.tree
        self.scales = scales
        self.sample = state.sample
        self.outliers = state.outliers
        self.rest_statistics = leaves.statistics.copy()
        hull = leaves.hull
        self.leaf_statistics = self.rest_statistics + leaf_statistics(scales, self.outliers.rows, self.outliers.leaf)
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
        return np.minimum(self.top, self.scales.middle + self.outliers.bound)

    @cached_property
    def rest_bottom(self) -> Floats:
        return np.maximum(self.bottom, self.scales.middle - self.outliers.bound)

    @cached_property
    def features(self) -> Features:
        extremes = self.rest_bottom, self.rest_top
        return Features(self.scales, self.sample, self.rest_statistics, extremes)

    @property
    def nbytes(self) -> int:
        """Bytes of the stored rows and of the aggregates."""
        return self.sample.rows.nbytes + self.outliers.rows.nbytes + self.node_statistics.nbytes

    @property
    def rows(self) -> float:
        return float(self.node_statistics[0, ROWS])

    def frontier(self, box: Box) -> Frontier:
        """The frontier of a query, without leaves that hold no row."""
        if any(each.low > each.high for each in box):
            return Frontier(np.empty(0, np.int64), np.empty(0, np.int64))
        found = self.index.frontier(box)
        if self._all_held:
            return found
        return Frontier(found.covered, found.partial[self.leaf_statistics[found.partial, ROWS] > 0])

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
        outliers = np.bincount(self.outliers.leaf, minlength=self.scales.tree.leaves)
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
        cut = np.zeros(self.scales.tree.leaves, bool)
        cut[frontier.partial] = True
        chosen = cut[self.outliers.leaf]
        for each in box:
            column = self.outliers.rows.coordinates[each.dimension]
            chosen &= (column >= each.low) & (column <= each.high)
        return self.outliers.rows.values[chosen]

    @cached_property
    def weights(self) -> Floats:
        """How many rows each sampled row stands for."""
        per_leaf = self.rest_statistics[:, ROWS] / np.maximum(self.sample.sizes, 1)
        return per_leaf[self.sample.leaf]

    @cached_property
    def leaf_variances(self) -> Floats:
        """The worst variance of a query in each leaf, as a share of the square of all rows: growth alone does not change it."""
        return self.variances_under(self.scales.tree)

    def variances_under(self, tree: Tree) -> Floats:
        """What `leaf_variances` would be with another tree over the same rows."""
        rows, weights = self.sample.rows, self.weights
        measure = MaximumVariance(rows.coordinates, rows.values / self._root, "sum_and_count", True, weights)
        leaf = tree.leaf_of(rows.coordinates)
        order = np.argsort(leaf, kind="stable")
        starts = np.searchsorted(leaf[order], np.arange(tree.leaves + 1))
        total = max(float(weights.sum()), 1.0)
        found = [measure.worst(order[begin:end], tree.split_dimensions) for begin, end in itertools.pairwise(starts)]
        return np.array(found) / total**2

    @cached_property
    def _root(self) -> float:
        """The root of the mean square of all values."""
        totals, centre = self.node_statistics[0], self.scales.centre
        square = (totals[SQUARES] + 2.0 * centre * totals[SUM]) / max(totals[COUNT], 1.0) + centre**2
        return float(np.sqrt(square)) if square > 0 else 1.0


def picture(reading: TreeReading, domains: Sequence[Domain], most: int = 64) -> str:
    """The tree with branches on the left; the bar shows the error of the worst query in a leaf against the largest of all."""
    tree = reading.scales.tree
    errors = np.sqrt(reading.leaf_variances / np.maximum(reading.sample.sizes, 1))
    worst = float(errors.max(initial=0.0)) or 1.0
    low, high = tree.cells
    lines: list[str] = []

    def visit(node: int, lead: str, last: bool) -> None:
        branch = "" if node == 0 else ("└─" if last else "├─")
        if tree.is_leaf[node]:
            leaf = int(tree.first_leaf[node])
            bar = "█" * round(BAR * float(errors[leaf]) / worst)
            cell = _cell(low[node], high[node], domains, tree.split_dimensions)
            rows, size = reading.leaf_statistics[leaf, ROWS], reading.sample.sizes[leaf]
            lines.append(f"{lead}{branch}leaf {leaf} {cell}  {rows:,.0f} rows, {size} sampled  {bar} {errors[leaf]:.2%}")
            return
        if node == 0:
            rows, sampled = f"{reading.rows:,.0f} rows", f"{len(reading.sample):,} sampled"
            lines.append(f"{rows}, {tree.leaves} leaves, {sampled}; the worst query of a leaf errs by")
        else:
            lines.append(f"{lead}{branch}┐")
        deeper = lead + ("" if node == 0 else ("  " if last else "│ "))
        visit(node + 1, deeper, False)
        visit(int(tree.right[node]), deeper, True)

    visit(0, "", True)
    if len(lines) > most:
        lines = [*lines[: most // 2], f"... {len(lines) - most} lines left out ...", *lines[-most // 2 :]]
    return "\n".join(lines)


def _cell(low: Floats, high: Floats, domains: Sequence[Domain], split: Sequence[int]) -> str:
    """The cell as conditions on the split columns."""
    parts = []
    for dimension in split:
        domain = domains[dimension]
        after, upto = _shown(domain, low[dimension]), _shown(domain, high[dimension])
        if after and upto:
            parts.append(f"{after} < {domain.name} <= {upto}")
        elif after or upto:
            parts.append(f"{domain.name} > {after}" if after else f"{domain.name} <= {upto}")
    return " and ".join(parts) or "all"


def _shown(domain: Domain, coordinate: float) -> str:
    if not np.isfinite(coordinate):
        return ""
    value = domain.value(float(coordinate))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
