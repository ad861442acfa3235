"""Which rows an answer may still get or lose, and how much that may change it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow as pa

from nearly.answer import UnseenRows
from nearly.estimate.distinct import unseen_at_most
from nearly.estimate.incidence import Incidence
from nearly.plan.nodes import GroupBy
from nearly.progressive.cells import RowChanges
from nearly.progressive.reading import Reading
from nearly.rewrite.weigh.weighted import RowSet


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """What is known of the keys of aggregates: models of those seen, and how many there are in all, where they were counted."""

    models: dict[GroupBy, Incidence]
    counts: dict[GroupBy, int]

    def unseen(self, aggregate: GroupBy, reading: Reading, failure: float) -> UnseenRows | None:
        """The keys that are still to come.

        About how many there are is told by those that were seen in few groups of units. That no key was is no proof that there are
        none: of shuffled rows it leaves room for some rare ones, of others for any number that lie together in a stretch.
        """
        model = self.models.get(aggregate)
        if model is None:
            return None
        if aggregate in self.counts:
            left = self.counts[aggregate] - model.seen
            return UnseenRows(left, left)
        bounded = model.is_settled and reading.plan.mixed
        return UnseenRows(model.unseen, unseen_at_most(reading.share, failure) if bounded else math.inf)


def rows_of(rows: RowSet, shown: int, known: KnownKeys, reading: Reading, failure: float) -> RowChanges:
    """What is known of the rows of an answer that shows some of them; new keys of an aggregate may each bring a row."""
    if rows.final:
        return RowChanges()
    unseen = _unseen(rows, shown, known, reading, failure)
    if rows.undecided:
        return RowChanges(False, unseen, pa.array([True] * shown, pa.bool_()), math.inf)
    if unseen is None:
        return RowChanges(False, None, None, math.inf)
    error = 0.0 if not unseen.most else unseen.most / shown if shown else math.inf
    return RowChanges(not unseen.most, unseen, None, error)


def _unseen(rows: RowSet, shown: int, known: KnownKeys, reading: Reading, failure: float) -> UnseenRows | None:
    """Rows to come: as many as there are for what was read of what is open, and one for each key of what has keys."""
    if rows.open:
        return UnseenRows(shown * (reading.weight - 1))
    return known.unseen(rows.keys[0], reading, failure) if len(rows.keys) == 1 else None
