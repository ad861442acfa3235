"""A session whose queries converge in steps, as slowly as a test wants, so that what is seen on the way does not hang on time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from nearly.answer import Answer, UnseenRows
from nearly.errors import unknown
from nearly.plan.types import DataType, from_arrow

CITIES = ["Lisbon", "Porto", "Madrid", "Rome", "Paris", "Berlin", "Oslo", "Vienna"]
HOSTILE = '<img src=x onerror="document.title=1">'
"""A name that would be trouble if a page took it for markup."""


def table_of(text: str) -> pa.Table:
    """The end of a query, by a word in its text."""
    if "hostile" in text:
        return pa.table({HOSTILE: ["</script><script>document.title='bad'</script>", "javascript:alert(1)"], "n": [1.5, 2.5]})
    if "day" in text:
        days = pa.array(np.arange("2026-01-01", "2026-03-02", dtype="datetime64[D]"))
        return pa.table({"day": days, "fare": 20 + 6 * np.sin(np.arange(len(days)) / 8) + np.arange(len(days)) / 20})
    if "total" in text:
        return pa.table({"rides": [2_560_000], "fare": [16.2841], "revenue": [41_687_296.75]})
    return pa.table({"city": CITIES, "rides": [563200, 460800, 384000, 307200, 281600, 256000, 179200, 128000],
                     "fare": [15.61, 15.92, 16.08, 16.31, 16.44, 16.87, 17.02, 17.33]})  # fmt: skip


def estimate(final: pa.Table, progress: float) -> Answer:
    """An answer on the way to a final one: the less is read, the wider its intervals."""
    noise = np.random.default_rng(round(progress * 1000))
    values, low, high = [], [], []
    for column in final.columns:
        if not pa.types.is_floating(column.type) and not pa.types.is_integer(column.type):
            for side in (values, low, high):
                side.append(column)
            continue
        exact = column.to_numpy().astype(float)
        half = np.abs(exact) * 0.09 * (1 - progress) / np.sqrt(progress * 10)
        middle = exact + noise.normal(size=len(exact)) * half / 3
        for side, found in zip((values, low, high), (middle, middle - half, middle + half), strict=True):
            side.append(pa.array(found).cast(column.type, safe=False))
    sides = [pa.Table.from_arrays(side, names=final.column_names) for side in (values, low, high)]
    nothing = pa.Table.from_arrays([pa.nulls(final.num_rows, each.type) for each in final.columns], names=final.column_names)
    error = 0.09 * (1 - progress) / float(np.sqrt(progress * 10)) * 1.3
    return Answer(*sides, nothing, nothing, progress, False, 0.95, error, "progressive", complete=False, unseen=UnseenRows(2, 9))


class ConvergingQuery:
    """Gives an answer whenever it is told to go on, or all of them with a pause between each."""

    def __init__(self, session: ConvergingSession, text: str) -> None:
        self._session = session
        self._final = table_of(text)
        self._over = threading.Event()

    def answers(self, **_: float | None) -> Iterator[Answer]:
        for progress in self._session.steps:
            self._session.wait(self._over)
            if self._over.is_set():
                return
            yield estimate(self._final, progress)
        self._session.wait(self._over)
        if not self._over.is_set():
            yield self.exact()

    @property
    def columns(self) -> list[tuple[str, DataType]]:
        return [(field.name, from_arrow(field.type)) for field in self._final.schema]

    def exact(self) -> Answer:
        return Answer.exactly(self._final, "native")

    def stop(self) -> None:
        self._session.stopped += 1
        self._over.set()

    def pause(self) -> None:
        self._session.paused = True

    def resume(self) -> None:
        self._session.paused = False


class ConvergingSession:
    """What the web face needs of a session."""

    steps: tuple[float, ...] = (0.02, 0.07, 0.15, 0.3, 0.55, 0.8)
    tables = ("rides",)
    views = synopses = standings = ()

    def __init__(self, pace: float = 0.0) -> None:
        self.pace = pace
        self.go = threading.Semaphore(0)
        self.paused = False
        self.stopped = 0

    def wait(self, over: threading.Event) -> None:
        if self.pace:
            over.wait(self.pace)
        else:
            while not over.is_set() and not self.go.acquire(timeout=0.05):
                pass

    def sql(self, text: str, **_: Any) -> ConvergingQuery:
        if "ridez" in text:
            raise unknown("table", "ridez", self.tables)
        return ConvergingQuery(self, text)

    def table(self, name: str) -> Any:
        columns = [SimpleNamespace(name=each, type=DataType("string"), nullable=True) for each in ("city", "day", "fare", HOSTILE)]
        return SimpleNamespace(info=SimpleNamespace(name=name, columns=columns, rows=2_560_000, version=3, key=()))
