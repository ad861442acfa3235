"""The partition tree: binary splits of the space of predicate columns.

Law: every point lies in exactly one leaf; a node's cell is the union of its children's cells. Nodes are numbered in preorder, so
the leaves below a node are neighbours.

Its minimal coverage frontier are the fewest nodes that hold all rows of a query (PASS, algorithm 1): a node whose rows all satisfy
the query is taken whole; a node that no row of the query can be in is dropped; a leaf that the query cuts is partial. Only
undecided nodes are opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nearly.synopsis.structure.rows import Floats, Integers, Mask

LEAF = -1


@dataclass(frozen=True)
class Tree:
    """`dimension[n] >= 0` splits node n: coordinates <= `cut[n]` go to its left child n + 1, others to `right[n]`."""

    dimension: Integers
    cut: Floats
    right: Integers
    dimensions: int

    @property
    def nodes(self) -> int:
        return len(self.dimension)

    @cached_property
    def is_leaf(self) -> Mask:
        return np.equal(self.dimension, LEAF)

    @cached_property
    def leaf_nodes(self) -> Integers:
        """The node of each leaf, in order."""
        return np.flatnonzero(self.is_leaf)

    @property
    def leaves(self) -> int:
        return len(self.leaf_nodes)

    @cached_property
    def first_leaf(self) -> Integers:
        """The number of the first leaf below each node."""
        return np.subtract(np.cumsum(self.is_leaf), self.is_leaf)

    @cached_property
    def end(self) -> Integers:
        """One past the last node below each node."""
        ends = np.arange(1, self.nodes + 1)
        for node in range(self.nodes - 1, -1, -1):
            if self.dimension[node] != LEAF:
                ends[node] = ends[self.right[node]]
        return ends

    @cached_property
    def depth(self) -> Integers:
        depths = np.zeros(self.nodes, np.int64)
        for node in np.flatnonzero(~self.is_leaf):
            depths[node + 1] = depths[self.right[node]] = depths[node] + 1
        return depths

    @cached_property
    def parent(self) -> Integers:
        """The parent of each node; the root's is -1."""
        parents = np.full(self.nodes, -1, np.int64)
        inner = np.flatnonzero(~self.is_leaf)
        parents[inner + 1] = inner
        parents[self.right[inner]] = inner
        return parents

    @cached_property
    def levels(self) -> tuple[Integers, ...]:
        """The inner nodes by depth, deepest first: the order in which parents can be computed from children."""
        inner = np.flatnonzero(~self.is_leaf)
        depths = self.depth[inner]
        return tuple(inner[depths == each] for each in np.unique(depths)[::-1])

    @cached_property
    def split_dimensions(self) -> tuple[int, ...]:
        """The columns that some node splits on."""
        return tuple(int(each) for each in np.unique(self.dimension[~self.is_leaf]))

    @cached_property
    def _cuts(self) -> Floats:
        """For a tree on one column: the cuts between neighbouring leaves."""
        high: Floats = self.cells[1][self.leaf_nodes[:-1], self.split_dimensions[0]]
        return high

    @cached_property
    def cells(self) -> tuple[Floats, Floats]:
        """The cell of each node: (low, high], one line per node, one column per dimension."""
        low = np.full((self.nodes, self.dimensions), -np.inf)
        high = np.full((self.nodes, self.dimensions), np.inf)
        for node in np.flatnonzero(~self.is_leaf):
            split, right = self.dimension[node], self.right[node]
            low[node + 1], high[node + 1], low[right], high[right] = low[node], high[node], low[node], high[node]
            high[node + 1, split] = low[right, split] = self.cut[node]
        return low, high

    def leaf_of(self, coordinates: Floats) -> Integers:
        """The leaf of each point."""
        if self.leaves == 1:
            return np.zeros(coordinates.shape[1], np.int64)
        if len(self.split_dimensions) == 1:
            leaf: Integers = np.searchsorted(self._cuts, coordinates[self.split_dimensions[0]], side="left")
            return leaf
        return self._descend(coordinates)

    def _descend(self, coordinates: Floats) -> Integers:
        places = np.arange(coordinates.shape[1])
        node = np.zeros(coordinates.shape[1], np.int64)
        while places.size:
            at = node[places]
            split = self.dimension[at]
            inner = split != LEAF
            places, at, split = places[inner], at[inner], split[inner]
            goes_left = coordinates[split, places] <= self.cut[at]
            node[places] = np.where(goes_left, at + 1, self.right[at])
        return self.first_leaf[node]

    def leaves_below(self, node: int) -> slice:
        """The numbers of the leaves below a node."""
        count = int(self.is_leaf[node : self.end[node]].sum())
        return slice(int(self.first_leaf[node]), int(self.first_leaf[node]) + count)

    def replaced(self, node: int, subtree: Tree) -> Tree:
        """The tree with the part below a node exchanged for another; the cells of all other nodes stay."""
        stop = int(self.end[node])
        longer = subtree.nodes - (stop - node)
        right = self.right.copy()
        right[right >= stop] += longer
        parts = [
            (self.dimension, subtree.dimension),
            (self.cut, subtree.cut),
            (right, np.where(subtree.is_leaf, LEAF, subtree.right + node)),
        ]
        dimension, cut, joined = (np.concatenate([old[:node], new, old[stop:]]) for old, new in parts)
        return Tree(dimension, cut, joined, self.dimensions)


def single_leaf(dimensions: int) -> Tree:
    """The tree of one leaf."""
    return Tree(np.array([LEAF]), np.array([np.nan]), np.array([LEAF]), dimensions)


def from_cuts(cuts: Floats, dimension: int, dimensions: int) -> Tree:
    """The balanced tree whose leaves are the intervals between ascending cuts of one column."""
    kinds: list[int] = []
    values: list[float] = []
    rights: list[int] = []

    def grow(low: int, high: int) -> None:
        if low == high:
            kinds.append(LEAF)
            values.append(np.nan)
            rights.append(LEAF)
            return
        middle = (low + high) // 2
        kinds.append(dimension)
        values.append(float(cuts[middle]))
        rights.append(LEAF)
        place = len(rights) - 1
        grow(low, middle)
        rights[place] = len(kinds)
        grow(middle + 1, high)

    grow(0, len(cuts))
    return Tree(np.array(kinds, np.int64), np.array(values), np.array(rights, np.int64), dimensions)


def among(leaf: Integers, leaves: slice) -> Mask:
    """Which of some leaf numbers lie in a range of them."""
    found: Mask = (leaf >= leaves.start) & (leaf < leaves.stop)
    return found


@dataclass(frozen=True, slots=True)
class Graft:
    """Leaves `gone` of a tree, in whose place another has the leaves `came`; the others are the same in both."""

    gone: slice
    came: slice

    def arrays(self, old: Floats, new: Floats) -> Floats:
        """What the leaves have, from what they have in the old tree and in the new."""
        return np.concatenate([old[: self.gone.start], new[self.came], old[self.gone.stop :]])

    def moved(self, leaf: Integers) -> Integers:
        """The new numbers of leaves that stayed."""
        return np.where(leaf >= self.gone.stop, leaf + (self.came.stop - self.gone.stop), leaf)


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
    """Nodes taken whole, and leaves (by leaf number) that are cut."""

    covered: Integers
    partial: Integers


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
        rights, covered, partial, stack = self._rights, [], [], [0]
        while stack:
            node = stack.pop()
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
        return Frontier(np.array(covered, np.int64), np.array(partial, np.int64))

    def _by_levels(self, box: Box) -> Frontier:
        """For trees on several columns, where a query may open many nodes: all undecided nodes of a level at once."""
        tree, covered, partial = self._tree, [], []
        nodes = np.zeros(1, np.int64)
        while nodes.size:
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
        return Frontier(np.concatenate(covered), tree.first_leaf[np.concatenate(partial)])
