"""One progressive query from its first batch to the exact answer."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from nearly.answer import Answer
from nearly.engine.exact import Engine, Prepared
from nearly.engine.kernel import finished
from nearly.engine.native_kernel import NativeFailure
from nearly.engine.result_log import ResultLog
from nearly.engine.state import State
from nearly.engine.stream_job import StreamJob
from nearly.engine.stream_task import Pace
from nearly.engine.units import units_of
from nearly.engine.worker import Settings
from nearly.errors import Unsupported, unknown
from nearly.plan.depth import deep_recursion
from nearly.plan.nodes import Query, Scan
from nearly.progressive.evaluation import Evaluation
from nearly.progressive.reading import Reading
from nearly.rewrite.order_joins import order_joins
from nearly.rewrite.stream import Cut, stream

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asks of a progressive query besides its text."""

    confidence: float = 0.95
    seed: int = 0
    streamed: frozenset[str] | None = None
    pace: Pace = field(default_factory=Pace)


@dataclass(slots=True)
class Run:
    """The execution of a prepared query; `id` names its log in the catalog."""

    engine: Engine
    prepared: Prepared
    request: Request
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    job: StreamJob | None = None
    last: Answer | None = None

    def answers(self) -> Iterator[Answer]:
        """Answers that tighten; the last one is exact. Closing the iterator stops the Spark job."""
        self.engine.verify(self.prepared)
        cut = self._cut()
        if cut is None or self.prepared.query is None:
            yield self._exact()
            return
        try:
            yield from self._progressive(cut, self.prepared.query)
        except (NativeFailure, Unsupported) as trouble:
            logger.info("no progressive answer (%s); the exact one follows", trouble)
            yield self._exact()
        finally:
            self.stop()

    def stop(self) -> None:
        """End the Spark job and forget the log."""
        if self.job is not None:
            self.job.stop()
            self.job.log.remove()

    @deep_recursion()
    def _cut(self) -> Cut | None:
        query = self.prepared.query
        if query is None or self.prepared.kernel != "native":
            return None
        names = {node.table for node in query.plan.walk() if isinstance(node, Scan)}
        for name in self.request.streamed or ():
            if name not in names:
                raise unknown("table of the query", name, names)
        try:
            return stream(order_joins(query.plan, self.engine.schema), self.engine.schema, self.request.streamed)
        except Unsupported as reason:
            logger.info("no progressive answer: %s", reason)
            return None

    def _progressive(self, cut: Cut, query: Query) -> Iterator[Answer]:
        started = time.perf_counter()
        native = self.engine.native
        units = units_of(cut, [self.engine.catalog.table(scan.table) for scan in cut.scans], self.request.seed)
        log = ResultLog(self.engine.catalog.path / "queries" / self.id)
        self.job = job = StreamJob(native, cut, units, log, self.request.pace)
        job.start()
        settings = Settings(native.cluster.sites.cores, native.memory_mb, native.cluster.time_zone)
        state = State(cut.stages, settings)
        evaluation = Evaluation(query, cut, state, self.request.confidence)
        positions: set[int] = set()
        heard: set[int] = set()
        look = 0
        for batch in job.batches():
            state.add(batch.tables)
            positions.update(job.groups(batch))
            heard.add(batch.site)
            if job.complete or len(heard) < len(job.fragments):
                continue
            look += 1
            stats: dict[str, Any] = {
                "seconds": time.perf_counter() - started, "units": len(positions), "state_rows": state.rows, "state_bytes": state.bytes,
                "batch_seconds": batch.seconds,
            }  # fmt: skip
            self.last = evaluation.answer(Reading.of(units, positions), look, stats)
            yield self.last
        if not job.complete:
            return
        if not cut.mergeable:
            yield self._exact()
            return
        table = finished(evaluation.exact_table(), query)
        facts = {"seconds": time.perf_counter() - started, "state_rows": state.rows, "state_bytes": state.bytes, "looks": look}
        self.last = Answer.exactly(table, "native", self.request.confidence, facts)
        yield self.last

    def _exact(self) -> Answer:
        result = self.engine.run(self.prepared)
        self.last = Answer.exactly(result.table, result.source, self.request.confidence, dict(result.stats))
        return self.last
