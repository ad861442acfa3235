"""Inside a Spark task: units of streamed tables, batch after batch, until all are read or the driver says stop.

One job reads all units. Each batch's results go into the query's log at once, so the driver shows them while the task goes on; a
job per batch would pay Spark's fixed cost each time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

import duckdb
import pyarrow as pa

from nearly.engine.native.engine import Native, Settings, native
from nearly.engine.native.failures import packed, unpacked
from nearly.engine.native.payload import ERROR, payload_row
from nearly.engine.native.running import Running
from nearly.engine.native.splice import spliced_tables
from nearly.engine.stream.result_log import DRIVER, TASK, ResultLog, UnitBatch
from nearly.errors import EngineError

WATCH_SECONDS = 0.1
WAIT_SECONDS = 0.005
AHEAD_SECONDS = 0.15
"""About how long the batches take that the driver reads ahead: a task that is ready waits for no more than that."""

QUERY_UNITS = 4
"""One query reads at most so many units, since DuckDB plans joins of larger unions badly; each hashes its static inputs anew."""

ANSWER = "answer"
"""The name of the rows of an exact batch."""

STOPPED = "stopped"
DONE = "done"

Views = tuple[tuple[str, str], ...]
"""Names and the queries they stand for."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How many units a batch has: first few, then more and more rows until a batch fills the cadence.

    A batch has a fixed cost (planning, hash tables of static inputs), measured while it goes; batches are made so large that it is
    a small part of them, even when they take longer than the cadence then. When the exact answer is expected within the `patience`,
    it follows the first answer at once: batches would only put it off. `sizes` fixes the units of the first batches instead,
    whoever reads them, so that a test sees the same ones in every run.
    """

    first: int = 16
    growth: float = 3.0
    cadence: float = 1.0
    patience: float = 2.5
    sizes: tuple[int, ...] = ()

    def hurries(self, expected: float) -> bool:
        """Whether the exact answer, expected after some seconds, is to follow the first one at once."""
        return not self.sizes and expected <= self.patience

    def is_due(self, since_last: float, evaluation: float) -> bool:
        """Whether to answer again, some seconds after an answer whose evaluation took so long: that takes a share of the machine.

        Batches of fixed sizes are all answered.
        """
        return bool(self.sizes) or since_last >= evaluation / EVALUATION_SHARE

    def end(self, start: int, rows: Sequence[int], past: Sequence[BatchTime]) -> int:
        """Where the next batch ends that begins at a unit; `rows` are those of all units, `past` the batches before."""
        fixed = next((end for end in accumulate(self.sizes) if end > start), None)
        if fixed is not None:
            return min(fixed, len(rows))
        if start == 0:
            return min(self.first, len(rows))
        wanted, taken, end = self._rows(past) if past else self.growth * sum(rows[:start]), 0, start
        while end < len(rows) and (end == start or taken + rows[end] / 2 <= wanted):
            taken += rows[end]
            end += 1
        return len(rows) if sum(rows[end:]) < 0.5 * wanted else end

    def _rows(self, past: Sequence[BatchTime]) -> float:
        """Rows that grow by the growth factor, but take no longer than the cadence, or than some fixed costs."""
        last = past[-1]
        fixed = fixed_cost(past)
        speed = last.rows / max(last.seconds - fixed, 1e-3)
        filling = speed * max(self.cadence - fixed, COST_PARTS * fixed)
        return min(last.rows * self.growth, max(filling, last.rows))


EVALUATION_SHARE = 0.4
"""The share of the time that may go into evaluating answers."""

COST_PARTS = 4
"""A batch takes at least so many times its fixed cost, where it may."""


@dataclass(frozen=True, slots=True)
class BatchTime:
    """The rows of a batch and how long they took."""

    rows: int
    seconds: float


def fixed_cost(past: Sequence[BatchTime]) -> float:
    """Seconds that a batch takes before it reads a row, from the last two batches; at most what the smaller one took."""
    if len(past) < 2:
        return 0.0
    small, large = sorted(past[-2:], key=lambda each: each.rows)
    if large.rows <= small.rows:
        return 0.0
    slope = (large.seconds - small.seconds) / (large.rows - small.rows)
    return min(max(small.seconds - slope * small.rows, 0.0), small.seconds)


@dataclass(frozen=True, slots=True)
class Exact:
    """The query as a whole: its SQL and the small tables it reads, for a task that goes on from the first batch with all."""

    sql: str
    statics: Views


@dataclass(frozen=True, slots=True)
class StreamFragment:
    """What a task computes: SQL per stage, and per streamed scan the queries of the units in the order they are read.

    The rows of `waiting` stages are decided by variation ranges.
    """

    stages: Views
    waiting: Views
    once: Views
    statics: Views
    pieces: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[int, ...]
    settings: Settings
    directory: str
    pace: Pace
    exact: Exact | None = None

    @property
    def units(self) -> int:
        return len(self.rows)


class StreamTask:
    """The function of a Spark task; each of its rows names a site, whose units it reads. Picklable."""

    def __init__(self, fragments: tuple[StreamFragment, ...]) -> None:
        self.fragments = fragments

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for site in batch.column(0).to_pylist():
                yield self._run(site)

    def _run(self, site: int) -> pa.RecordBatch:
        try:
            ended = read_units(self.fragments[site], site, native())
        except (duckdb.Error, EngineError) as trouble:
            return payload_row(ERROR, site, packed(trouble))
        return payload_row(DONE if ended else STOPPED, site, b"")


Foresight = Callable[[dict[str, pa.Table], int], None]
"""Called with the results of a batch's other stages, and its end, before the rows that wait are decided: may write newer ranges."""


def read_units(fragment: StreamFragment, site: int, engine: Native, halt: threading.Event | None = None) -> bool:
    """In a task, or in the driver while there is no Spark yet: read units from where the log ends; whether all are read.

    It ends early when the log, or in the driver `halt`, says so.
    """
    log = ResultLog(Path(fragment.directory))
    engine.configure(fragment.settings)
    past: list[BatchTime] = []
    with _Stopping(log, halt) as stopping:
        log.say_ready()
        while not log.claim(site, log.end(site), TASK) and not stopping.asked:
            time.sleep(WAIT_SECONDS)  # the driver is still at it
        start = log.end(site)
        while start < fragment.units and not (stopping.asked or log.yielding):
            end = fragment.pace.end(start, fragment.rows, past)
            try:
                if start and fragment.exact is not None:
                    batch = _read_all(_Reading(fragment, start, end, engine, stopping.running), fragment.exact, site)
                else:
                    with engine.loaded(fragment.statics, stopping.running):
                        batch = _read(_Reading(fragment, start, end, engine, stopping.running), site)
            except duckdb.InterruptException:
                return False
            log.write(batch)
            past.append(BatchTime(sum(fragment.rows[start:end]), batch.seconds))
            start = log.end(site, start)
    return start >= fragment.units


def read_ahead(
    fragment: StreamFragment, engine: Native, foresee: Foresight | None, kept: dict[str, str], halt: threading.Event | None = None
) -> Iterator[int]:
    """In the driver: read small batches until the task takes over; yields where each ends.

    Static inputs are not loaded for that: a first batch reads those that are not in memory in passing, and further ones are left to
    the task, as is going straight to the exact answer. `kept` are queries for pieces of the first batch that are in memory.
    """
    log = ResultLog(Path(fragment.directory))
    engine.configure(fragment.settings)
    pace = replace(fragment.pace, cadence=AHEAD_SECONDS)
    past: list[BatchTime] = []
    start = 0
    with _Stopping(log, halt) as stopping, engine.holding(name for name, _ in fragment.statics) as held:
        views = tuple((name, body) for name, body in fragment.statics if name not in held)
        while start < fragment.units and not (stopping.asked or log.ready) and log.claim(0, start, DRIVER):
            end = pace.end(start, fragment.rows, past)
            reading = _Reading(fragment, start, end, engine, stopping.running, views, {} if start else kept)
            try:
                batch = _read(reading, 0, None if start else foresee)
            except duckdb.InterruptException:
                return
            log.write(batch)
            past.append(BatchTime(sum(fragment.rows[start:end]), batch.seconds))
            start = end
            yield end
            if views or fragment.exact is not None:
                return


@dataclass(frozen=True, slots=True)
class _Reading:
    """The units from `start` to `end`; `views` are the static inputs that the engine has not loaded, `kept` the pieces it has."""

    fragment: StreamFragment
    start: int
    end: int
    engine: Native
    running: Running
    views: Views = ()
    kept: dict[str, str] = field(default_factory=dict)

    def stages(self, stages: Views, inputs: dict[str, pa.Table]) -> dict[str, pa.Table]:
        """The rows of each stage, from some queries at once that read a few units each."""
        if not stages:
            return {}
        pieces = [self._pieces(first, min(first + self._step, self.end)) for first in range(self.start, self.end, self._step)]
        # a view for each piece would have DuckDB bind them twice
        queries = [spliced_tables(sql, piece) for _, sql in stages for piece in pieces]
        with ThreadPoolExecutor(self.fragment.settings.threads) as pool:
            found = list(pool.map(lambda query: self.engine.run(query, self.views, inputs, self.running), queries))
        width = len(pieces)
        return {name: pa.concat_tables(found[at * width : (at + 1) * width]) for at, (name, _) in enumerate(stages)}

    def _pieces(self, first: int, end: int) -> dict[str, str]:
        return {name: self.kept.get(name) or " UNION ALL ".join(queries[first:end]) for name, queries in self.fragment.pieces}

    @property
    def _step(self) -> int:
        """Units per query; what is not loaded would be read by each anew, and what is kept is whole, so then there is one."""
        units = self.end - self.start
        return units if self.views or self.kept else min(QUERY_UNITS, -(-units // self.fragment.settings.threads))


def _read(reading: _Reading, site: int, foresee: Foresight | None = None) -> UnitBatch:
    began = time.perf_counter()
    fragment = reading.fragment
    tables = reading.stages(fragment.stages, {})
    if reading.start == 0 and fragment.once:
        tables |= {name: reading.engine.run(sql, (), {}, reading.running) for name, sql in fragment.once}
    if foresee is not None:
        foresee(tables, reading.end)
    version, ranges = ResultLog(Path(fragment.directory)).read_ranges()
    tables |= reading.stages(fragment.waiting, ranges)
    return replace(UnitBatch(site, reading.start, reading.end, 0.0, version, tables), seconds=time.perf_counter() - began)


def _read_all(reading: _Reading, exact: Exact, site: int) -> UnitBatch:
    began = time.perf_counter()
    with reading.engine.loaded(exact.statics, reading.running):
        answer = reading.engine.run(exact.sql, (), {}, reading.running)
    return UnitBatch(site, reading.start, reading.fragment.units, time.perf_counter() - began, 0, {ANSWER: answer}, exact=True)


class _Stopping:
    """While this is open, the driver's wish to stop interrupts what this query runs, too."""

    def __init__(self, log: ResultLog, halt: threading.Event | None) -> None:
        self.running = Running()
        self._log = log
        self._halt = halt or threading.Event()
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="nearly-stop", daemon=True)

    @property
    def asked(self) -> bool:
        return self._halt.is_set() or self._log.stopped

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(WATCH_SECONDS):
            if self.asked:
                self.running.interrupt()


def failures(rows: Any) -> list[Exception]:
    """The errors that a job's tasks gave back."""
    sources, payloads = rows["source"].to_pylist(), rows["payload"].to_pylist()
    return [unpacked(payload) for source, payload in zip(sources, payloads, strict=True) if source == ERROR]
