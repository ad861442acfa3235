"""The first pass: a view is made while a query runs, and the rest of the query reads it.

It is made on the way where that is expected to slow the query by at most a stated share; else, where it is worth it, in the
background.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa

from nearly.autoview.candidates import RESULT, Candidate
from nearly.autoview.estimates import ViewEstimates
from nearly.autoview.options import Option
from nearly.autoview.rewriter import NEW, Rewriter, Rewriting
from nearly.autoview.store import Encoded, MadeView, NoRoom, ViewStore, encoded
from nearly.engine.native.failures import NativeFailure
from nearly.engine.native.running import Running
from nearly.engine.planner import Prepared
from nearly.engine.plans import BrokenOff, plan_batches
from nearly.plan.nodes import Plan, Scan
from nearly.plan.remembered import Remembered

PATIENCE = 2.0
"""Making is given up when it has taken so many times what was expected, and more than the share of the query's time."""
MEMORY = 0.8
REMEMBERED = 2_000


class TooSlow(Exception):
    """Making a view takes much longer than was expected."""


@dataclass(frozen=True, slots=True)
class Usual:
    """The seconds that a query takes with the views it has: what was measured, else expected; and what the estimate is times."""

    expected: float
    measured: float | None = None

    @property
    def seconds(self) -> float:
        return self.expected if self.measured is None else self.measured

    @property
    def scale(self) -> float:
        """By how much estimates for this query are too small: the same plan, made into a view, is misjudged as much."""
        return self.seconds / max(self.expected, 1e-6)


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
    _given_up: Remembered[str, bool] = field(default_factory=lambda: Remembered(REMEMBERED))
    """A view that was too large or too slow to make would be so again; too slow for its query, once that was measured: before, the
    estimate of both may have been wrong."""
    is_over: bool = False
    _under_way: set[Running] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def end(self) -> None:
        """Break off what is being made, and begin no more; the queries go on without."""
        with self._lock:
            self.is_over = True
            under_way = list(self._under_way)
        for each in under_way:
            each.end()

    @contextmanager
    def _ending(self, running: Running) -> Iterator[None]:
        """While this is open, the end of all making ends this one; it is `BrokenOff` afterwards."""
        with self._lock:
            if self.is_over:
                raise BrokenOff
            self._under_way.add(running)
        try:
            yield
        finally:
            with self._lock:
                self._under_way.discard(running)

    def intention(self, prepared: Prepared, candidate: Candidate, option: Option, views: Sequence[MadeView]) -> Intention | None:
        """How a query makes a view; None where it cannot use it, or making it was given up before."""
        if prepared.query is None or candidate.id in self._given_up:
            return None
        rows = self.estimates.rows(candidate.stored.maintained, prepared.snapshot)
        found = self.rewriter.planned(prepared.query.plan, candidate, rows, prepared.snapshot)
        if found is None:
            return None
        source = self.rewriter.reuse(prepared, candidate.stored.maintained, views)
        writing = self.estimates.writing(candidate.stored.maintained, rows)
        return Intention(candidate, option, source, found[0], self._ratio * (source.seconds + writing), found[1])

    def fits(self, intended: Intention, usual: Usual) -> bool:
        """Whether making a view slows its query by at most the stated share; all is expected, so that errors are alike."""
        return intended.seconds + intended.rest_seconds <= (1 + self.share) * usual.expected

    def made(self, prepared: Prepared, intended: Intention, usual: Usual | None, running: Running) -> Encoded | None:
        """The rows of a view; None where they need too much room or, while their query waits, time.

        In the background there is no usual time. Interrupting `running` ends it with `BrokenOff`.
        """
        began = time.perf_counter()
        tables = [*prepared.snapshot, *(each.table for each in intended.source.views)]
        with self._ending(running), self.store.reading(intended.source.views) as there:
            if not there or not all(each.is_sound for each in intended.source.views):
                return None
            try:
                batches = plan_batches(self.estimates.engine, intended.source.plan, tables, running)
                with self.estimates.engine.reading(tables):
                    found = encoded(intended.candidate, _timed(batches, began, self._limit(intended, usual)), self.store.limit)
            except (NativeFailure, NoRoom, TooSlow) as trouble:
                self.estimates.engine.life.refuse_over()
                if not isinstance(trouble, TooSlow) or (usual is not None and usual.measured is not None):
                    self._given_up.add(intended.candidate.id, True)
                return None
        if usual is not None and usual.measured is not None:
            took = (time.perf_counter() - began) / max(usual.scale * intended.seconds, 1e-4)
            self._ratio = min(8.0, max(0.25, MEMORY * self._ratio + (1 - MEMORY) * self._ratio * took))
        return found

    def _limit(self, intended: Intention, usual: Usual | None) -> float | None:
        """Seconds after which making is given up; a result is never, since computing it is what the query is for."""
        if usual is None or intended.candidate.kind == RESULT:
            return None
        return max(PATIENCE * usual.scale * intended.seconds, self.share * usual.seconds)


def _timed(batches: Iterator[pa.RecordBatch], began: float, limit: float | None) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if limit is not None and time.perf_counter() - began > limit:
            raise TooSlow
        yield batch


def over(plan: Plan, view: MadeView) -> Plan:
    """The rest of a query over the view that was made for it."""
    return plan.transform(lambda node: replace(node, table=view.name) if isinstance(node, Scan) and node.table == NEW else node)
