"""One progressive query from its first batch to the exact answer."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearly.answer import Answer
from nearly.engine.engine import Engine
from nearly.engine.native.durations import PIECES, cells
from nearly.engine.native.failures import NativeFailure
from nearly.engine.native.running import Ending, Stopped
from nearly.engine.planner import Prepared
from nearly.engine.storage.catalog import Catalog, Snapshot
from nearly.engine.storage.layouts import Table
from nearly.engine.storage.pins import PINNED, read_pin
from nearly.engine.stream.job import StreamJob
from nearly.engine.stream.query_logs import QueryLogs
from nearly.engine.stream.result_log import ResultLog, UnitBatch
from nearly.engine.stream.task import Pace
from nearly.engine.stream.unit_state import UnitState
from nearly.engine.stream.units import Units, units_of
from nearly.errors import EngineError, UnknownName, Unsupported, unknown
from nearly.plan.depth import deep_recursion
from nearly.plan.nodes import BoundQuery, GroupBy, Scan
from nearly.progressive.certain import CertainBounds
from nearly.progressive.course import Course
from nearly.progressive.evaluation import Evaluation
from nearly.progressive.key_rooms import KeyRooms
from nearly.progressive.progress import Progress
from nearly.progressive.ranges import SLACK, VariationRanges
from nearly.rewrite.passes import for_units
from nearly.rewrite.stream.census import KEYS, census
from nearly.rewrite.stream.cut import Cut

logger = logging.getLogger(__name__)

CENSUS_SHARE = 0.5
"""Keys are counted when that reads at most this share of the values that the query reads."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asks of a progressive query besides its text."""

    confidence: float = 0.95
    seed: int = 0
    streamed: frozenset[str] | None = None
    pace: Pace = field(default_factory=Pace)
    slack: float = SLACK


@dataclass(slots=True, eq=False, weakref_slot=True)
class Run:
    """The execution of a prepared query; `id` names its log in the catalog.

    Law: `stop` ends it whenever it comes, before the first batch or twice, from any thread.
    """

    engine: Engine
    prepared: Prepared
    request: Request
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    last: Answer | None = None
    used: bool = False
    goal: float | None = None
    """The error at which somebody stops."""
    only_early: bool = False
    """Whether the exact answer is left to others."""
    _job: StreamJob | None = None
    _state: UnitState | None = None
    _log: ResultLog | None = None
    _owned: ExitStack = field(default_factory=ExitStack)
    _letting_go: threading.RLock = field(default_factory=threading.RLock)
    _ended: threading.Event = field(default_factory=threading.Event)
    _ending: Ending = field(default_factory=Ending)
    _go: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.engine = self.engine.at(self.prepared.snapshot).until(self._ending)
        self._go.set()

    def answers(self) -> Generator[Answer]:
        """Answers that tighten; the last one is exact unless the run is stopped. Closing the iterator stops the Spark job."""
        self.used = True
        self.engine.life.begin(self)
        with self.engine.reading(self.prepared.snapshot):
            try:
                yield from self._answers()
            except Stopped:
                self.engine.life.refuse_over()

    def early(self) -> Answer | None:
        """The first answer, and no other; None where none comes well before the exact one. Then the run is over."""
        self.only_early = True
        answers = self.answers()
        try:
            return next(answers, None)
        finally:
            answers.close()

    def _answers(self) -> Generator[Answer]:
        cut = self.cut()
        if self._ended.is_set():
            return
        units = None if cut is None else self.units(cut)
        if cut is None or units is None or self.prepared.query is None or not self._comes_early(cut, units, self.prepared.query):
            if not self.only_early:
                yield self._exact()
            return
        try:
            yield from self._progressive(cut, units, self.prepared.query)
        except (NativeFailure, Unsupported) as trouble:
            if self._ended.is_set():
                return
            logger.info("no more progressive answers (%s); the exact one follows", trouble)
            self._let_go()
            if not self.only_early:
                yield self._exact()
        except EngineError:
            if not self._ended.is_set():  # a stop takes the log away, also while it is being written
                raise
        finally:
            self.stop()
            if self._state is not None:
                self._state.close()
        if self.last is None or not self.last.exact:
            self.engine.life.refuse_over()

    def stop(self) -> None:
        """End the Spark job, within a moment, and forget what it read; the last answer stays."""
        self._ended.set()
        self._go.set()
        self._ending.wish()
        self._let_go()

    def _let_go(self) -> None:
        with self._letting_go:
            if self._job is not None:
                self._job.close()
            if self._log is not None:
                self._log.remove()
            self._owned.close()

    def pause(self) -> None:
        """Free Spark until `resume`; what was read is kept."""
        self._go.clear()
        if self._job is not None:
            self._job.stop()

    def resume(self) -> None:
        self._go.set()

    @deep_recursion()
    def cut(self) -> Cut | None:
        """What is read unit by unit; None when the exact answer is the only one there is."""
        query = self.prepared.query
        if query is None or self.prepared.kernel != "native":
            return None
        names = {node.table for node in query.plan.walk() if isinstance(node, Scan)}
        for name in self.request.streamed or ():
            if name not in names:
                raise unknown("table of the query", name, names)
        try:
            return for_units(query.plan, self.engine.catalog.schema, self.request.streamed)
        except Unsupported as reason:
            logger.info("no progressive answer: %s", reason)
            return None

    def units(self, cut: Cut) -> Units:
        """The units of a cut in the order they are read."""
        return units_of(cut, [self.engine.catalog.table(scan.table) for scan in cut.scans], self.request.seed)

    def _comes_early(self, cut: Cut, units: Units, query: BoundQuery) -> bool:
        """Whether a first answer is worth it: it comes well before the exact one, or is asked for all the same."""
        pace, native = self.request.pace, self.engine.native
        if pace.sizes or self.request.streamed is not None:
            return True
        rows = [unit.rows for unit in units.order]
        share = sum(rows[: pace.end(0, rows, ())]) / max(units.total_rows, 1)
        streamed = sum(cells(scan, native.catalog.schema) for scan in cut.scans)
        whole = max(sum(cells(stage.plan, native.catalog.schema) for stage in cut.stages) - streamed, 0)
        first = (whole + PIECES * share * streamed) / max(cells(query.plan, native.catalog.schema), 1)
        cores = native.cluster.sites.cores
        expected = native.durations.expected(self.prepared.question, query.plan, native.catalog.schema, cores)
        return native.durations.is_worth(expected, len(cut.stages), first)

    def _progressive(self, cut: Cut, units: Units, query: BoundQuery) -> Iterator[Answer]:
        course = self._course(cut, units, query)
        self._go.wait()
        course.job.start(course.foresee if course.progress.ranges.stages else None)
        course.state.open()
        course.evaluation.certain.prepare()
        for self.last in course.answers():
            if self.last.exact and "reading_seconds" in self.last.stats:
                self.engine.native.durations.record(self.prepared.question, self.last.stats["reading_seconds"])
            if self.last.exact or self.request.pace.sizes or _says_something(self.last):
                yield self.last

    def _course(self, cut: Cut, units: Units, query: BoundQuery) -> Course:
        """All that a run goes by, made or taken from the log of a killed one."""
        native, request, started = self.engine.native, self.request, time.perf_counter()
        log = self._opened()
        self._describe(log, units)
        job = self._adopted(StreamJob(native, cut, units, log, request.pace, query.plan, self.prepared.question))
        self._state = state = UnitState(cut.stages, native.settings, native.spare)
        progress = Progress(units, VariationRanges(cut, state, request.slack), looks=log.looks)
        version, tables = log.read_ranges()
        if version and progress.ranges.stages:
            progress.ranges.restore(version, tables)
        certain = CertainBounds(cut, units, state)
        rooms = KeyRooms(cut, units)
        evaluation = Evaluation(query, cut, state, request.confidence, certain, rooms, self.goal, self._counter(cut, query))
        known = [log.end(site) for site in range(len(job.fragments))]
        course = Course(
            query, job, state, progress, evaluation, request.pace, lambda: self._batches(job), self._ended.is_set, self._exact,
            started, known, request.confidence,
        )  # fmt: skip
        course.publish()
        return course

    def _counter(self, cut: Cut, query: BoundQuery) -> Callable[[GroupBy], int | None]:
        """Counts keys exactly where that reads far less than the query; else it is better to read on."""
        native = self.engine.native

        def count(aggregate: GroupBy) -> int | None:
            plan = census(aggregate, cut.stages)
            if plan is None or cells(plan, native.catalog.schema) > CENSUS_SHARE * cells(query.plan, native.catalog.schema):
                return None
            return int(native.run(plan)[KEYS][0].as_py())

        return count

    def _batches(self, job: StreamJob) -> Iterator[UnitBatch]:
        """The job's batches; while the run is paused there are none."""
        yield from job.batches()
        while not (job.complete or self._ended.is_set()):
            self._go.wait()
            if not self._ended.is_set():
                job.start()
                yield from job.batches()

    def _opened(self) -> ResultLog:
        """The log, made if need be, with this run as the one that drives it."""
        with self._letting_go:
            log = ResultLog.create(query_directory(self.engine, self.id))
            self._owned.enter_context(log.owned())
            self._log = log  # only now: a log that another one drives must stay
            return log

    def _adopted(self, job: StreamJob) -> StreamJob:
        """The job as the one that `stop` ends; a stop that came before ends it now."""
        with self._letting_go:
            self._job = job
            if self._ended.is_set():
                job.close()
            return job

    def _describe(self, log: ResultLog, units: Units) -> None:
        """Note what is read, for a run that goes on from the log; it must read the same."""
        tables = [self.engine.catalog.table(name) for name in sorted(self.prepared.tables)]
        known = log.description()
        if known is not None and known["units"] != units.fingerprint:
            raise EngineError(f"a layout of a table has changed since query {self.id} began; run it again")
        if known is None:
            request = self.request
            log.describe({
                "text": self.prepared.text, "seed": request.seed, "confidence": request.confidence,
                "tables": {table.name: table.content for table in tables},
                PINNED: [pin.content() for pin in map(self.engine.catalog.pin, tables) if pin is not None],
                "streamed": sorted(request.streamed) if request.streamed is not None else None,
                "pace": asdict(request.pace), "slack": request.slack, "units": units.fingerprint,
            })  # fmt: skip

    def _exact(self) -> Answer:
        result = self.engine.run(self.prepared)
        self.last = Answer.exactly(result.table, result.source, self.request.confidence, dict(result.stats))
        return self.last


def _says_something(answer: Answer) -> bool:
    """Whether an early answer is worth showing: it has rows, and something in them that evolves is more than nothing yet."""
    evolving = answer.stats["evolving"]
    told = not evolving or any(_is_told(*(side.column(at) for side in (answer.table, answer.low, answer.high))) for at in evolving)
    return told and answer.table.num_rows > 0


def _is_told(values: pa.ChunkedArray, low: pa.ChunkedArray, high: pa.ChunkedArray) -> bool:
    """Whether a column has a value that is neither null nor zero, or that is certain."""
    cells = zip(values.to_pylist(), low.to_pylist(), high.to_pylist(), strict=True)
    return any(value is not None and (value != 0 or least == most == value) for value, least, most in cells)


def query_directory(engine: Engine, id_: str) -> Path:
    """Where the log of a progressive query is."""
    return QueryLogs(engine.catalog.path).log(id_).path


def unfinished(engine: Engine) -> tuple[str, ...]:
    """Ids of queries that were killed and can go on."""
    return QueryLogs(engine.catalog.path).unfinished()


def _kept(catalog: Catalog, id_: str, asked: dict[str, Any]) -> list[Table]:
    """The tables of a query in the files it began with, which its log has kept."""
    pins = {pin.table: pin for pin in map(read_pin, asked.get(PINNED, []))}
    found = []
    for name, content in asked["tables"].items():
        table = catalog.pinned(pins[name]) if name in pins else catalog.table(name)
        if table.content != content:
            raise EngineError(f"table {name!r} has changed since query {id_} began; run it again")
        found.append(table)
    return found


def resumed(engine: Engine, id_: str) -> Run:
    """A run that goes on from the last batch in the log of one that was killed or paused."""
    if id_ not in unfinished(engine):
        raise unknown("unfinished query", id_, unfinished(engine))
    asked = ResultLog(query_directory(engine, id_)).description()
    if asked is None:
        raise EngineError(f"query {id_} left nothing to go on from; run it again")
    tables = _kept(engine.catalog, id_, asked)
    streamed = None if asked["streamed"] is None else frozenset(asked["streamed"])
    pace = Pace(**(asked["pace"] | {"sizes": tuple(asked["pace"]["sizes"])}))
    request = Request(asked["confidence"], asked["seed"], streamed, pace, asked["slack"])
    try:
        planner = engine.planner.over(Snapshot(engine.catalog, tables))
        return Run(engine, engine.named(planner.prepare(asked["text"])), request, id_)
    except UnknownName as trouble:
        raise EngineError(f"query {id_} cannot go on: {trouble}; functions end with their process. Run it again") from trouble
