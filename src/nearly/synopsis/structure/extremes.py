"""Values of each leaf that are kept whole: the largest ones, and the rows that lie farthest from its middle.

Law of the largest: `kept[leaf]` holds every live value above the leaf's floor, so its first entry is the exact maximum; when it
runs empty the floor is an outer bound. The smallest values are the largest of the negated ones.

Law of the outliers: the store holds exactly the live rows of leaf i whose distance is above `bound[i]`. Bounds depend on values
alone, never on tickets, and only rise while rows come and go; so the rest of the leaf, which is tame, is sampled as before, and a
delete knows where its row is (the outlier index of Chaudhuri, Das, Datar, Motwani and Narasayya 2001, kept under changes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nearly.synopsis.structure.rows import Floats, Integers, Mask, Rows, concatenate, empty, kept_without
from nearly.synopsis.structure.statistics import Scales

KEPT = 10
"""Values kept per leaf and side."""
MANY = 4096
"""Beyond so many values it pays to shorten the list before sorting it."""


@dataclass(slots=True)
class Largest:
    """`kept` is (leaves, KEPT), descending, padded with -inf; `floor` bounds the live values not kept while a line has room.

    In a full line the last entry is the bound.
    """

    kept: Floats
    floor: Floats

    @classmethod
    def nothing(cls, leaves: int) -> Largest:
        return cls(np.full((leaves, KEPT), -np.inf), np.full(leaves, -np.inf))

    @property
    def top(self) -> Floats:
        """The maximum of each leaf, or an outer bound of it, -inf for an empty leaf."""
        return np.where(self.exact, self.kept[:, 0], self.floor)

    @property
    def exact(self) -> Mask:
        """Where `top` is the maximum itself."""
        found: Mask = (self.kept[:, 0] > -np.inf) | (self.floor == -np.inf)
        return found

    @property
    def bound(self) -> Floats:
        """No live value outside `kept` lies above this."""
        return np.maximum(self.floor, self.kept[:, -1])

    def insert(self, leaf: Integers, values: Floats) -> None:
        """Take new values in. Values not above the bound cannot be placed among those that were let go."""
        higher = values > self.bound[leaf]
        leaf, values = leaf[higher], values[higher]
        if leaf.size > MANY:
            leaf, values = _shortlist(leaf, values, len(self.floor))
        if not leaf.size:
            return
        touched = np.flatnonzero(np.bincount(leaf, minlength=len(self.floor)))
        leaf = np.concatenate([np.repeat(touched, KEPT), leaf])
        values = np.concatenate([self.kept[touched].ravel(), values])
        order = np.lexsort((-values, leaf))
        starts = np.searchsorted(leaf[order], touched)
        self.kept[touched] = values[order][starts[:, None] + np.arange(KEPT)]

    def delete(self, leaf: Integers, values: Floats) -> None:
        """Remove one kept entry for each deleted value that is among them."""
        candidates = values >= self.bound[leaf]
        if not candidates.any():
            return
        pairs, counts = np.unique(np.stack([leaf[candidates], values[candidates]]), axis=1, return_counts=True)
        for each, value, count in zip(pairs[0].astype(int).tolist(), pairs[1].tolist(), counts.tolist(), strict=True):
            places = np.flatnonzero(self.kept[each] == value)[:count]
            if places.size:
                self.floor[each] = max(self.floor[each], self.kept[each, -1])
                rest = np.delete(self.kept[each], places)
                self.kept[each] = np.pad(rest, (0, places.size), constant_values=-np.inf)

    def merge(self, other: Largest) -> None:
        """The largest of both bags together."""
        floor = np.maximum(self.bound, other.bound)
        both = np.sort(np.concatenate([self.kept, other.kept], axis=1), axis=1)[:, ::-1]
        some_let_go = (self.kept[:, -1] > -np.inf) | (other.kept[:, -1] > -np.inf)
        self.floor = np.where(some_let_go, floor, np.maximum(self.floor, other.floor))
        best = both[:, :KEPT]
        self.kept = np.where(best >= self.floor[:, None], best, -np.inf)


def _shortlist(leaf: Integers, values: Floats, leaves: int) -> tuple[Integers, Floats]:
    """Fewer values with the same largest ones in each leaf.

    Dealt out to KEPT hands, the smallest of the hands' best is reached by at least KEPT values: what lies below it cannot be kept,
    and of what equals it KEPT copies suffice.
    """
    best = np.full(leaves * KEPT, -np.inf)
    np.maximum.at(best, leaf * KEPT + np.arange(len(leaf)) % KEPT, values)
    least = best.reshape(leaves, KEPT).min(axis=1)
    above = values > least[leaf]
    reached = np.repeat(np.flatnonzero(least > -np.inf), KEPT)
    return np.concatenate([leaf[above], reached]), np.concatenate([values[above], least[reached]])


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
