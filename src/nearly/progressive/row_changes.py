"""Which rows an answer may still get or lose, and how much that may change it."""

from __future__ import annotations

import math

import pyarrow as pa

from nearly.answer import UnseenRows
from nearly.estimate.distinct import unseen_at_most
from nearly.estimate.incidence import Incidence
from nearly.plan.nodes import Aggregate
from nearly.progressive.cells import Rows
from nearly.progressive.reading import Reading
from nearly.rewrite.weighted import RowSet


def rows_of(rows: RowSet, shown: int, models: dict[Aggregate, Incidence], reading: Reading, failure: float) -> Rows:
    """What is known of the rows of an answer that shows some of them.

    New keys of an aggregate may each bring a row. How many there may be is told by those that were seen in few groups of units;
    that no key was is no proof that there are none.
    """
    if rows.final:
        return Rows()
    tentative = pa.array([True] * shown, pa.bool_()) if rows.undecided else None
    unseen = _unseen(rows, shown, models, reading, failure)
    if rows.undecided or unseen is None:
        return Rows(False, unseen, tentative, math.inf)
    return Rows(False, unseen, tentative, unseen.most / shown if shown else math.inf)


def _unseen(rows: RowSet, shown: int, models: dict[Aggregate, Incidence], reading: Reading, failure: float) -> UnseenRows | None:
    """Rows to come: as many as there are for what was read of what is open, and one for each key of what has keys."""
    if rows.open:
        return UnseenRows(shown * (reading.weight - 1))
    if len(rows.keys) != 1:
        return None
    model = models.get(rows.keys[0])
    if model is None:
        return None
    return UnseenRows(model.unseen, unseen_at_most(reading.share, failure) if model.is_settled else math.inf)
