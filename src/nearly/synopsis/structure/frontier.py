"""The minimal coverage frontier: the fewest nodes that hold all rows of a query (PASS, algorithm 1).

A node whose rows all satisfy the query is taken whole; a node that no row of the query can be in is dropped; a leaf that the
query cuts is partial. Only undecided nodes are opened.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearly.synopsis.structure.rows import Floats, Integers
from nearly.synopsis.structure.tree import Tree


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a query: the coordinate in this dimension lies in [low, high]."""

    dimension: int
    low: float
    high: float


Box = tuple[Condition, ...]
"""A conjunction; an empty one holds for every row."""


@dataclass(frozen=True, slots=True)
class Frontier:
    """Nodes taken whole, leaves (by leaf number) that are cut, and how many nodes were looked at."""

    covered: Integers
    partial: Integers
    visited: int


class Index:
    """The extents of a tree's nodes, in the form in which the search is quick."""

    def __init__(self, tree: Tree, low: Floats, high: Floats) -> None:
        self._tree = tree
        self._low, self._high = low.T.copy(), high.T.copy()
        self._narrow = len(tree.split_dimensions) <= 1
        self._lows = self._low.tolist() if self._narrow else []
        self._highs = self._high.tolist() if self._narrow else []
        self._rights = tree.right.tolist() if self._narrow else []
        self._leaf_numbers = tree.first_leaf.tolist() if self._narrow else []

    def frontier(self, box: Box) -> Frontier:
        """The frontier of a query."""
        return self._one_by_one(box) if self._narrow else self._by_levels(box)

    def _one_by_one(self, box: Box) -> Frontier:
        """For trees on one column, where a query opens two paths only: node by node without array overhead."""
        tests = [(self._lows[each.dimension], self._highs[each.dimension], each.low, each.high) for each in box]
        rights, covered, partial, stack, visited = self._rights, [], [], [0], 0
        while stack:
            node = stack.pop()
            visited += 1
            inside = True
            for lows, highs, low, high in tests:
                least, most = lows[node], highs[node]
                if most < low or least > high:
                    break
                if least < low or most > high:
                    inside = False
            else:
                if inside:
                    covered.append(node)
                elif rights[node] < 0:
                    partial.append(self._leaf_numbers[node])
                else:
                    stack += (rights[node], node + 1)
        return Frontier(np.array(covered, np.int64), np.array(partial, np.int64), visited)

    def _by_levels(self, box: Box) -> Frontier:
        """For trees on several columns, where a query may open many nodes: all undecided nodes of a level at once."""
        tree, covered, partial, visited = self._tree, [], [], 0
        nodes = np.zeros(1, np.int64)
        while nodes.size:
            visited += nodes.size
            inside = np.ones(nodes.size, bool)
            meets = np.ones(nodes.size, bool)
            for each in box:
                least, most = self._low[each.dimension][nodes], self._high[each.dimension][nodes]
                inside &= (least >= each.low) & (most <= each.high)
                meets &= (most >= each.low) & (least <= each.high)
            covered.append(nodes[inside & meets])
            undecided = nodes[meets & ~inside]
            leaf = tree.is_leaf[undecided]
            partial.append(undecided[leaf])
            opened = undecided[~leaf]
            nodes = np.concatenate([opened + 1, tree.right[opened]])
        return Frontier(np.concatenate(covered), tree.first_leaf[np.concatenate(partial)], visited)
