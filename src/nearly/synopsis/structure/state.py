"""The state of one tree: aggregates of its leaves, extreme values and the sample; how changes move it and how shards join."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from nearly.synopsis.structure.catch_up import CatchUp
from nearly.synopsis.structure.extremes import Largest
from nearly.synopsis.structure.rows import Floats, Integers, Rows, concatenate
from nearly.synopsis.structure.sample import Sample, arranged
from nearly.synopsis.structure.statistics import Frame, Hull, leaf_statistics


@dataclass(slots=True)
class Leaves:
    """What is known of each leaf. Law: merging the leaves of two bags of rows gives the leaves of their union."""

    statistics: Floats
    hull: Hull
    largest: Largest
    smallest: Largest

    @classmethod
    def nothing(cls, frame: Frame) -> Leaves:
        leaves = frame.tree.leaves
        hull = Hull.nothing(leaves, frame.tree.dimensions)
        return cls(np.zeros((leaves, frame.width)), hull, Largest.nothing(leaves), Largest.nothing(leaves))

    def insert(self, frame: Frame, rows: Rows, leaf: Integers) -> None:
        self.statistics += leaf_statistics(frame, rows, leaf)
        self.hull.include(rows.coordinates, leaf)
        leaf, values = _known(rows, leaf)
        self.largest.insert(leaf, values)
        self.smallest.insert(leaf, -values)

    def delete(self, frame: Frame, rows: Rows, leaf: Integers) -> None:
        self.statistics -= leaf_statistics(frame, rows, leaf)
        leaf, values = _known(rows, leaf)
        self.largest.delete(leaf, values)
        self.smallest.delete(leaf, -values)

    def merge(self, other: Leaves) -> None:
        self.statistics += other.statistics
        self.hull.merge(other.hull)
        self.largest.merge(other.largest)
        self.smallest.merge(other.smallest)


def _known(rows: Rows, leaf: Integers) -> tuple[Integers, Floats]:
    known = ~np.isnan(rows.values)
    return (leaf, rows.values) if known.all() else (leaf[known], rows.values[known])


@dataclass(slots=True)
class State:
    """One tree with everything that belongs to it. `catch_up` is there while the archive was read only in part."""

    frame: Frame
    leaves: Leaves
    sample: Sample
    catch_up: CatchUp | None = None
    built_variance: Floats = field(default_factory=lambda: np.empty(0))

    def insert(self, rows: Rows) -> None:
        leaf = self.frame.tree.leaf_of(rows.coordinates)
        self.leaves.insert(self.frame, rows, leaf)
        self.sample = self.sample.with_rows(rows, leaf)

    def delete(self, rows: Rows) -> None:
        leaf = self.frame.tree.leaf_of(rows.coordinates)
        self.leaves.delete(self.frame, rows, leaf)
        self.sample = self.sample.without(rows)


def merged_shards(shards: list[State]) -> State:
    """One state from the states of shards that share a tree: every row belongs to one shard.

    The samples join under the lowest threshold of each leaf, below which all shards hold all their rows.
    """
    first = shards[0]
    leaves = Leaves.nothing(first.frame)
    for each in shards:
        leaves.merge(each.leaves)
    threshold = np.minimum.reduce([each.sample.threshold for each in shards])
    rows = concatenate([each.sample.rows for each in shards])
    leaf = np.concatenate([each.sample.leaf for each in shards])
    chosen = rows.ticket < threshold[leaf]
    sample = arranged(rows.take(chosen), leaf[chosen], threshold, sum(each.sample.target for each in shards), first.sample.pooled)
    return replace(first, leaves=leaves, sample=sample)
