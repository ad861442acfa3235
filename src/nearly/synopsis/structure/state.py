"""The state of one tree: aggregates of its leaves, extreme values, outliers and the sample, and how changes move it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nearly.synopsis.structure.rows import Copies, Floats, Integers, Mask, Rows, concatenate
from nearly.synopsis.structure.statistics import TURNOVER, Hull, Scales, leaf_statistics, turnover
from nearly.synopsis.structure.stored_rows import Outliers, Sample, arranged
from nearly.synopsis.structure.tree import Graft, among

KEPT = 10
"""Values kept per leaf and side."""
MANY = 4096
"""Beyond so many values it pays to shorten the list before sorting it."""


@dataclass(slots=True)
class Largest:
    """The largest values of each leaf; the smallest ones are the largest of the negated.

    `kept` is (leaves, KEPT), descending, padded with -inf; `floor` bounds the live values not kept while a line has room. In a full
    line the last entry is the bound. Law: `kept[leaf]` holds every live value above the bound, so its first entry is the exact
    maximum; when it runs empty the floor is an outer bound.
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
    def nothing(cls, scales: Scales) -> Leaves:
        leaves = scales.tree.leaves
        hull = Hull.nothing(leaves, scales.tree.dimensions)
        return cls(
            np.zeros((leaves, scales.width)), np.zeros((leaves, TURNOVER)), hull, Largest.nothing(leaves), Largest.nothing(leaves)
        )

    def count(self, scales: Scales, rows: Rows, leaf: Integers) -> None:
        """Take rows, none of them an outlier, into the statistics."""
        self.statistics += leaf_statistics(scales, rows, leaf)

    def discount(self, scales: Scales, rows: Rows, leaf: Integers) -> None:
        self.statistics -= leaf_statistics(scales, rows, leaf)

    def come(self, scales: Scales, rows: Rows, leaf: Integers) -> None:
        """New rows, outliers among them."""
        self.turnover += turnover(scales, rows, leaf)
        self.hull.include(rows.coordinates, leaf)
        leaf, values = _known(rows, leaf)
        self.largest.insert(leaf, values)
        self.smallest.insert(leaf, -values)

    def go(self, scales: Scales, rows: Rows, leaf: Integers) -> None:
        """Rows that are deleted, outliers among them."""
        self.turnover += turnover(scales, rows, leaf)
        leaf, values = _known(rows, leaf)
        self.largest.delete(leaf, values)
        self.smallest.delete(leaf, -values)

    def grafted(self, fresh: Leaves, graft: Graft) -> Leaves:
        """These leaves with some of the fresh ones."""
        join = graft.arrays
        largest, smallest = (
            Largest(join(old.kept, new.kept), join(old.floor, new.floor))
            for old, new in ((self.largest, fresh.largest), (self.smallest, fresh.smallest))
        )
        hull = Hull(join(self.hull.low, fresh.hull.low), join(self.hull.high, fresh.hull.high))
        return Leaves(join(self.statistics, fresh.statistics), join(self.turnover, fresh.turnover), hull, largest, smallest)

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

    scales: Scales
    leaves: Leaves
    sample: Sample
    outliers: Outliers
    built_variance: Floats = field(default_factory=lambda: np.empty(0))

    def insert(self, rows: Rows) -> None:
        leaf = self.scales.tree.leaf_of(rows.coordinates)
        self.leaves.come(self.scales, rows, leaf)
        self.outliers, rest, leaf = self.outliers.with_rows(self.scales, rows, leaf)
        self.leaves.count(self.scales, rest, leaf)
        self.sample = self.sample.with_rows(rest, leaf)

    def delete(self, rows: Rows, copies: Copies | None = None) -> None:
        leaf = self.scales.tree.leaf_of(rows.coordinates)
        self.leaves.go(self.scales, rows, leaf)
        far = self.outliers.holds(self.scales, rows, leaf)
        self.outliers = self.outliers.without(rows.take(far))
        self.leaves.discount(self.scales, rows.take(~far), leaf[~far])
        self.sample = self.sample.without(rows.take(~far), copies and copies.take(~far))


def grafted(old: TreeState, fresh: TreeState, graft: Graft) -> TreeState:
    """A state with some leaves of a fresh one, whose tree and columns are else the same.

    Law: every leaf keeps what it knows, and what it knows depends on its own rows alone; so this is the state of all rows.
    """
    join = graft.arrays
    mine, theirs = old.scales, fresh.scales
    parts = [join(getattr(mine, name), getattr(theirs, name)) for name in ("origin", "span", "middle")]
    threshold = join(old.sample.threshold, fresh.sample.threshold)
    if old.sample.pooled:
        threshold = np.full(len(threshold), threshold.min())
    drawn = arranged(*_both(old.sample, fresh.sample, graft), threshold, old.sample.target, old.sample.pooled)
    far = Outliers(*_both(old.outliers, fresh.outliers, graft), join(old.outliers.bound, fresh.outliers.bound), old.outliers.most)
    return TreeState(
        Scales(theirs.tree, mine.centre, *parts), old.leaves.grafted(fresh.leaves, graft),
        drawn.kept(drawn.rows.ticket < threshold[drawn.leaf]), far,
    )  # fmt: skip


def _both(old: Sample | Outliers, fresh: Sample | Outliers, graft: Graft) -> tuple[Rows, Integers]:
    """Stored rows of the leaves that stayed and of those that came, with their leaves."""
    stayed, came = ~among(old.leaf, graft.gone), among(fresh.leaf, graft.came)
    rows = concatenate([old.rows.take(stayed), fresh.rows.take(came)])
    return rows, np.concatenate([graft.moved(old.leaf[stayed]), fresh.leaf[came]])


@dataclass(frozen=True, slots=True)
class RowChange:
    """Rows that come, or go; an update is both. Of rows that no key tells apart, `copies` says how many equal ones there are."""

    insert: bool
    rows: Rows
    copies: Copies | None = None

    def take(self, chosen: Mask) -> RowChange:
        return RowChange(self.insert, self.rows.take(chosen), self.copies and self.copies.take(chosen))


Changes = Sequence[RowChange]


def apply(state: TreeState, changes: Changes) -> None:
    """Move a state by changes."""
    for change in changes:
        if not len(change.rows):
            continue
        if change.insert:
            state.insert(change.rows)
        else:
            state.delete(change.rows, change.copies)


def of_measure(changes: Changes, measure: int) -> Changes:
    """Changes as the trees of one measure see them."""
    return [replace(each, rows=each.rows.of(measure)) for each in changes]


def concerning(changes: Changes, scales: Scales, leaves: slice | None) -> Changes:
    """The part of changes that concerns some leaves of a tree."""
    if leaves is None:
        return changes
    return [each.take(among(scales.tree.leaf_of(each.rows.coordinates), leaves)) for each in changes]


def size(changes: Changes) -> int:
    return sum(len(change.rows) for change in changes)
