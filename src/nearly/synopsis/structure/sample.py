"""One pool of sampled rows with virtual strata, uniform in every leaf under inserts and deletes.

Every row has a ticket uniform in [0, 1). The pool holds exactly the live rows of leaf i, outliers aside, whose ticket is below
`threshold[i]`; so,
given how many they are, they are a simple random sample of the leaf without replacement, whatever was inserted or deleted. When
the pool outgrows twice its target the thresholds are lowered (a subsample), and when it falls below the target it must be drawn
again from the archive. A reservoir that refills with new rows after deletes would favour them; this one does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nearly.synopsis.structure.rows import Floats, Integers, Mask, Rows, concatenate, kept_without


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

    def without(self, rows: Rows) -> Sample:
        """The pool after deletes."""
        return self.kept(kept_without(self.rows, rows)) if len(self) and len(rows) else self

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
