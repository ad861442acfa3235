"""Inside a Spark task: DuckDB runs a fragment on the task's share of the data and hands Arrow back.

The rows that travel through Spark are few and large: each carries a whole Arrow table (IPC bytes) for one slot of the next stage.
Spark moves, retries and orders them without ever looking inside, so no row is converted in the JVM.
The connection lives as long as the Python worker, which Spark reuses from job to job.
"""

from __future__ import annotations

import atexit
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import ARROW, SPECIAL

from nearly.engine.function_adapters import Travelling

PAYLOAD_SCHEMA = "source string, slot int, payload binary"
ERROR = "error"
"""The source of a row whose payload is the text of a failure: raised in the driver, not retried by Spark."""

CHUNK_BYTES = 384 << 10
"""Arrow bytes in one row. Larger byte arrays are "humongous" to the JVM's collector when its heap is small, and thrash it."""

MOST_STATIC_CELLS = 60_000_000
"""Values of static tables kept in a worker's memory, about half a gigabyte; what the current query needs stays in any case."""

SLOT = "_slot"
"""The last column of a result that is split by a hash: the slot of each row."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How the native engine runs in a task."""

    threads: int
    memory_mb: int
    time_zone: str
    functions: tuple[Travelling, ...] = ()


@dataclass(frozen=True, slots=True)
class Output:
    """What a fragment hands on: under which name, to how many slots, split by a hash of `keys` or, without keys, to all."""

    name: str
    slots: int
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fragment:
    """SQL over named inputs.

    `statics` are small tables that the worker loads once and keeps; their names say which content they have. `views` are the task's
    own tables, one list for each slot.
    """

    sql: str
    statics: tuple[tuple[str, str], ...]
    views: tuple[tuple[tuple[str, str], ...], ...]
    output: Output
    settings: Settings


class Native:
    """The long-lived engine of a Python worker."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.connection.execute(f"SET temp_directory = '{tempfile.gettempdir()}/nearly-spill'")
        self.connection.execute("SET parquet_metadata_cache = true")
        self.connection.execute("SET disabled_optimizers = 'partial_aggregate_pushdown'")  # groups nearly every row before a join
        self._settings: Settings | None = None
        self._statics: dict[str, int] = {}
        self._held: Counter[str] = Counter()
        self._running: set[duckdb.DuckDBPyConnection] = set()
        self._appended: set[str] = set()
        self._functions: set[str] = set()
        self._loading = threading.Lock()
        self._changing = threading.Lock()

    def configure(self, settings: Settings) -> None:
        if settings == self._settings:
            return
        with self._loading:
            self._learn(settings.functions)
        self.connection.execute(f"SET threads = {settings.threads}")
        self.connection.execute(f"SET memory_limit = '{settings.memory_mb}MB'")
        self.connection.execute(f"SET GLOBAL TimeZone = {_text(settings.time_zone)}")  # cursors do not inherit a plain SET
        self._settings = settings

    def _learn(self, functions: Iterable[Travelling]) -> None:
        """Have these Python functions in SQL; they get Arrow arrays, nulls included."""
        for each in functions:
            if each.symbol in self._functions:
                continue
            function = _varied(each)
            self.connection.create_function(each.symbol, function, None, each.returns, type=ARROW, null_handling=SPECIAL)
            if not self._functions:
                atexit.register(self.connection.close)
            self._functions.add(each.symbol)

    def load(self, statics: Iterable[tuple[str, str]]) -> None:
        """Have these tables in memory; the least recently used other ones make room, unless they are held."""
        wanted = dict(statics)
        with self._loading:
            for name, body in wanted.items():
                cells = self._statics.get(name) or self._create(name, body)
                with self._changing:
                    self._statics.pop(name, None)
                    self._statics[name] = cells
            with self._changing:
                self._make_room(wanted)

    @contextmanager
    def loaded(self, statics: Iterable[tuple[str, str]]) -> Iterator[None]:
        """Have these tables in memory as long as this is open, whatever other queries load."""
        wanted = dict(statics)
        with self._changing:
            self._held.update(wanted.keys())
        try:
            self.load(wanted.items())
            yield
        finally:
            with self._changing:
                self._held.subtract(wanted.keys())

    def _make_room(self, wanted: Iterable[str]) -> None:
        for oldest in [name for name in self._statics if name not in wanted and not self._held[name]]:
            if sum(self._statics.values()) <= MOST_STATIC_CELLS:
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
        self.connection.execute(f'DROP TABLE "{name}"')
        del self._statics[name]

    def has(self, name: str) -> bool:
        """Whether a table is in memory now."""
        return name in self._statics

    def _create(self, name: str, body: str) -> int:
        """Make a table; the number of its values, at least 1."""
        cursor = self.connection.cursor()
        cursor.execute(f'CREATE OR REPLACE TABLE "{name}" AS {body}')
        found = cursor.execute(f'SELECT count(*) FROM "{name}"').fetchone()
        columns = cursor.execute(f'DESCRIBE "{name}"').fetchall()
        cursor.close()
        return max(1, (int(found[0]) if found else 0) * len(columns))

    def run(self, sql: str, views: Iterable[tuple[str, str]], inputs: dict[str, pa.Table]) -> pa.Table:
        """The result of a query over views and Arrow inputs that exist only while it runs."""
        cursor = self.connection.cursor()
        self._running.add(cursor)
        try:
            for name, body in views:
                cursor.execute(f'CREATE OR REPLACE TEMP VIEW "{name}" AS {body}')
            for name, table in inputs.items():
                cursor.register(name, table)
            return cursor.sql(sql).to_arrow_table()
        finally:
            self._running.discard(cursor)
            cursor.close()

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
        cursor = self.connection.cursor()
        cursor.register("appended_rows", table)
        cursor.execute(f'INSERT INTO "{name}" SELECT * FROM appended_rows')
        cursor.close()

    def replace(self, name: str, table: pa.Table) -> None:
        """Have exactly these rows in a table."""
        cursor = self.connection.cursor()
        cursor.register("replacing_rows", table)
        cursor.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM replacing_rows')
        cursor.close()
        self._appended.add(name)

    def forget(self) -> None:
        """Drop the tables that rows were appended to."""
        for name in self._appended:
            self.connection.execute(f'DROP TABLE "{name}"')
        self._appended.clear()

    def interrupt(self) -> None:
        """Stop what runs; it ends with an InterruptException."""
        self.connection.interrupt()
        for cursor in tuple(self._running):
            cursor.interrupt()


def _text(value: str) -> str:
    """A text constant of DuckDB."""
    return "'" + value.replace("'", "''") + "'"


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
    native().connection.sql("SELECT 1::DECIMAL(10, 2) AS x").to_arrow_table()


class StageTask:
    """The function of a Spark task: picklable, called with the batches of its partition."""

    def __init__(self, fragment: Fragment, reads_payloads: bool) -> None:
        self.fragment = fragment
        self.reads_payloads = reads_payloads

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for slot, inputs in self._slots(batches):
            yield from self._run(slot, inputs)

    def _slots(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, dict[str, list[Any]]]]:
        """The slots this task serves, with what other stages sent to each."""
        if not self.reads_payloads:
            for batch in batches:
                for slot in batch.column(0).to_pylist():
                    yield slot, {}
            return
        received: dict[int, dict[str, list[Any]]] = {}
        for batch in batches:
            for row in batch.to_pylist():
                tables = received.setdefault(row["slot"], {}).setdefault(row["source"], [])
                tables.append(decode(row["payload"]) if row["source"] != ERROR else row["payload"])
        for slot, sources in received.items():
            yield slot, sources

    def _run(self, slot: int, received: dict[str, list[Any]]) -> Iterator[pa.RecordBatch]:
        if ERROR in received:
            for payload in received[ERROR]:
                yield payload_row(ERROR, slot, payload)
            return
        fragment = self.fragment
        try:
            engine = native()
            inputs = {name: pa.concat_tables(tables) for name, tables in received.items()}
            table = engine.run_fragment(fragment, slot, inputs)
        except duckdb.Error as trouble:
            yield payload_row(ERROR, slot, f"{type(trouble).__name__}: {trouble}".encode())
            return
        yield from send(table, fragment.output)


def send(table: pa.Table, output: Output) -> Iterator[pa.RecordBatch]:
    """The table as rows for the next stage: every slot gets at least one, maybe empty, so that it runs and knows the schema."""
    if not output.keys:
        for chunk in _chunks(table):
            payload = encode(chunk)
            for slot in range(output.slots):
                yield payload_row(output.name, slot, payload)
        return
    slots = table.column(table.num_columns - 1)
    rows = table.drop_columns([table.column_names[-1]])
    for slot in range(output.slots):
        for chunk in _chunks(rows.filter(pc.equal(slots, slot)).combine_chunks()):
            yield payload_row(output.name, slot, encode(chunk))


def _chunks(table: pa.Table) -> Iterator[pa.Table]:
    rows = max(1, int(table.num_rows * CHUNK_BYTES / max(table.nbytes, 1)))
    for start in range(0, max(table.num_rows, 1), rows):
        yield table.slice(start, rows)


def payload_row(source: str, slot: int, payload: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([source], pa.string()), pa.array([slot], pa.int32()), pa.array([payload], pa.binary())],
        names=["source", "slot", "payload"],
    )


_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


def encode(table: pa.Table) -> bytes:
    """Arrow IPC bytes of a table. Law: `decode(encode(t)) == t`."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table)
    payload: bytes = sink.getvalue().to_pybytes()
    return payload


def decode(payload: bytes) -> pa.Table:
    return pa.ipc.open_stream(payload).read_all()
