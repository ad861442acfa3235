"""The largest values of each leaf, kept under inserts and deletes.

Law: `kept[leaf]` holds every live value above the leaf's floor, so its first entry is the exact maximum; when it runs empty the
floor is an outer bound. The smallest values are the largest of the negated ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearly.synopsis.structure.rows import Floats, Integers, Mask

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
