"""Partitionings of several columns: a k-d tree that always splits the leaf with the worst query.

The leaf of largest M is split at the median of the next column in turn (PASS, section 2.4.4; JanusAQP, section 3.5.3). No leaf gets
more than two levels deeper than the shallowest that can still be split, so the tree stays balanced.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from nearly.algebra.median_cuts import cut_in_turn
from nearly.synopsis.structure.rows import Floats, Integers
from nearly.synopsis.structure.tree import LEAF, Tree

MOST_LEVELS_APART = 2


class MaximumVariance:
    """The largest variance of a query in a box, within a factor that depends on the number of columns only.

    Along every column the two halves, and the whole, stand for all queries. The responses are those of `one_column.Prefixes`;
    `sum_and_count` is `all` with values that are scaled already.
    """

    def __init__(
        self, coordinates: Floats, values: Floats, focus: str = "all", equal_samples: bool = True, weights: Floats | None = None
    ) -> None:
        self.coordinates = coordinates
        scaled = np.nan_to_num(values)
        if focus != "sum_and_count":
            root = float(np.sqrt(np.mean(scaled**2))) if len(values) else 0.0
            scaled = scaled / root if root > 0 else scaled
        lines = {"count": [np.ones_like(scaled)], "sum": [scaled], "avg": [scaled]}.get(focus, [scaled, np.ones_like(scaled)])
        self._responses = np.array(lines)
        self._weights = np.ones(len(values)) if weights is None else weights
        self._averages = focus == "avg"
        self._equal_samples = equal_samples

    def worst(self, rows: Integers, dimensions: tuple[int, ...]) -> float:
        """M of the box that holds exactly these sampled rows."""
        if not len(rows):
            return 0.0
        best = self._variance(rows, rows)
        for dimension in dimensions:
            column = self.coordinates[dimension, rows]
            middle = len(rows) // 2
            order = np.argpartition(column, middle)
            for half in (order[:middle], order[middle:]):
                best = max(best, self._variance(rows[half], rows))
        return best * float(self._weights[rows].sum()) if self._equal_samples else best

    def _variance(self, query: Integers, box: Integers) -> float:
        responses, weights = self._responses[:, query], self._weights[query]
        total = float(self._weights[box].sum())
        found = float((responses**2 @ weights).sum() - ((responses @ weights) ** 2).sum() / max(total, 1e-300))
        return found / max(float(weights.sum()), 1.0) ** 2 if self._averages else found


@dataclass(slots=True)
class _Candidate:
    rows: Integers
    depth: int
    dimension: int = LEAF
    cut: float = float("nan")
    children: list[_Candidate] = field(default_factory=list)


_Entry = tuple[float, int, _Candidate]
"""A leaf in the heap: its M negated, a number that breaks ties, and itself."""


def grow(measure: MaximumVariance, dimensions: tuple[int, ...], leaves: int) -> Tree:
    """The tree of so many leaves over some of the columns; fewer when the sample has too few different points."""
    root = _Candidate(np.arange(measure.coordinates.shape[1]), 0)
    waiting = [(-measure.worst(root.rows, dimensions), 0, root)]
    made, open_depths = 1, {0: 1}
    postponed: list[_Entry] = []
    while waiting and made < leaves:
        entry = heapq.heappop(waiting)
        node = entry[2]
        if node.depth - min(open_depths) >= MOST_LEVELS_APART:
            postponed.append(entry)
            continue
        _forget(open_depths, node.depth)
        if not _split(node, measure.coordinates, dimensions):
            waiting, postponed = _resumed(waiting, postponed)
            continue
        made += 1
        for child in node.children:
            open_depths[child.depth] = open_depths.get(child.depth, 0) + 1
            heapq.heappush(waiting, (-measure.worst(child.rows, dimensions), made * 2 + (child is node.children[1]), child))
        waiting, postponed = _resumed(waiting, postponed)
    return _numbered(root, measure.coordinates.shape[0])


def _forget(open_depths: dict[int, int], depth: int) -> None:
    open_depths[depth] -= 1
    if not open_depths[depth]:
        del open_depths[depth]


def _resumed(waiting: list[_Entry], postponed: list[_Entry]) -> tuple[list[_Entry], list[_Entry]]:
    """A split may have raised the shallowest depth: leaves that were too deep get another chance."""
    for entry in postponed:
        heapq.heappush(waiting, entry)
    return waiting, []


def _split(node: _Candidate, coordinates: Floats, dimensions: tuple[int, ...]) -> bool:
    """Split at the median of the first column, in turn, that has two different values here."""
    found = cut_in_turn(coordinates, node.rows, dimensions, node.depth)
    if found is None:
        return False
    left = coordinates[found.column, node.rows] <= found.value
    node.dimension, node.cut = found
    node.children = [_Candidate(node.rows[left], node.depth + 1), _Candidate(node.rows[~left], node.depth + 1)]
    node.rows = np.empty(0, np.int64)
    return True


def _numbered(root: _Candidate, dimensions: int) -> Tree:
    dimension: list[int] = []
    cut: list[float] = []
    right: list[int] = []

    def visit(node: _Candidate) -> None:
        place = len(dimension)
        dimension.append(node.dimension)
        cut.append(node.cut)
        right.append(LEAF)
        for number, child in enumerate(node.children):
            if number == 1:
                right[place] = len(dimension)
            visit(child)

    visit(root)
    return Tree(np.array(dimension, np.int64), np.array(cut), np.array(right, np.int64), dimensions)
