"""Inside a Spark task: units of streamed tables, batch after batch, until all are read or the driver says stop.

One job reads all units. Each batch's results go into the query's log at once, so the driver shows them while the task goes on; a job
per batch would pay Spark's fixed cost each time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from nearly.engine.result_log import Batch, ResultLog
from nearly.engine.worker import ERROR, Native, Settings, native, payload_row

WATCH_SECONDS = 0.1
STOPPED = "stopped"
DONE = "done"


@dataclass(frozen=True, slots=True)
class Pace:
    """How many units a batch has: first few, then more and more until a batch fills the cadence.

    `sizes` fixes the first batches instead, so that a test or a resumed run sees the same ones.
    """

    first: int = 12
    growth: float = 2.0
    cadence: float = 1.0
    sizes: tuple[int, ...] = ()

    def next(self, done: int, last: int, seconds: float) -> int:
        """The size of the batch after one of `last` units that took some seconds, `done` batches into the run."""
        if done < len(self.sizes):
            return max(1, self.sizes[done])
        if not last:
            return self.first
        filling = last * self.cadence / max(seconds, 1e-3)
        return max(1, int(min(last * self.growth, max(filling, last))))


@dataclass(frozen=True, slots=True)
class StreamFragment:
    """What a task computes: SQL per stage, and per streamed scan the queries of the units in the order they are read."""

    stages: tuple[tuple[str, str], ...]
    once: tuple[tuple[str, str], ...]
    statics: tuple[tuple[str, str], ...]
    pieces: tuple[tuple[str, tuple[str, ...]], ...]
    settings: Settings
    directory: str
    pace: Pace

    @property
    def units(self) -> int:
        return max((len(queries) for _, queries in self.pieces), default=0)


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
        except duckdb.Error as trouble:
            return payload_row(ERROR, site, f"{type(trouble).__name__}: {trouble}".encode())
        return payload_row(DONE if ended else STOPPED, site, b"")


def read_units(fragment: StreamFragment, site: int, engine: Native, most: int | None = None) -> bool:
    """Read units from where the log ends, up to `most` batches; whether all are read."""
    log = ResultLog(Path(fragment.directory))
    engine.configure(fragment.settings)
    done, size, seconds = 0, 0, 0.0
    start = log.end(site)
    with _interrupted_by(log, engine):
        while start < fragment.units and not log.stopped and (most is None or done < most):
            if done == 0:
                engine.load(fragment.statics)
            size = fragment.pace.next(done, size, seconds)
            try:
                batch = _read(fragment, site, start, min(start + size, fragment.units), engine)
            except duckdb.InterruptException:
                return False
            log.write(batch)
            start, done, seconds = log.end(site, start), done + 1, batch.seconds
    return start >= fragment.units


def _read(fragment: StreamFragment, site: int, start: int, end: int, engine: Native) -> Batch:
    began = time.perf_counter()
    views = [(name, " UNION ALL ".join(queries[start:end])) for name, queries in fragment.pieces]
    tables = {name: engine.run(sql, views, {}) for name, sql in fragment.stages}
    if start == 0:
        tables |= {name: engine.run(sql, (), {}) for name, sql in fragment.once}
    return replace(Batch(site, start, end, 0.0, 0, tables), seconds=time.perf_counter() - began)


@contextmanager
def _interrupted_by(log: ResultLog, engine: Native) -> Iterator[None]:
    """While this is open, the driver's wish to stop interrupts the running query, too."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(WATCH_SECONDS):
            if log.stopped:
                engine.interrupt()

    watcher = threading.Thread(target=watch, name="nearly-stop", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def failures(rows: Any) -> list[str]:
    """The errors that a job's tasks gave back."""
    sources, payloads = rows["source"].to_pylist(), rows["payload"].to_pylist()
    return [payload.decode() for source, payload in zip(sources, payloads, strict=True) if source == ERROR]
