"""The driver's side of a progressive query's data plane: compile the stages, start the Spark job, take batches as they come."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import duckdb
from sqlglot import exp

from nearly.engine import spark_names
from nearly.engine.jobs.native_kernel import NativeKernel
from nearly.engine.native.failures import explained
from nearly.engine.native.first_units import FirstPiece
from nearly.engine.native.payload import PAYLOAD_SCHEMA
from nearly.engine.spark.cluster import Sites
from nearly.engine.stream.result_log import ResultLog, UnitBatch
from nearly.engine.stream.task import Exact, Foresight, Pace, StreamFragment, StreamTask, failures, read_ahead, read_units
from nearly.engine.stream.units import Units, columns_read
from nearly.errors import EngineError
from nearly.plan.expressions import columns_of
from nearly.plan.nodes import GroupBy, Input, Join, Output, Plan, Scan
from nearly.plan.properties import equated
from nearly.plan.render import NATIVE, render
from nearly.rewrite.stream.cut import Cut

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.004
FIRST_SECONDS = 0.5
"""A first answer that the driver makes by itself has the machine for itself, for at most so long; then Spark's job is started."""

DRIVER_STATICS = 0.05
"""The driver reads a first batch when what it must load for that is at most this share of the streamed rows."""


class StreamJob:
    """One Spark job that reads the units of a query, and the batches it has handed in.

    With one site and little to load, a thread of the driver reads the first batch, and more while Spark starts the job.
    """

    def __init__(self, kernel: NativeKernel, cut: Cut, units: Units, log: ResultLog, pace: Pace, plan: Plan, question: str) -> None:
        self.kernel = kernel
        self.units = units
        self.log = log
        self.sites = kernel.cluster.sites
        compiler = _Compiler(kernel, cut, units, self.sites)
        self.fragments = compiler.fragments(log, pace, self._exact(pace, plan, question))
        self._first = compiler.first_pieces(self.fragments[0])
        self._driver_first = self.sites.executors == 1 and compiler.missing_rows <= DRIVER_STATICS * units.total_rows
        self._positions = [0] * self.sites.executors
        self._threads: list[threading.Thread] = []
        self._trouble: Exception | None = None
        self._tag = f"nearly-{log.path.name}"
        self._started = 0.0
        self._go = threading.Event()
        self._kept = False
        self._lock = threading.Lock()
        self._halt = threading.Event()
        self._closed = False

    def _exact(self, pace: Pace, plan: Plan, question: str) -> Exact | None:
        """The query as a whole, when a task is to run it right after the first batch; several sites share the work by units."""
        expected = self.kernel.durations.expected(question, plan, self.kernel.catalog.schema, self.sites.cores)
        return Exact(*self.kernel.whole(plan)) if self.sites.executors == 1 and pace.hurries(expected) else None

    def start(self, foresee: Foresight | None = None) -> None:
        """Submit the job; it runs until all units are read or it is stopped. One that is closed is not started again."""
        with self._lock:
            if self._closed:
                return
            self.log.allow()
            self._halt.clear()
            self._trouble = None
            self._started = time.monotonic()
            threads = [threading.Thread(target=self._run, name=self._tag, daemon=True)]
            if self._driver_first and self.log.end(0) == 0:
                threads.append(threading.Thread(target=self._read_ahead, args=(foresee,), name=f"{self._tag}-ahead", daemon=True))
            else:
                self.go_on()
            self.kernel.turns.begin(self)
            for thread in threads:
                thread.start()
            self._threads = threads

    def go_on(self) -> None:
        """The first answer is there, or there will be none from the driver alone."""
        self._go.set()

    def rewind(self, valid: int) -> int:
        """Take back all batches decided under ranges newer than a version; how many units will be read again."""
        self.stop()
        self._positions = [0] * len(self._positions)
        return sum(self.log.forget_after(site, valid) for site in range(len(self.fragments)))

    def stop(self) -> None:
        """Have the job end now; what is read stays."""
        self._halt.set()
        self.go_on()
        try:
            self.log.ask_to_stop()
        except EngineError:  # the disk is full: Spark is told itself
            if not self.kernel.alone:
                self.kernel.cluster.spark.interruptTag(self._tag)
        self._end()

    def close(self) -> None:
        """Have the job end now, for good, and forget what it read."""
        with self._lock:
            self._closed = True
        self._halt.set()
        self.go_on()
        self.log.remove()
        self._end()

    def batches(self) -> Iterator[UnitBatch]:
        """Batches in the order they arrive, until all units are in or the job is stopped."""
        while not self.complete:
            running = any(thread.is_alive() for thread in self._threads)
            found = self._arrived()
            yield from found
            if found:
                self._take_turns()
            elif running:
                time.sleep(POLL_SECONDS)
            elif self._trouble is None and self.log.yielding:
                self.start()
            else:
                self._explain_the_end()
                return
        self._end()

    def _end(self) -> None:
        for thread in self._threads:
            thread.join()
        self._threads = []
        self.kernel.turns.end(self)
        if self.sites.executors == 1 and self._positions[0] and not self._kept:
            self._kept = True  # a job may end several times: when it is paused, and when the run is over
            self.kernel.samples.keep(self._first, self.fragments[0].statics, lambda: self.kernel.turns.any)

    def _take_turns(self) -> None:
        """With more queries than task slots, a job that had its turn goes to the end of Spark's queue."""
        slots = self.sites.executors * self.sites.cores
        if self.kernel.turns.is_over(time.monotonic() - self._started, slots):
            with suppress(EngineError):  # then it goes on
                self.log.ask_to_yield()

    def _read_ahead(self, foresee: Foresight | None) -> None:
        try:
            with self.kernel.samples.holding(self._first) as kept:
                for _ in read_ahead(self.fragments[0], self.kernel.local, foresee, kept, self._halt):
                    self._go.wait(FIRST_SECONDS)
        except Exception as trouble:  # noqa: BLE001  raised where the batches are waited for
            self._trouble = _explained(trouble)
            self._halt.set()
            with suppress(EngineError):  # a task that cannot be told meets the same trouble
                self.log.ask_to_stop()
            self.go_on()

    @property
    def complete(self) -> bool:
        return all(at >= fragment.units for at, fragment in zip(self._positions, self.fragments, strict=True))

    def positions(self, batch: UnitBatch) -> list[int]:
        """The positions in the whole order of a batch's units."""
        return [place * self.sites.executors + batch.site for place in range(batch.start, batch.end)]

    def _arrived(self) -> list[UnitBatch]:
        found = []
        for site, position in enumerate(self._positions):
            batch = self.log.read(site, position) if position < self.fragments[site].units else None
            if batch is not None:
                self._positions[site] = batch.end
                found.append(batch)
        return found

    def _run(self) -> None:
        """Start the Spark job and wait for its end; as long as there is no Spark, do the task's work here."""
        self._go.wait(FIRST_SECONDS)
        if self._halt.is_set() or self.log.stopped:
            return
        try:
            if self.kernel.alone:
                read_units(self.fragments[0], 0, self.kernel.local, self._halt)
            else:
                self._run_job(self.kernel.cluster.spark)
        except Exception as trouble:  # noqa: BLE001  raised where the batches are waited for
            self._trouble = self._trouble or _explained(trouble)

    def _run_job(self, spark: Any) -> None:
        width = self.sites.executors
        spark.addTag(self._tag)
        try:
            frame = spark.range(0, width, 1, width).mapInArrow(StreamTask(self.fragments), PAYLOAD_SCHEMA)
            for trouble in failures(frame.toArrow()):
                raise trouble
        finally:
            with suppress(*spark_names.troubles(), OSError):  # Spark may be gone
                spark.removeTag(self._tag)

    def _explain_the_end(self) -> None:
        """A job that ended before its units did failed, unless it was stopped here."""
        if self._halt.is_set() and self._trouble is None:
            return
        if self._trouble is not None:
            raise self._trouble
        if not self.log.exists:
            raise EngineError(f"the query's log {self.log.path} was removed while it ran; run the query again")
        if not self.complete and not self._arrived_all():
            raise EngineError("the Spark job ended before all units were read; run the query again")

    def _arrived_all(self) -> bool:
        return all(self.log.end(site, at) > at or at >= self.fragments[site].units for site, at in enumerate(self._positions))


def _explained(trouble: Exception) -> Exception:
    """What to raise for an error of a thread that reads."""
    if isinstance(trouble, duckdb.Error):
        return explained(trouble)
    return EngineError(f"the Spark job failed: {trouble}") if isinstance(trouble, spark_names.troubles()) else trouble


class _Compiler:
    """Stages to SQL: pieces of streamed tables by name, and subplans that do not change as tables loaded once."""

    def __init__(self, kernel: NativeKernel, cut: Cut, units: Units, sites: Sites) -> None:
        self.kernel = kernel
        self.cut = cut
        self.units = units
        self.sites = sites
        self.names = {scan: f"piece:{place}" for place, scan in enumerate(cut.scans)}
        self.statics: dict[str, str] = {}
        self.missing_rows = 0
        """Rows of tables that the driver would have to read for the static inputs that it has not in memory."""

    def fragments(self, log: ResultLog, pace: Pace, exact: Exact | None) -> tuple[StreamFragment, ...]:
        """What each site reads; only the first batch is read by pieces when the exact answer comes next."""
        streamed = [stage for stage in self.cut.stages if stage.streamed]
        stages = tuple((stage.name, self._sql(stage.plan)) for stage in streamed if stage.waiting is None)
        waiting = tuple((stage.name, self._sql(stage.plan)) for stage in streamed if stage.waiting is not None)
        once = tuple((stage.name, self._sql(stage.plan)) for stage in self.cut.stages if not stage.streamed)
        settings = self.kernel.settings
        end = len(self.units.order) if exact is None else pace.end(0, [unit.rows for unit in self.units.order], ())
        queries = {scan: self.units.queries(self.kernel.reader, scan, end) for scan in self.names}
        for name, sql in (*stages, *waiting, *once, *self.statics.items()):
            logger.debug("%s: %s", name, sql)
        found = []
        for site in range(self.sites.executors):
            mine = range(site, len(self.units.order), self.sites.executors)
            pieces = tuple(
                (self.names[scan], tuple(queries[scan][place] for place in mine if place < end)) for scan in self.cut.scans
            )
            rows = tuple(self.units.order[place].rows for place in mine)
            first = once if site == 0 else ()
            part = replace(pace, first=max(1, pace.first // self.sites.executors))
            statics = tuple(self.statics.items())
            found.append(StreamFragment(stages, waiting, first, statics, pieces, rows, settings, str(log.path), part, exact))
        return tuple(found)

    def first_pieces(self, fragment: StreamFragment) -> tuple[FirstPiece, ...]:
        """What the first batch reads of each streamed table."""
        end = fragment.pace.end(0, fragment.rows, ())

        def piece(scan: Scan) -> FirstPiece:
            query = partial(self.units.first, self.kernel.reader, scan, end=end)
            return FirstPiece(self.names[scan], self.units.rows_before(scan, end), columns_read(scan), query)

        return tuple(piece(scan) for scan in self.cut.scans)

    def _sql(self, plan: Plan) -> str:
        if not self._streams(plan):
            return self._render(plan)
        return self._render(self._with_statics(plan))

    def _streams(self, plan: Plan) -> bool:
        return any(isinstance(node, Scan) and node.share == "units" for node in plan.walk())

    def _with_statics(self, plan: Plan) -> Plan:
        """The plan with every maximal subplan that streams nothing as an input that the worker computes once."""
        if isinstance(plan, Join) and plan.kind in ("semi", "anti") and not self._streams(plan.right):
            plan = replace(plan, right=_distinct_keys(plan))
        return plan.map_children(lambda child: self._with_statics(child) if self._streams(child) else self._static(child))

    def _static(self, plan: Plan) -> Plan:
        if isinstance(plan, Input):
            return plan
        body = self._render(plan)
        tables = sorted({node.table for node in plan.walk() if isinstance(node, Scan)})
        versions = [self.kernel.catalog.table(name).content for name in tables]
        name = f"static_{hashlib.sha256(f'{versions} {body}'.encode()).hexdigest()[:16]}"
        if name not in self.statics and not self.kernel.local.has(name):
            self.missing_rows += sum(self.kernel.catalog.table(each).rows for each in tables)
        self.statics[name] = body
        return Input(name, plan.columns)

    def _render(self, plan: Plan) -> str:
        def source(leaf: Scan | Input) -> exp.Expr:
            if isinstance(leaf, Input):
                return exp.Table(this=exp.to_identifier(leaf.source, quoted=True))
            if leaf in self.names:
                return exp.Table(this=exp.to_identifier(self.names[leaf], quoted=True))
            return self.kernel.stored(leaf)

        return render(plan, NATIVE, source)


def _distinct_keys(join: Join) -> Plan:
    """The right side of a semi or anti join that only compares keys: each key once is enough."""
    pairs = equated(join)
    keys = tuple(dict.fromkeys(right for _, right in pairs))
    read = columns_of(join.condition) & join.right.names if join.condition is not None else frozenset()
    if not keys or read != {key.name for key in keys}:
        return join.right
    return GroupBy(join.right, tuple(Output(key.name, key) for key in keys), ())
