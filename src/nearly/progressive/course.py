"""The course of a progressive run: from its first batch to the exact answer.

reading ──an answer is due──▶ deciding ──all ranges hold──▶ answering ──▶ reading
   │                             │
   │                             └──one broke──▶ rewinding ──▶ reading
   │
   ├──a task ran the whole query──▶ over
   └──all units are read──▶ finishing ──▶ over
                                └──a decision was wrong──▶ rewinding
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from nearly.answer import Answer
from nearly.engine.results import finished
from nearly.engine.stream.job import StreamJob
from nearly.engine.stream.result_log import UnitBatch
from nearly.engine.stream.task import ANSWER, Pace
from nearly.engine.stream.unit_state import UnitState
from nearly.errors import Unsupported
from nearly.plan.nodes import BoundQuery
from nearly.progressive.evaluation import Evaluation
from nearly.progressive.progress import Progress
from nearly.progressive.reading import UnitsRead

STATE_ROWS = 5_000_000
"""Rows and partial results that the driver keeps; a query with more of them ends with an exact run, whose merge is distributed."""


class Phase(Enum):
    """Where a run is."""

    READING = "reading"
    DECIDING = "deciding"
    ANSWERING = "answering"
    REWINDING = "rewinding"
    FINISHING = "finishing"
    OVER = "over"


Way = Generator[Answer, None, Phase]
"""The answers that a phase gives, and the phase after it."""


@dataclass(slots=True)
class Course:
    """One run under way. `batches` are what arrives until all units are read or the run is stopped; `exact` runs the query anew."""

    query: BoundQuery
    job: StreamJob
    state: UnitState
    progress: Progress
    evaluation: Evaluation
    pace: Pace
    batches: Callable[[], Iterator[UnitBatch]]
    is_stopped: Callable[[], bool]
    exact: Callable[[], Answer]
    started: float
    known: list[int]
    """Where the log of each site ended when the run began: what a killed one read before is not answered again."""
    confidence: float
    _arriving: Iterator[UnitBatch] | None = None
    _arrived: float = 0.0
    _reading: UnitsRead | None = None
    _valid: int = 0
    _phase: Phase = field(default=Phase.READING)

    def answers(self) -> Iterator[Answer]:
        """Answers that tighten; the last one is exact unless the run is stopped."""
        phases: dict[Phase, Callable[[], Way]] = {
            Phase.READING: self._read,
            Phase.DECIDING: self._decide,
            Phase.ANSWERING: self._answer,
            Phase.REWINDING: self._rewind,
            Phase.FINISHING: self._finish,
        }
        while self._phase is not Phase.OVER:
            self._phase = yield from phases[self._phase]()

    def publish(self) -> None:
        """Tell the tasks by which ranges to decide."""
        ranges = self.progress.ranges
        if ranges.stages:
            self.job.log.write_ranges(ranges.version, ranges.tables())

    def foresee(self, tables: dict[str, pa.Table], end: int) -> None:
        """Ranges from the first batch's other stages, before its rows that wait are decided."""
        self.progress.ranges.foresee(tables, UnitsRead.of(self.progress.units, range(end)))
        self.publish()

    def _read(self) -> Way:
        """Take in batches until an answer is due."""
        self._arriving = self._arriving or self.batches()
        for batch in self._arriving:
            self._arrived = time.perf_counter()
            self.progress.add(batch, self.job.positions(batch))
            if batch.exact:
                yield self._exactly(batch.tables[ANSWER])
                return Phase.OVER
            self.state.add(batch.tables)
            if self.state.rows > STATE_ROWS:
                raise Unsupported(f"the units read so far left {self.state.rows:,} rows to merge, too many for the driver")
            if self._is_due(batch):
                return Phase.DECIDING
        self._arriving = None
        if self.is_stopped():
            return Phase.OVER
        return Phase.FINISHING if self.job.complete else Phase.READING

    def _is_due(self, batch: UnitBatch) -> bool:
        new = self.progress.new(len(self.job.fragments)) and batch.end >= self.known[batch.site]
        waited = self._arrived - self.progress.answered
        return not self.job.complete and new and self.pace.is_due(waited, self.progress.evaluation)

    def _decide(self) -> Way:
        """Check the variation ranges, and renew them; when one broke, go back to before it was used."""
        yield from ()
        progress, ranges = self.progress, self.progress.ranges
        self._reading = UnitsRead.of(progress.units, progress.positions)
        progress.checked = len(progress.positions)
        if not ranges.stages or ranges.hopeless:
            return Phase.ANSWERING
        before = ranges.version
        self._valid = ranges.valid(self._reading)
        if self._valid < before:
            return Phase.REWINDING
        self.publish()
        progress.recomputed += ranges.undecided()
        ranges.fold()
        return Phase.ANSWERING

    def _answer(self) -> Way:
        """Look at what is known, and show it where it says something."""
        assert self._reading is not None  # noqa: S101  decided before
        progress = self.progress
        progress.looks += 1
        self.job.log.note_looks(progress.looks)
        facts = progress.facts(self.state) | {"seconds": time.perf_counter() - self.started}
        answer = self.evaluation.answer(self._reading, progress.looks, facts)
        progress.answered = time.perf_counter()
        progress.evaluation = answer.stats["answer_seconds"] = progress.answered - self._arrived
        self.job.go_on()
        yield answer
        return Phase.READING

    def _rewind(self) -> Way:
        """Read again what was decided by ranges that did not hold."""
        yield from ()
        progress = self.progress
        progress.recoveries += 1
        progress.reread += self.job.rewind(self._valid)
        progress.begin_again()
        self.state.clear()
        self.publish()
        self.job.start()
        self._arriving = None
        return Phase.READING

    def _finish(self) -> Way:
        """Decisions were right if the exact values lie in the ranges; if not, everything is read again without ranges."""
        ranges = self.progress.ranges
        if ranges.stages and not ranges.hopeless and not ranges.holds_exactly():
            ranges.give_up()
            self._valid = 0
            return Phase.REWINDING
        yield self._exactly(self.evaluation.exact_table()) if self.evaluation.cut.mergeable else self.exact()
        return Phase.OVER

    def _exactly(self, table: pa.Table) -> Answer:
        facts = self.progress.facts(self.state) | {"seconds": time.perf_counter() - self.started}
        return Answer.exactly(finished(table, self.query), "native", self.confidence, facts)
