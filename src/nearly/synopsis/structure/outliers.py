"""The rows of each leaf whose values lie farthest from its middle, kept whole: what is left for the sample is tame.

Law: the store holds exactly the live rows of leaf i whose distance is above `bound[i]`. Bounds depend on values alone, never on
tickets, and only rise while rows come and go; so the rest of the leaf is sampled as before, and a delete knows where its row is
(the outlier index of Chaudhuri, Das, Datar, Motwani and Narasayya 2001, kept under changes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nearly.synopsis.structure.rows import Floats, Integers, Mask, Rows, concatenate, empty, kept_without
from nearly.synopsis.structure.statistics import Scales


@dataclass(frozen=True, slots=True)
class Outliers:
    """`bound` is -inf while all rows with a value are kept, and inf where none are. `most` rows of a leaf are kept, or up to twice
    as many between two clearings."""

    rows: Rows
    leaf: Integers
    bound: Floats
    most: int

    @classmethod
    def nothing(cls, frame: Scales, most: int) -> Outliers:
        bound = np.full(frame.tree.leaves, -np.inf if most else np.inf)
        return cls(empty(frame.tree.dimensions), np.empty(0, np.int64), bound, most)

    def __len__(self) -> int:
        return len(self.rows)

    def holds(self, frame: Scales, rows: Rows, leaf: Integers) -> Mask:
        """Which rows belong here; a null never does."""
        found: Mask = frame.distances(rows.values, leaf) > self.bound[leaf]
        return found

    def with_rows(self, frame: Scales, rows: Rows, leaf: Integers) -> Sorted:
        """The store with the outliers among new rows, and the rows, new and old, that belong to the rest of their leaf."""
        mine = self.holds(frame, rows, leaf)
        if not mine.any():
            return self, rows, leaf
        joined = concatenate([self.rows, rows.take(mine)])
        grown = Outliers(joined, np.concatenate([self.leaf, leaf[mine]]), self.bound, self.most)
        cleared, out, out_leaf = grown.cleared(frame, 2 * self.most)
        return cleared, concatenate([rows.take(~mine), out]), np.concatenate([leaf[~mine], out_leaf])

    def without(self, rows: Rows) -> Outliers:
        """The store after deletes."""
        if not len(self) or not len(rows):
            return self
        keep = kept_without(self.rows, rows)
        return Outliers(self.rows.take(keep), self.leaf[keep], self.bound, self.most)

    def merged(self, frame: Scales, other: Outliers) -> Sorted:
        """The store of two bags of rows together: below the higher bound one of them may lack rows."""
        bound = np.maximum(self.bound, other.bound)
        joined = Outliers(concatenate([self.rows, other.rows]), np.concatenate([self.leaf, other.leaf]), bound, self.most)
        inside, out, out_leaf = joined._parted(frame)
        cleared, more, more_leaf = inside.cleared(frame, 2 * self.most)
        return cleared, concatenate([out, more]), np.concatenate([out_leaf, more_leaf])

    def cleared(self, frame: Scales, limit: int) -> Sorted:
        """At most `most` rows in the leaves that have more than `limit`, whose bounds rise to the first that goes."""
        counts = np.bincount(self.leaf, minlength=len(self.bound))
        crowded = np.flatnonzero(counts > limit)
        if not crowded.size:
            return self, self.rows.take(np.zeros(len(self), bool)), self.leaf[:0]
        distance = frame.distances(self.rows.values, self.leaf)
        order = np.lexsort((-distance, self.leaf))
        starts = np.searchsorted(self.leaf[order], crowded)
        bound = self.bound.copy()
        bound[crowded] = distance[order][starts + self.most]
        return Outliers(self.rows, self.leaf, bound, self.most)._parted(frame)

    def _parted(self, frame: Scales) -> Sorted:
        """Those above the bounds, and the others."""
        mine = self.holds(frame, self.rows, self.leaf)
        return Outliers(self.rows.take(mine), self.leaf[mine], self.bound, self.most), self.rows.take(~mine), self.leaf[~mine]


Sorted: TypeAlias = tuple[Outliers, Rows, Integers]
"""A store, and rows with their leaves that do not belong in it."""
