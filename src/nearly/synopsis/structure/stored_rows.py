"""The rows that a leaf stores: those far from its middle, whole, and a random sample of the others.

Every row has a ticket uniform in [0, 1). Law of the sample: it holds exactly the live rows of leaf i, outliers aside, whose ticket
is below `threshold[i]`; so, given how many they are, they are a simple random sample of the leaf without replacement, whatever was
inserted or deleted. When the pool outgrows twice its target the thresholds are lowered (a subsample), and when it falls below the
target it must be drawn again from the archive. A reservoir that refills with new rows after deletes would favour them.

Law of the outliers: they are exactly the live rows of leaf i whose distance from its middle is above `bound[i]`. Bounds depend on
values alone, never on tickets, and only rise while rows come and go; so the rest of the leaf, which is tame, is sampled as before,
and a delete knows where its row is (the outlier index of Chaudhuri, Das, Datar, Motwani and Narasayya 2001, kept under changes).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from nearly.synopsis.structure.rows import Copies, Floats, Integers, Mask, Rows, concatenate, empty, kept_without
from nearly.synopsis.structure.statistics import Scales


@dataclass(frozen=True)
class Sample:
    """The pool, sorted by leaf; `target` is m, and m <= size <= 2m while the archive can refill it.

    `pooled`: one threshold for all leaves (JanusAQP), else one per leaf (PASS: as many rows from small leaves as from large).
    """

    rows: Rows
    leaf: Integers
    threshold: Floats
    target: int
    pooled: bool

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def starts(self) -> Integers:
        """Where each leaf's rows begin, and one past the last."""
        return np.searchsorted(self.leaf, np.arange(len(self.threshold) + 1))

    @cached_property
    def sizes(self) -> Integers:
        return np.diff(self.starts)

    def with_rows(self, rows: Rows, leaf: Integers) -> Sample:
        """The pool with the sampled ones of some new rows, within twice the target."""
        chosen = rows.ticket < self.threshold[leaf]
        if not chosen.any():
            return self
        joined = concatenate([self.rows, rows.take(chosen)])
        return arranged(joined, np.concatenate([self.leaf, leaf[chosen]]), self.threshold, self.target, self.pooled).within()

    def without(self, rows: Rows, copies: Copies | None = None) -> Sample:
        """The pool after deletes."""
        return self.kept(kept_without(self.rows, rows, copies)) if len(self) and len(rows) else self

    def kept(self, chosen: Mask) -> Sample:
        return Sample(self.rows.take(chosen), self.leaf[chosen], self.threshold, self.target, self.pooled)

    def within(self) -> Sample:
        """At most twice the target: thresholds fall to where the target is met again."""
        if self.pooled:
            if len(self) <= 2 * self.target:
                return self
            level = np.partition(self.rows.ticket, self.target)[self.target]
            threshold = np.minimum(self.threshold, level)
        else:
            share = max(1, self.target // max(1, len(self.threshold)))
            crowded = np.flatnonzero(self.sizes > 2 * share)
            if not crowded.size:
                return self
            threshold = self.threshold.copy()
            for each in crowded:
                tickets = self.rows.ticket[self.starts[each] : self.starts[each + 1]]
                threshold[each] = np.partition(tickets, share)[share]
        lowered = Sample(self.rows, self.leaf, threshold, self.target, self.pooled)
        return lowered.kept(self.rows.ticket < threshold[self.leaf])

    @property
    def exhausted(self) -> bool:
        """Whether deletes took it below its target, while rows that it does not hold exist."""
        return len(self) < self.target and bool((self.threshold < 1.0).any())


def arranged(rows: Rows, leaf: Integers, threshold: Floats, target: int, pooled: bool) -> Sample:
    """A pool from rows in any order."""
    order = np.argsort(leaf, kind="stable")
    return Sample(rows.take(order), leaf[order], threshold, target, pooled)


def lowest_tickets(rows: Rows, leaf: Integers, quota: Integers, ceiling: Floats, target: int) -> Sample:
    """The stratified pool of a build: in each leaf the `quota` rows of lowest tickets among those offered (all below `ceiling`)."""
    order = np.lexsort((rows.ticket, leaf))
    rows, leaf = rows.take(order), leaf[order]
    starts = np.searchsorted(leaf, np.arange(len(quota) + 1))
    place = np.arange(len(leaf)) - starts[leaf]
    chosen = place < quota[leaf]
    threshold = ceiling.copy()
    full = np.flatnonzero(np.diff(starts) > quota)
    threshold[full] = rows.ticket[starts[full] + quota[full]]
    return Sample(rows.take(chosen), leaf[chosen], threshold, target, pooled=False)


@dataclass(frozen=True, slots=True)
class Outliers:
    """`bound` is -inf while all rows with a value are kept, and inf where none are. `most` rows of a leaf are kept, or up to twice
    as many between two clearings."""

    rows: Rows
    leaf: Integers
    bound: Floats
    most: int

    @classmethod
    def nothing(cls, scales: Scales, most: int) -> Outliers:
        bound = np.full(scales.tree.leaves, -np.inf if most else np.inf)
        return cls(empty(scales.tree.dimensions), np.empty(0, np.int64), bound, most)

    def __len__(self) -> int:
        return len(self.rows)

    def holds(self, scales: Scales, rows: Rows, leaf: Integers) -> Mask:
        """Which rows belong here; a null never does."""
        found: Mask = scales.distances(rows.values, leaf) > self.bound[leaf]
        return found

    def with_rows(self, scales: Scales, rows: Rows, leaf: Integers) -> Parted:
        """The store with the outliers among new rows, and the rows, new and old, that belong to the rest of their leaf."""
        mine = self.holds(scales, rows, leaf)
        if not mine.any():
            return self, rows, leaf
        joined = concatenate([self.rows, rows.take(mine)])
        grown = Outliers(joined, np.concatenate([self.leaf, leaf[mine]]), self.bound, self.most)
        cleared, out, out_leaf = grown.cleared(scales, 2 * self.most)
        return cleared, concatenate([rows.take(~mine), out]), np.concatenate([leaf[~mine], out_leaf])

    def without(self, rows: Rows) -> Outliers:
        """The store after deletes."""
        if not len(self) or not len(rows):
            return self
        keep = kept_without(self.rows, rows)
        return Outliers(self.rows.take(keep), self.leaf[keep], self.bound, self.most)

    def merged(self, scales: Scales, other: Outliers) -> Parted:
        """The store of two bags of rows together: below the higher bound one of them may lack rows."""
        bound = np.maximum(self.bound, other.bound)
        joined = Outliers(concatenate([self.rows, other.rows]), np.concatenate([self.leaf, other.leaf]), bound, self.most)
        inside, out, out_leaf = joined._parted(scales)
        cleared, more, more_leaf = inside.cleared(scales, 2 * self.most)
        return cleared, concatenate([out, more]), np.concatenate([out_leaf, more_leaf])

    def cleared(self, scales: Scales, limit: int) -> Parted:
        """At most `most` rows in the leaves that have more than `limit`, whose bounds rise to the first that goes."""
        counts = np.bincount(self.leaf, minlength=len(self.bound))
        crowded = np.flatnonzero(counts > limit)
        if not crowded.size:
            return self, self.rows.take(np.zeros(len(self), bool)), self.leaf[:0]
        distance = scales.distances(self.rows.values, self.leaf)
        order = np.lexsort((-distance, self.leaf))
        starts = np.searchsorted(self.leaf[order], crowded)
        bound = self.bound.copy()
        bound[crowded] = distance[order][starts + self.most]
        return Outliers(self.rows, self.leaf, bound, self.most)._parted(scales)

    def _parted(self, scales: Scales) -> Parted:
        """Those above the bounds, and the others."""
        mine = self.holds(scales, self.rows, self.leaf)
        return Outliers(self.rows.take(mine), self.leaf[mine], self.bound, self.most), self.rows.take(~mine), self.leaf[~mine]


Parted: TypeAlias = tuple[Outliers, Rows, Integers]
"""A store, and rows with their leaves that do not belong in it."""
