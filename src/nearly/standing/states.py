"""The rows that standing queries keep between refreshes: tables of an engine of their own, in memory or on disk.

    with store.lock:
        state = store.make(found, plan, rows, order, place)     # `found` is an open `Moving`
        with store.weighing(found, states):
            store.add(found, state, addition)                    # groups first: what is added to them reads states as they were
            store.apply(found, state, change)                    # False where it does not fit: then the state must be made again
        store.tidy(found, state)
        store.release(found, state, user)

Law: a state's rows are its plan's rows over the tables in the versions of its users' last answers, as a bag. Its bytes are what
the engine's tables have more of after it was made. Equal plans over equal tables are one state, whoever keeps it.
"""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

import duckdb

from nearly.engine.deltas.several import Moving, PartAddition, PartChange
from nearly.engine.deltas.versions import scans_of
from nearly.engine.engine import Engine
from nearly.engine.native.engine import Native
from nearly.engine.native.first_units import FirstUnits
from nearly.engine.native.spill import SpillDirectory
from nearly.engine.storage.layouts import Table
from nearly.plan.canonical import fingerprint
from nearly.plan.expressions import Column
from nearly.plan.nodes import Input, Output, Plan, Project, Sort
from nearly.plan.quoting import native_name, native_text
from nearly.rewrite.delta.with_partials import order_of
from nearly.standing.actions import DISK, MEMORY
from nearly.standing.merging import anew, merged, without_dead

logger = logging.getLogger(__name__)

_DISK = "standing_disk"
MOST_DEAD = 0.25
"""A state is written anew when so large a share of its rows are deleted ones, whose memory is not free before."""

NEVER = "1000TB"
"""Changes after which the engine goes through all its tables by itself, in the midst of a refresh; `tidy` frees what is deleted."""

FEW_GROUPS = 5_000
"""So many groups are written anew with what is added; of more, those that are touched are changed where they lie."""

VALUE = 8.0
"""Bytes of a value of which none was measured."""

_OF_TABLES = ("IN_MEMORY_TABLE", "OVERFLOW_STRINGS")
"""What the engine calls the memory of rows; texts of more than 4 KB are apart."""

MOST_CELLS = 2_000_000
"""Values of small tables that the engine of states keeps beside them, about 16 MB: each version that was read is another table."""


@dataclass(slots=True)
class StateRows:
    """Kept rows: the table they are in, whose columns are numbered, and which of these tell rows apart, where some do."""

    table: str
    fingerprint: str
    place: str
    columns: tuple[Column, ...]
    key: tuple[int, ...] | None
    order: tuple[int, ...]
    rows: int = 0
    bytes: int = 0
    dead: int = 0
    users: set[str] = field(default_factory=set)
    is_anew: bool = False
    """Whether all its rows were written since it was weighed."""

    @property
    def values(self) -> int:
        """How many values it has, those of deleted rows included."""
        return (self.rows + self.dead) * max(1, len(self.columns))

    @property
    def width(self) -> float:
        """Bytes of a value, as far as some were measured."""
        return self.bytes / self.values if self.bytes and self.values else VALUE

    def over(self, plan: Plan) -> Plan:
        """The kept rows under the columns of a plan that is this one but for its names, in its order: what is kept has none."""
        names = [f"c{place}" for place in range(len(self.columns))]
        given = tuple(Column(column.type, name) for column, name in zip(plan.columns, names, strict=True))
        outputs = tuple(Output(column.name, each) for column, each in zip(plan.columns, given, strict=True))
        rows, keys = Project(Input(self.table, given), outputs), order_of(plan)
        return Sort(rows, keys) if keys else rows


@dataclass(frozen=True, slots=True)
class RowsAnew:
    """All rows that a state is to have: a query for them, and its columns in the state's order."""

    state: StateRows
    query: str
    columns: tuple[str, ...]


class StateStore:
    """All states of a session."""

    def __init__(self, engine: Engine) -> None:
        self.lock = threading.RLock()
        self._native = Native(engine.functions.live, MOST_CELLS)
        with self._native.cursor() as cursor:
            cursor.execute(f"SET GLOBAL checkpoint_threshold = {native_text(NEVER)}")
        self.engine = copy.copy(engine)
        self.engine.native = replace(engine.native, samples=FirstUnits(self._native))
        self._states: dict[tuple[str, tuple[str, ...]], StateRows] = {}
        self._number = 0
        self._directory: SpillDirectory | None = None

    def close(self) -> None:
        """Break off what runs, and free memory and disk."""
        self.engine.native.samples.close()
        with self.lock:
            self._states.clear()
            if self._directory is not None:
                self._directory.remove()
                self._directory = None

    def shared(self, plan: Plan, tables: Mapping[str, Table], place: str) -> StateRows | None:
        """The state of an equal plan over the same versions, where someone keeps it."""
        found = self._states.get((fingerprint(plan), self._contents(plan, tables)))
        return found if found is not None and found.place == place else None

    def make(
        self, found: Moving, plan: Plan, source: Plan, place: str, order: Sequence[Column], key: Iterable[str] | None
    ) -> StateRows:
        """Keep the rows of a plan, which are those of `source` over the new versions, in order of some columns."""
        self._number += 1
        names = [column.name for column in plan.columns]
        state = StateRows(
            f"state_{self._number}", fingerprint(plan), place, plan.columns,
            None if key is None else tuple(names.index(name) for name in key),
            tuple(names.index(column.name) for column in order if column.name in names),
        )  # fmt: skip
        self._fill(found, state, found.sql(source), names)
        return state

    def note(self, state: StateRows, plan: Plan, tables: Mapping[str, Table], user: str) -> None:
        """Let a state be found by whoever wants the same, and say who needs it."""
        state.users.add(user)
        for key in [key for key, each in self._states.items() if each is state]:
            del self._states[key]
        self._states[state.fingerprint, self._contents(plan, tables)] = state

    def _contents(self, plan: Plan, tables: Mapping[str, Table]) -> tuple[str, ...]:
        """What the rows of a plan hang on: those of its tables, and the time zone in which they are read."""
        names = sorted({scan.table.lower() for scan in scans_of(plan)})
        return self.engine.cluster.time_zone, *(tables[name].content for name in names)

    def _fill(self, found: Moving, state: StateRows, sql: str, names: Sequence[str]) -> None:
        """Have the rows of a query, whose columns are taken by name: one for rows without columns may stand between them."""
        before = self.measured(state.place, found)
        home = self._home(state.place, found)
        body = _numbered(sql, names, state) if state.columns else f"SELECT 1 AS c0 FROM ({sql})"
        ((state.rows,),) = found.execute(f"CREATE OR REPLACE TABLE {home}{native_name(state.table)} AS {body}")
        if home:
            found.execute(f"CREATE OR REPLACE VIEW {native_name(state.table)} AS SELECT * FROM {home}{native_name(state.table)}")
        state.dead = 0
        state.bytes = max(0, self.measured(state.place, found) - before)

    def measured(self, place: str, found: Moving) -> int:
        """Bytes that the engine's tables have in memory, or on disk."""
        if place == MEMORY:
            tags = ", ".join(map(native_text, _OF_TABLES))
            ((bytes_,),) = found.execute(f"SELECT sum(memory_usage_bytes) FROM duckdb_memory() WHERE tag IN ({tags})")
            return int(bytes_)
        if self._directory is None:
            return 0
        found.execute(f"CHECKPOINT {_DISK}")
        ((bytes_,),) = found.execute(
            f"SELECT used_blocks * block_size FROM pragma_database_size() WHERE database_name = {native_text(_DISK)}"
        )
        return int(bytes_)

    def _home(self, place: str, found: Moving) -> str:
        """What is put before the name of a table there."""
        if place != DISK:
            return ""
        if self._directory is None:
            self._directory = SpillDirectory()
            self._directory.path.mkdir()
            found.execute(f"ATTACH {native_text(str(self._directory.path / 'states.duckdb'))} AS {_DISK}")
        return f"{_DISK}.main."

    @contextmanager
    def weighing(self, found: Moving, states: Collection[StateRows]) -> Iterator[None]:
        """Measure by how many bytes states grow meanwhile, all at once: each by its share of the bytes that were likely written.

        One that has fewer values than before has so many bytes less; one whose rows were written anew has none of those it had.
        """
        places = {place: [state for state in states if state.place == place] for place in (MEMORY, DISK)}
        values, widths = {state.table: state.values for state in states}, {state.table: state.width for state in states}
        before = {place: self.measured(place, found) for place, some in places.items() if some}
        for state in states:
            state.is_anew = False
        yield
        for place, measured in before.items():
            freed = sum(_let_go(state, values[state.table]) for state in places[place])
            grown = max(0, self.measured(place, found) - measured + freed)
            written = {each.table: _written(each, values[each.table]) * widths[each.table] for each in places[place]}
            for state in places[place]:
                state.bytes += round(grown * written[state.table] / (sum(written.values()) or 1.0))

    def apply(self, found: Moving, state: StateRows, change: PartChange) -> bool:
        """Bring a state up to date; False where rows that went were not there, and it is not what it should be any more."""
        table, columns = self._table(found, state), ", ".join(native_name(name) for name in change.columns) or "1"
        if change.ones:
            ((came,),) = found.execute(f"INSERT INTO {table} SELECT {columns} FROM {change.source}")
            state.rows += int(came)
            return True
        weight = native_name(change.weight)
        sums = f"coalesce(sum(-{weight}) FILTER ({weight} < 0), 0), coalesce(sum({weight}) FILTER ({weight} > 0), 0), max({weight})"
        ((went, came, most),) = found.execute(f"SELECT {sums} FROM {change.source}")
        if went:
            ((deleted,),) = found.execute(_deletion(state, table, change))
            if deleted != went:
                return False
        if came:
            times = f", unnest(range({weight}))" if most > 1 else ""
            found.execute(f"INSERT INTO {table} SELECT {columns} FROM (SELECT *{times} FROM {change.source} WHERE {weight} > 0)")
        state.rows += int(came) - int(went)
        state.dead += int(went)
        return True

    def renew(self, found: Moving, renewal: RowsAnew) -> None:
        """Write all rows, which are given."""
        state = renewal.state
        rows = _numbered(renewal.query, renewal.columns, state)
        ((state.rows,),) = found.execute(f"CREATE OR REPLACE TABLE {self._table(found, state)} AS {rows}")
        state.dead, state.is_anew = 0, True

    def add(self, found: Moving, state: StateRows, addition: PartAddition) -> None:
        """Add to kept groups; groups of which nothing is left go, save the one of all rows."""
        table = self._table(found, state)
        if state.rows <= FEW_GROUPS or not addition.added.partials.plan.keys:
            ((state.rows,),) = found.execute(anew(table, addition))
            state.is_anew = True
            return
        ((touched,),) = found.execute(merged(table, addition))
        if not addition.added.grew:
            ((gone,),) = found.execute(without_dead(table, addition))
            state.dead += int(gone)
        ((state.rows,),) = found.execute(f"SELECT count(*) FROM {table}")
        state.dead += int(touched)

    def _table(self, found: Moving, state: StateRows) -> str:
        return f"{self._home(state.place, found)}{native_name(state.table)}"

    def tidy(self, found: Moving, state: StateRows) -> None:
        """Free the memory of deleted rows, where they are many."""
        if state.dead <= MOST_DEAD * max(state.rows, 10_000):
            return
        table = self._table(found, state)
        aside = StateRows(f"{state.table}_again", state.fingerprint, state.place, state.columns, state.key, state.order)
        names = [f"c{place}" for place in range(len(state.columns))]
        self._fill(found, aside, f"SELECT * FROM {table}", names)
        self._remove(found, state)
        self._fill(found, state, f"SELECT * FROM {self._home(state.place, found)}{native_name(aside.table)}", names)
        self._remove(found, aside)

    def release(self, found: Moving, state: StateRows, user: str) -> None:
        """One user less; without any its rows are dropped."""
        state.users.discard(user)
        if not state.users:
            self._remove(found, state)
            for key in [key for key, each in self._states.items() if each is state]:
                del self._states[key]

    def forget(self, states: Iterable[StateRows], user: str) -> None:
        """Release states outside of a refresh, as after a failure."""
        with self._native.cursor() as cursor:
            for state in states:
                state.users.discard(user)
                if state.users:
                    continue
                for key in [key for key, each in self._states.items() if each is state]:
                    del self._states[key]
                if state.place == DISK:
                    cursor.execute(f"DROP VIEW IF EXISTS {native_name(state.table)}")
                    with suppress(duckdb.Error):  # the disk may be full: `mend` gives it up
                        cursor.execute(f"DROP TABLE IF EXISTS {_DISK}.main.{native_name(state.table)}")
                else:
                    cursor.execute(f"DROP TABLE IF EXISTS {native_name(state.table)}")

    def mend(self) -> None:
        """After a failure: a disk that could not be written, as one that is full, is given up with all that is kept there.

        Who keeps rows there finds them gone, and computes the next answer as a whole.
        """
        with self.lock, self._native.cursor() as cursor:
            if self._directory is None:
                return
            try:
                cursor.execute(f"CHECKPOINT {_DISK}")
            except duckdb.Error as trouble:
                logger.warning("what is kept on disk is given up: %s", trouble)
                cursor.execute(f"DETACH DATABASE IF EXISTS {_DISK}")
                self._directory.remove()
                self._directory = None
                self._states = {key: state for key, state in self._states.items() if state.place != DISK}

    def _remove(self, found: Moving, state: StateRows) -> None:
        if state.place == DISK:
            found.execute(f"DROP VIEW IF EXISTS {native_name(state.table)}")
        found.execute(f"DROP TABLE IF EXISTS {self._home(state.place, found)}{native_name(state.table)}")


def _let_go(state: StateRows, before: int) -> int:
    """The bytes that a state has no more, which had so many values before."""
    freed = state.bytes if state.is_anew else round(state.bytes * max(0.0, 1 - state.values / before)) if before else 0
    state.bytes -= freed
    return freed


def _written(state: StateRows, before: int) -> int:
    """How many values of a state were written, which had so many before."""
    return state.values if state.is_anew else max(0, state.values - before)


def _numbered(sql: str, names: Sequence[str], state: StateRows) -> str:
    """The rows of a query under the numbers of a state's columns, in its order."""
    numbered = ", ".join(f"{native_name(name)} AS c{place}" for place, name in enumerate(names))
    ordered = f" ORDER BY {', '.join(f'c{place}' for place in state.order)}" if state.order else ""
    return f"SELECT {numbered} FROM ({sql}){ordered}"


def _deletion(state: StateRows, table: str, change: PartChange) -> str:
    """Deletes rows by what tells them apart; else by all columns, of equal ones as many as went."""
    weight = native_name(change.weight)
    gone = f"SELECT * FROM {change.source} WHERE {weight} < 0"
    if state.key is not None:
        test = " AND ".join(_same(place, change) for place in state.key) or "true"
        return f"DELETE FROM {table} AS kept USING ({gone}) AS gone WHERE {test}"
    test = " AND ".join(_same(place, change) for place in range(len(state.columns))) or "true"
    numbered = f"SELECT *, row_number() OVER () AS nearly_number FROM ({gone})"
    met = (
        f"SELECT kept.rowid AS place, row_number() OVER (PARTITION BY gone.nearly_number) AS nth, gone.{weight} AS weight "
        f"FROM {table} AS kept JOIN ({numbered}) AS gone ON {test}"
    )
    return f"DELETE FROM {table} WHERE rowid IN (SELECT place FROM ({met}) WHERE nth <= -weight)"


def _same(place: int, change: PartChange) -> str:
    return f"kept.c{place} IS NOT DISTINCT FROM gone.{native_name(change.columns[place])}"
