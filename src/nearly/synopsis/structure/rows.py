"""Batches of rows as a synopsis sees them: numbers only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

MISSING = -np.inf
"""The coordinate of a null: below every number, so that no range with a finite end holds it."""
MOST_COPIES = 10**9 - 10**6
"""So many can be drawn from."""
LOWEST = float(np.finfo(np.float64).min)
"""The lower end of a range that was left open: it holds every number and no null."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows by column: `coordinates` has one line per predicate column, `values` is the measure with NaN for null, or has one line
    per measure when there are several: a tree knows one of them.

    `identity` tells rows apart (a hash of the key), `ticket` is a number uniform in [0, 1) that decides what is sampled.
    """

    coordinates: Floats
    values: Floats
    identity: Hashes
    ticket: Floats

    def __len__(self) -> int:
        return len(self.ticket)

    @property
    def nbytes(self) -> int:
        return self.coordinates.nbytes + self.values.nbytes + self.identity.nbytes + self.ticket.nbytes

    @property
    def content(self) -> Hashes:
        """A hash of everything that two rows can differ in."""
        return hash_columns([self.identity, *self.coordinates, *np.atleast_2d(self.values)])

    def take(self, chosen: Mask | Integers) -> Rows:
        """Some of the rows, by mask or by place."""
        return Rows(self.coordinates[:, chosen], self.values[..., chosen], self.identity[chosen], self.ticket[chosen])

    def of(self, measure: int) -> Rows:
        """The rows with one of their measures."""
        return self if self.values.ndim == 1 else replace(self, values=self.values[measure])


def empty(dimensions: int) -> Rows:
    """No rows of so many predicate columns."""
    return Rows(np.empty((dimensions, 0)), np.empty(0), np.empty(0, np.uint64), np.empty(0))


def concatenate(batches: Sequence[Rows]) -> Rows:
    """The rows of all batches, in order; there must be at least one batch."""
    return Rows(
        np.concatenate([each.coordinates for each in batches], axis=1),
        np.concatenate([each.values for each in batches], axis=-1),
        np.concatenate([each.identity for each in batches]),
        np.concatenate([each.ticket for each in batches]),
    )


@dataclass(frozen=True, slots=True)
class Copies:
    """How many rows there are, stored or not, that equal each of some rows, and the seed of the draw which of them are meant."""

    counts: Integers
    seed: int

    def take(self, chosen: Mask) -> Copies:
        return Copies(self.counts[chosen], self.seed)


def kept_without(rows: Rows, gone: Rows, copies: Copies | None = None) -> Mask:
    """Which rows stay when each of `gone` takes away one row of its identity and values, if there is one.

    (An update leaves two rows of one identity for a moment; the old one must go.) Where rows are copies of each other, and only
    some of them are here, those that go are any of them: how many of them are here is drawn, which keeps a sample a random one.
    """
    content = rows.content
    order = np.argsort(content, kind="stable")
    known = content[order]
    wanted, place, counts = np.unique(gone.content, return_index=True, return_counts=True)
    first = np.searchsorted(known, wanted)
    there = np.searchsorted(known, wanted, side="right") - first
    hits = np.minimum(there, counts)
    if copies is not None:
        others = np.minimum(np.maximum(copies.counts[place] - there, 0), MOST_COPIES)
        drawn = np.random.default_rng(copies.seed).hypergeometric(there, others, np.minimum(counts, there + others))
        hits = np.where((there > 0) & (others > 0), drawn, hits)
    keep = np.ones(len(rows), bool)
    keep[order[np.repeat(first - np.cumsum(hits) + hits, hits) + np.arange(hits.sum())]] = False
    return keep


def mix(bits: Hashes) -> Hashes:
    """A bijection of 64-bit words whose outputs look independent (the finaliser of splitmix64; Steele, Lea, Flood 2014)."""
    with np.errstate(over="ignore"):
        mixed = bits + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def hash_columns(columns: Sequence[Floats | Hashes]) -> Hashes:
    """One hash per row of some columns of 64-bit numbers."""
    found = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        plain = column + 0.0 if column.dtype == np.float64 else column
        found = mix(found ^ mix(np.ascontiguousarray(plain).view(np.uint64)))
    return found


def tickets_of(identity: Hashes, seed: int) -> Floats:
    """Sampling numbers that depend on the identity and the seed alone: a deleted row has the ticket it was inserted with."""
    salted = mix(identity ^ mix(np.full(1, seed, np.int64).view(np.uint64)))
    return (salted >> np.uint64(11)).astype(np.float64) * 2.0**-53
