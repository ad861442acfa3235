"""The driver's side of a progressive query's data plane: compile the stages, start the Spark job, take batches as they come."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

from pyspark.errors import PySparkException
from sqlglot import exp

from nearly.engine.cluster import Sites
from nearly.engine.native_kernel import NativeFailure, NativeKernel
from nearly.engine.result_log import Batch, ResultLog
from nearly.engine.stream_task import Pace, StreamFragment, StreamTask, failures
from nearly.engine.units import Units
from nearly.engine.worker import PAYLOAD_SCHEMA, Settings
from nearly.errors import EngineError
from nearly.plan.expressions import columns_of
from nearly.plan.nodes import Aggregate, Input, Join, Output, Plan, Scan
from nearly.plan.properties import equated
from nearly.plan.render import NATIVE, render
from nearly.rewrite.stream import Cut

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.004


class StreamJob:
    """One Spark job that reads the units of a query, and the batches it has handed in."""

    def __init__(self, kernel: NativeKernel, cut: Cut, units: Units, log: ResultLog, pace: Pace) -> None:
        self.kernel = kernel
        self.units = units
        self.log = log
        self.sites = kernel.cluster.sites
        self.fragments = _Compiler(kernel, cut, units, self.sites).fragments(log, pace)
        self._positions = [0] * self.sites.executors
        self._thread: threading.Thread | None = None
        self._trouble: Exception | None = None
        self._tag = f"nearly-{log.path.name}"

    def start(self) -> None:
        """Submit the job; it runs until all units are read or it is stopped."""
        self.log.allow()
        self._trouble = None
        self._thread = threading.Thread(target=self._run, name=self._tag, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Have the job end now; what is read stays."""
        self.log.ask_to_stop()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def batches(self) -> Iterator[Batch]:
        """Batches in the order they arrive, until all units are in."""
        while not self.complete:
            running = self._thread is not None and self._thread.is_alive()
            found = self._arrived()
            yield from found
            if found:
                continue
            if not running:
                self._explain_the_end()
                return
            time.sleep(POLL_SECONDS)

    @property
    def complete(self) -> bool:
        return all(at >= fragment.units for at, fragment in zip(self._positions, self.fragments, strict=True))

    def groups(self, batch: Batch) -> list[int]:
        """The positions in the whole order of a batch's units."""
        return [place * self.sites.executors + batch.site for place in range(batch.start, batch.end)]

    def _arrived(self) -> list[Batch]:
        found = []
        for site, position in enumerate(self._positions):
            batch = self.log.read(site, position) if position < self.fragments[site].units else None
            if batch is not None:
                self._positions[site] = batch.end
                found.append(batch)
        return found

    def _run(self) -> None:
        spark = self.kernel.cluster.spark
        width = self.sites.executors
        try:
            spark.addTag(self._tag)
            frame = spark.range(0, width, 1, width).mapInArrow(StreamTask(self.fragments), PAYLOAD_SCHEMA)
            found = failures(frame.toArrow())
            if found:
                self._trouble = NativeFailure(found[0])
        except PySparkException as trouble:
            self._trouble = EngineError(f"the Spark job failed: {trouble}")
        finally:
            spark.removeTag(self._tag)

    def _explain_the_end(self) -> None:
        """A job that ended before its units did failed, unless it was stopped."""
        if self._trouble is not None:
            raise self._trouble
        if not self.complete and not self.log.stopped and not self._arrived_all():
            raise EngineError("the Spark job ended before all units were read; run the query again")

    def _arrived_all(self) -> bool:
        return all(self.log.end(site, at) > at or at >= self.fragments[site].units for site, at in enumerate(self._positions))


class _Compiler:
    """Stages to SQL: pieces of streamed tables by name, and subplans that do not change as tables loaded once."""

    def __init__(self, kernel: NativeKernel, cut: Cut, units: Units, sites: Sites) -> None:
        self.kernel = kernel
        self.cut = cut
        self.units = units
        self.sites = sites
        self.names = {scan: f"piece_{place}" for place, scan in enumerate(cut.scans)}
        self.statics: dict[str, str] = {}

    def fragments(self, log: ResultLog, pace: Pace) -> tuple[StreamFragment, ...]:
        stages = tuple((stage.name, self._sql(stage.plan)) for stage in self.cut.stages if stage.unit is not None)
        once = tuple((stage.name, self._sql(stage.plan)) for stage in self.cut.stages if stage.unit is None)
        settings = Settings(self.sites.cores, self.kernel.memory_mb, self.kernel.cluster.time_zone)
        queries = {scan: self.units.queries(self.kernel.reader, scan) for scan in self.cut.scans}
        for name, sql in (*stages, *once, *self.statics.items()):
            logger.debug("%s: %s", name, sql)
        found = []
        for site in range(self.sites.executors):
            mine = range(site, len(self.units.order), self.sites.executors)
            pieces = tuple(
                (self.names[scan], tuple(queries[scan][self.units.order[p]].format(group=self.units.group(p)) for p in mine))
                for scan in self.cut.scans
            )
            first = once if site == 0 else ()
            share = max(1, pace.first // self.sites.executors)
            found.append(
                StreamFragment(stages, first, tuple(self.statics.items()), pieces, settings, str(log.path), replace(pace, first=share))
            )
        return tuple(found)

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
        body = self._render(plan)
        tables = sorted({node.table for node in plan.walk() if isinstance(node, Scan)})
        versions = [self.kernel.catalog.table(name).version for name in tables]
        name = f"static_{hashlib.sha256(f'{versions} {body}'.encode()).hexdigest()[:16]}"
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
    return Aggregate(join.right, tuple(Output(key.name, key) for key in keys), ())


