"""The first pass: a view is made while a query runs, and the rest of the query reads it.

It is made on the way where that is expected to slow the query by at most a stated share; else, where it is worth it, in the
background.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from nearly.autoview.candidates import Candidate
from nearly.autoview.estimates import ViewEstimates
from nearly.autoview.options import Option
from nearly.autoview.rewriter import NEW, Rewriter, Rewriting
from nearly.autoview.store import Encoded, MadeView, NoRoom, ViewStore, encoded
from nearly.engine.native.failures import NativeFailure
from nearly.engine.planner import Prepared
from nearly.engine.plans import plan_batches
from nearly.plan.nodes import Plan, Scan

PATIENCE = 2.0
"""Making is given up when it has taken so many times what was expected, and more than the share of the query's time."""
MEMORY = 0.8


class TooSlow(Exception):
    """Making a view takes much longer than was expected."""


@dataclass(frozen=True, slots=True)
class Intention:
    """A view to make while a query runs: how it is computed, the rest of the query over it, and the seconds of both."""

    candidate: Candidate
    option: Option
    source: Rewriting
    rest: Plan
    seconds: float
    rest_seconds: float


@dataclass(slots=True)
class Making:
    """Makes views; what that took corrects what is expected."""

    estimates: ViewEstimates
    rewriter: Rewriter
    store: ViewStore
    share: float
    _ratio: float = 1.0

    def intention(self, prepared: Prepared, candidate: Candidate, option: Option, views: Sequence[MadeView]) -> Intention | None:
        """How a query makes a view; None where it cannot use it."""
        if prepared.query is None:
            return None
        rows = self.estimates.rows(candidate.stored.maintained, prepared.snapshot)
        found = self.rewriter.planned(prepared.query.plan, candidate, rows, prepared.snapshot)
        if found is None:
            return None
        source = self.rewriter.reuse(prepared, candidate.stored.maintained, views)
        writing = self.estimates.writing(candidate.stored.maintained, rows)
        return Intention(candidate, option, source, found[0], self._ratio * (source.seconds + writing), found[1])

    def fits(self, intended: Intention, usual: float) -> bool:
        """Whether making a view slows a query, which usually takes some seconds, by at most the stated share."""
        return intended.seconds + intended.rest_seconds <= (1 + self.share) * usual

    def made(self, prepared: Prepared, intended: Intention, usual: float | None) -> Encoded | None:
        """The rows of a view; None where they need too much room or, for a query that usually takes some seconds, time."""
        began = time.perf_counter()
        limit = None if usual is None else max(PATIENCE * intended.seconds, self.share * usual)
        tables = [*prepared.snapshot, *(each.table for each in intended.source.views)]
        with self.store.reading(intended.source.views) as there:
            if not there or not all(each.is_sound for each in intended.source.views):
                return None
            try:
                batches = plan_batches(self.estimates.engine, intended.source.plan, tables)
                with self.estimates.engine.reading(tables):
                    found = encoded(intended.candidate, _timed(batches, began, limit), self.store.limit)
            except (NativeFailure, NoRoom, TooSlow):
                self.estimates.engine.life.refuse_over()
                return None
        took = time.perf_counter() - began
        self._ratio = min(8.0, max(0.25, MEMORY * self._ratio + (1 - MEMORY) * self._ratio * took / max(intended.seconds, 1e-4)))
        return found


def _timed(batches: Iterator[pa.RecordBatch], began: float, limit: float | None) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if limit is not None and time.perf_counter() - began > limit:
            raise TooSlow
        yield batch


def over(plan: Plan, view: MadeView) -> Plan:
    """The rest of a query over the view that was made for it."""
    return plan.transform(lambda node: replace(node, table=view.name) if isinstance(node, Scan) and node.table == NEW else node)
