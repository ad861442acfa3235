"""The native engine: DuckDB in this process, the driver or a Spark worker, with static tables, functions and memory of its own.

The engine of a worker lives as long as its process, which Spark reuses from job to job.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import ARROW, SPECIAL

from nearly.engine.native.function_adapters import Travelling
from nearly.engine.native.payload import StageOutput
from nearly.engine.native.running import Running
from nearly.engine.native.spill import SpillDirectory
from nearly.errors import CLOSED, EngineError
from nearly.plan.quoting import native_text

_WITHOUT = "partial_aggregate_pushdown,projection_pullup"
"""Optimisers of DuckDB 2.0 that do harm: the first groups nearly every row before a join; the second, together with statistics,
takes rows for impossible that are there (a sum over a union of joins, compared with 0)."""

_BY_SIGNAL = "Query interrupted"
"""What DuckDB says of Ctrl-C, in the place of Python's own exception."""

MOST_STATIC_CELLS = 60_000_000
"""Values of static tables kept in a worker's memory, about half a gigabyte; what the current query needs stays in any case."""

CLOSING_SECONDS = 30.0
"""An engine that is closed waits so long for its queries to notice; a Python function cannot be interrupted."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How the native engine runs in a task."""

    threads: int
    memory_mb: int
    time_zone: str
    functions: tuple[Travelling, ...] = ()


@dataclass(frozen=True, slots=True)
class Fragment:
    """SQL over named inputs.

    `statics` are small tables that the worker loads once and keeps; their names say which content they have. `views` are the task's
    own tables, one list for each slot.
    """

    sql: str
    statics: tuple[tuple[str, str], ...]
    views: tuple[tuple[tuple[str, str], ...], ...]
    output: StageOutput
    settings: Settings


class Native:
    """A long-lived engine: that of a Python worker, of the driver, or of a progressive query's state.

    Any number of threads may use it at once. The connection itself is for one of them at a time, and refuses others; so it only
    makes cursors and takes settings, under a lock, and queries run on cursors. `live` tells which functions are still needed by
    queries that may come; an engine that serves one query at a time needs only those of its settings. `most_cells` are the values
    of static tables that it keeps, where they are fewer than usual.
    """

    def __init__(self, live: Callable[[], Container[str]] = tuple, most_cells: int | None = None) -> None:
        self._spill = SpillDirectory()
        self._connection = duckdb.connect()
        self._connection.execute(f"SET temp_directory = {native_text(str(self._spill.path))}")
        self._connection.execute("SET parquet_metadata_cache = true")
        self._connection.execute(f"SET disabled_optimizers = '{_WITHOUT}'")
        self._using = threading.RLock()
        self._settings: Settings | None = None
        self._live = live
        self._statics: dict[str, int] = {}
        self._most_cells = most_cells
        self._held: Counter[str] = Counter()
        self._running = Running()
        self._appended: set[str] = set()
        self._functions: set[str] = set()
        self._loading = threading.Lock()
        self._changing = threading.Lock()
        self._closed = False
        self._release = weakref.finalize(self, _release, self._connection, self._spill, os.getpid())

    def configure(self, settings: Settings) -> None:
        with self._using:
            if settings == self._settings:
                return
            self._refuse_closed()
            self._learn(settings.functions)
            self._connection.execute(f"SET threads = {settings.threads}")
            self._connection.execute(f"SET memory_limit = '{settings.memory_mb}MB'")
            self._connection.execute(f"SET GLOBAL TimeZone = {native_text(settings.time_zone)}")  # cursors know only the global one
            self._settings = settings

    def _learn(self, functions: Iterable[Travelling]) -> None:
        """Have these Python functions in SQL; they get Arrow arrays, nulls included. Those that no query needs are let go."""
        wanted = {each.symbol: each for each in functions}
        if not self._running:  # a query that runs may be inside one
            live = self._live()
            for symbol in [each for each in self._functions if each not in wanted and each not in live]:
                self._connection.remove_function(symbol)
                self._functions.discard(symbol)
        for symbol, each in wanted.items():
            if symbol not in self._functions:
                self._connection.create_function(symbol, _varied(each), None, each.returns, type=ARROW, null_handling=SPECIAL)
                self._functions.add(symbol)

    @contextmanager
    def cursor(self, running: Running | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor, for one statement after the other; closing the engine, or interrupting `running`, interrupts it."""
        with self._using:
            self._refuse_closed()
            cursor = self._connection.cursor()
            mine = ExitStack()
            mine.enter_context(self._running.holding(cursor))
        try:
            with mine, running.holding(cursor) if running is not None else nullcontext():
                yield cursor
        except duckdb.InterruptException:
            self._refuse_closed()
            raise
        except RuntimeError as trouble:
            if str(trouble) == _BY_SIGNAL:
                raise KeyboardInterrupt from trouble
            raise
        finally:
            cursor.close()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise EngineError(CLOSED)

    def close(self) -> None:
        """Break off what runs, and free memory and disk. Closing twice is harmless."""
        with self._using:
            self._closed = True
        until = time.monotonic() + CLOSING_SECONDS
        while self._running and time.monotonic() < until:
            self._running.interrupt()
            time.sleep(0.01)
        if not self._running:  # under a query that does not end, it stays until the process ends
            self._release()

    def load(self, statics: Iterable[tuple[str, str]], running: Running | None = None) -> None:
        """Have these tables in memory; the least recently used other ones make room, unless they are held."""
        wanted = dict(statics)
        with self._loading:
            for name, body in wanted.items():
                cells = self._statics.get(name) or self._create(name, body, running)
                with self._changing:
                    self._statics.pop(name, None)
                    self._statics[name] = cells
            with self._changing:
                self._make_room(wanted)

    @contextmanager
    def loaded(self, statics: Iterable[tuple[str, str]], running: Running | None = None) -> Iterator[None]:
        """Have these tables in memory as long as this is open, whatever other queries load."""
        wanted = dict(statics)
        with self._changing:
            self._held.update(wanted.keys())
        try:
            self.load(wanted.items(), running)
            yield
        finally:
            with self._changing:
                self._held.subtract(wanted.keys())

    def _make_room(self, wanted: Iterable[str]) -> None:
        most = MOST_STATIC_CELLS if self._most_cells is None else self._most_cells
        for oldest in [name for name in self._statics if name not in wanted and not self._held[name]]:
            if sum(self._statics.values()) <= most:
                break
            self._drop(oldest)

    @contextmanager
    def holding(self, names: Iterable[str]) -> Iterator[frozenset[str]]:
        """Those of the tables that are in memory, where they stay as long as this is open."""
        with self._changing:
            held = frozenset(name for name in names if name in self._statics)
            self._held.update(held)
            for name in held:
                self._statics[name] = self._statics.pop(name)
        try:
            yield held
        finally:
            with self._changing:
                self._held.subtract(held)

    def drop(self, name: str) -> None:
        """Free a table's memory; one that is held goes later, when room is needed."""
        with self._changing:
            if name in self._statics and not self._held[name]:
                self._drop(name)

    def _drop(self, name: str) -> None:
        with self.cursor() as cursor:
            cursor.execute(f'DROP TABLE "{name}"')
        del self._statics[name]

    def has(self, name: str) -> bool:
        """Whether a table is in memory now."""
        return name in self._statics

    def _create(self, name: str, body: str, running: Running | None) -> int:
        """Make a table; the number of its values, at least 1."""
        with self.cursor(running) as cursor:
            found = cursor.execute(f'CREATE OR REPLACE TABLE "{name}" AS {body}').fetchone()
            columns = cursor.execute(f'SELECT * FROM "{name}" LIMIT 0').description
        return max(1, (int(found[0]) if found else 0) * len(columns))

    def run(
        self, sql: str, views: Iterable[tuple[str, str]], inputs: dict[str, pa.Table], running: Running | None = None
    ) -> pa.Table:
        """The result of a query over views and Arrow inputs that exist only while it runs; `running` may interrupt it."""
        with self.cursor(running) as cursor:
            for name, body in views:
                cursor.execute(f'CREATE OR REPLACE TEMP VIEW "{name}" AS {body}')
            for name, table in inputs.items():
                cursor.register(name, table)
            return cursor.sql(sql).to_arrow_table()

    def run_fragment(self, fragment: Fragment, slot: int, inputs: dict[str, pa.Table]) -> pa.Table:
        """The result of a fragment over a slot's share of the data."""
        self.configure(fragment.settings)
        with self.loaded(fragment.statics):
            return self.run(fragment.sql, fragment.views[slot], inputs)

    def append(self, name: str, table: pa.Table) -> None:
        """Add rows to a table, which is made of the first ones."""
        if name not in self._appended:
            self.replace(name, table)
            return
        with self.cursor() as cursor:
            cursor.register("appended_rows", table)
            cursor.execute(f'INSERT INTO "{name}" SELECT * FROM appended_rows')

    def replace(self, name: str, table: pa.Table) -> None:
        """Have exactly these rows in a table."""
        with self.cursor() as cursor:
            cursor.register("replacing_rows", table)
            cursor.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM replacing_rows')
        self._appended.add(name)

    def forget(self) -> None:
        """Drop the tables that rows were appended to."""
        with self.cursor() as cursor:
            for name in self._appended:
                cursor.execute(f'DROP TABLE "{name}"')
        self._appended.clear()


def _release(connection: duckdb.DuckDBPyConnection, spill: SpillDirectory, process: int) -> None:
    """At the end of the engine or of its process; in a forked child the engine's threads are missing, and all is the parent's."""
    if process == os.getpid():
        connection.close()
        spill.remove()


def _varied(function: Travelling) -> Any:
    """The function as one of any number of arguments of any type, as DuckDB tells them from its signature.

    It is loaded when it is first called, so that a function that this worker cannot load fails only the queries that call it.
    """
    load = cache(function.adapter)

    def call(*columns: Any) -> Any:
        return load()(*columns)

    return call


@cache
def native() -> Native:
    """This process's engine."""
    return Native()


def warm() -> None:
    """Load everything a first query would otherwise wait for."""
    native().run("SELECT 1::DECIMAL(10, 2) AS x", (), {})
