"""The rows of a view as a table of the catalog: written whole, or changed by what came and went.

Law: rows and notes are committed together; a process that dies at any point leaves both as they were, or both new.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearly.engine.changes.batch_files import Change, write_batch
from nearly.engine.changes.batch_files import new_directory as new_batch_directory
from nearly.engine.changes.given_rows import arrow_schema
from nearly.engine.changes.positions import by_content, by_key, duplicates, pairs, rows_at, rows_by_key, run_here
from nearly.engine.changes.row_files import BucketWriter, FiledRows, FileWriter, ManyRows
from nearly.engine.engine import Engine
from nearly.engine.native.failures import NativeFailure
from nearly.engine.native.places import Positions
from nearly.engine.native.reading import FILE, ROW
from nearly.engine.plans import plan_batches
from nearly.engine.storage.batches import Batch, after
from nearly.engine.storage.blocks import target_for
from nearly.engine.storage.catalog import refuse_other
from nearly.engine.storage.clustering import Clustering
from nearly.engine.storage.durable import writing_in
from nearly.engine.storage.footers import checksum_of
from nearly.engine.storage.layouts import BASE, Origin, Table
from nearly.engine.storage.registration import content_of, schema_difference
from nearly.engine.storage.ticket_order import BUCKET, FEWEST_ROWS, bucket_of, by_tickets
from nearly.engine.storage.view_definition import ViewDefinition
from nearly.engine.writing.parquet_writer import Progress
from nearly.engine.writing.staging import Arrangement, Staged, new_directory, place, stage
from nearly.errors import Conflict, EngineError, SchemaError
from nearly.plan.expressions import SortKey
from nearly.plan.nodes import Output, Plan, Project, Sort, passed
from nearly.plan.quoting import native_name, native_text
from nearly.rewrite.logical.sizes import size
from nearly.rewrite.sample.sampling_columns import sampling_columns
from nearly.rewrite.views.split_view import StoredView
from nearly.views.definition import PlannedView
from nearly.views.states import State

VIEW = "view"
"""The origin of a table that is the rows of a view, and the operation that refreshes it."""
WEIGHT = "nearly_weight"
"""How often a row came, or, where it is negative, went."""
REFRESH = "refresh"
SMALL = 20_000
"""Rows of a view that are read whole to find some of them: looking at their keys alone first takes longer."""


_COMPUTED = "computed_rows"


class Mismatch(Exception):
    """Rows that are to go are not there: what is stored is not what it was taken for."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where new files are written, where they will be, and how rows are spread over them."""

    source: Path
    destination: Path
    tickets: Clustering | None = None

    def writer(self, schema: pa.Schema, group: int) -> FileWriter | BucketWriter:
        if self.tickets is not None:
            return BucketWriter(self.source, schema, group)
        return FileWriter(self.source / "part", schema, group)


def written(
    engine: Engine, planned: PlannedView, source: PlannedView, name: str, temporary: Path, progress: Progress | None = None,
    sampled: bool = False,
) -> Staged:  # fmt: skip
    """All rows of a view in new files, complete but known to nobody; those of a view that is `sampled` by their tickets.

    `source` is the same view over what is kept of it.
    """
    destination = new_directory(engine.catalog, name, BASE)
    there = _Place(temporary / destination.name, destination, _tickets(engine, planned) if sampled else None)
    try:
        return _staged(engine, source, _native(engine, source, there.tickets), there, progress)
    except NativeFailure:  # for Spark to judge
        shutil.rmtree(there.source, ignore_errors=True)
        return _staged(engine, planned, _by_spark(engine, planned), replace(there, tickets=None), progress)


def _tickets(engine: Engine, planned: PlannedView) -> Clustering | None:
    """By which tickets the rows of a large view lie: those for which most is saved, as far as its plan tells."""
    if planned.stored is None or not planned.key or not planned.is_plain or _expected_rows(engine, planned) < FEWEST_ROWS:
        return None
    known = {table.name.lower(): table.schema for table in planned.inputs}
    plan, names = planned.stored.maintained, dict(zip(planned.stored.columns, planned.stored.maintained.columns, strict=True))
    chosen = sampling_columns(plan, [names[name] for name in planned.key], lambda name: known[name.lower()], lambda _: 1.0)
    return by_tickets([planned.stored.columns[plan.columns.index(column)] for column in chosen])


def _staged(
    engine: Engine, planned: PlannedView, rows: Iterator[pa.RecordBatch], there: _Place, progress: Progress | None
) -> Staged:
    expected, source = _expected_rows(engine, planned), there.source
    with writing_in(source), engine.reading(planned.inputs):
        source.mkdir(parents=True)
        first = next(rows, None)
        schema = _schema(planned, first)
        named = [*schema.names, BUCKET] if there.tickets is not None else schema.names
        with there.writer(schema, target_for(expected, 0).rows) as writer:
            for batch in () if first is None else chain([first], rows):
                engine.life.refuse_over()
                writer.write(batch.rename_columns(named))
                if progress is not None:
                    progress(min(0.95, writer.rows / expected))
    staged = stage(source, there.destination, Arrangement(BASE, there.tickets))
    if planned.is_plain and (difference := schema_difference(planned.columns, staged.columns)):
        raise EngineError(f"the rows of the view were written with another schema: {difference}")
    return staged


def _schema(planned: PlannedView, first: pa.RecordBatch | None) -> pa.Schema:
    """The columns as Arrow has them; of nested ones the rows tell."""
    if planned.is_plain or first is None:
        return arrow_schema(planned.columns)
    return pa.schema([(column.name, field.type) for column, field in zip(planned.columns, first.schema, strict=True)])


def _expected_rows(engine: Engine, planned: PlannedView) -> int:
    if planned.stored is None:
        return max([1, *(table.rows for table in planned.inputs)])
    known = {table.name.lower(): table.schema for table in planned.inputs}
    return max(1, int(size(planned.stored.maintained, lambda name: known[name.lower()]).rows))


def _native(engine: Engine, planned: PlannedView, tickets: Clustering | None) -> Iterator[pa.RecordBatch]:
    """The rows in order of their key, so that few row groups hold what changes together; by buckets of tickets first, if at all."""
    if planned.stored is None:
        found = engine.run(planned.prepared).table
        yield from found.to_batches() or [pa.RecordBatch.from_pylist([], found.schema)]
    else:
        yield from plan_batches(engine, _in_order(planned.stored, planned.key, tickets), planned.inputs)


def _by_spark(engine: Engine, planned: PlannedView) -> Iterator[pa.RecordBatch]:
    if planned.stored is not None:
        yield from engine.at(planned.inputs).spark.run(planned.stored.maintained).to_batches()


def _in_order(stored: StoredView, key: tuple[str, ...], tickets: Clustering | None) -> Plan:
    plan = stored.maintained
    known = dict(zip(stored.columns, plan.columns, strict=True))
    by = [column for name, column in known.items() if name in key]
    if tickets is not None:
        bucket = Output(BUCKET, bucket_of([known[name] for name in tickets.columns]))
        plan, by = Project(plan, (*passed(plan.columns), bucket)), [bucket.column, *by]
    return Sort(plan, tuple(SortKey(column) for column in by)) if by else plan


@dataclass(frozen=True, slots=True)
class NewRows:
    """Rows of a view that were computed, as something to select from."""

    source: str
    inputs: Mapping[str, pa.Table]

    @classmethod
    def of(cls, rows: Staged | ManyRows) -> NewRows:
        match rows:
            case Staged():
                return cls(_files(rows), {})
            case FiledRows():
                return cls(rows.source, {})
        return cls(_COMPUTED, {_COMPUTED: rows})


def refuse_no_key(engine: Engine, rows: NewRows, key: tuple[str, ...]) -> None:
    """A key that a user named must tell all rows apart."""
    if key:
        columns = ", ".join(native_name(name) for name in key)
        sql = f"SELECT {columns} FROM {rows.source} GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL LIMIT 1"
        twice = run_here(engine, sql, rows.inputs)
        if twice.num_rows:
            told = ", ".join(f"{name} = {value!r}" for name, value in twice.to_pylist()[0].items())
            raise SchemaError(
                f"{', '.join(key)} is no key of the view: more than one row has {told}; leave key out, or name more columns"
            )


def _files(staged: Staged) -> str:
    """The staged files as something to select from."""
    files = ", ".join(native_text(str(path)) for path in sorted(staged.source.rglob("*.parquet")))
    return f"read_parquet([{files}], hive_partitioning = false)"


def commit_whole(
    engine: Engine, name: str, planned: PlannedView, definition: ViewDefinition, staged: Staged, state: State, replaced: bool,
    known: Table | None = None,
) -> Table:  # fmt: skip
    """Make staged rows the view, a new one or in place of what it was; one that is refreshed must still be the one `known`."""
    content = checksum_of(f"{content_of(staged.columns, staged.layout)} {definition.text}".encode())
    table = Table(name, staged.columns, planned.key, (staged.layout,), content, Origin(VIEW), view=definition)

    def change(present: Table | None) -> Table:
        if present is not None and not replaced:
            raise Conflict(f"{name!r} was made by someone else meanwhile")
        if known is not None:
            refuse_other(known, present)
        place([staged])
        return table

    return engine.catalog.commit(name, change, REFRESH if replaced else "create view", notes=state.notes)


def difference(engine: Engine, table: Table, rows: NewRows) -> pa.Table:
    """What must come and go to make stored rows those that were computed: as a bag, each with its weight in the last column."""
    columns = ", ".join(native_name(name) for name in table.column_names)
    stored = engine.native.reader.whole(table, table.base, table.column_names).sql(dialect="duckdb")
    new = f"SELECT {columns}, 1 AS {WEIGHT} FROM {rows.source}"
    old = f"SELECT {columns}, -1 AS {WEIGHT} FROM ({stored})"
    weighed = f"SELECT {columns}, CAST(sum({WEIGHT}) AS BIGINT) AS {WEIGHT} FROM ({new} UNION ALL {old}) GROUP BY {columns}"
    with engine.reading([table]):
        return run_here(engine, f"SELECT * FROM ({weighed}) WHERE {WEIGHT} <> 0", rows.inputs)


def change_of(engine: Engine, table: Table, delta: pa.Table) -> Change:
    """Rows that came and went, with weights in the last column, as a change of the stored table."""
    came, went = _sides(table, delta)
    with engine.reading([table]):
        change = _change(engine, table, came, went)
        if table.view is not None and table.view.key and came.num_rows:
            _refuse_taken(engine, table, came, went)
        return change


def _refuse_taken(engine: Engine, table: Table, came: pa.Table, went: pa.Table) -> None:
    """Where a user named the key, rows that come may have none of a row that stays."""
    keys = came.select(list(table.key))
    there = by_key(engine, table, table.base, keys)
    leaving = pairs(engine, there.select(list(table.key)), went.select(list(table.key)))["old"]
    if duplicates(engine, keys).num_rows or leaving.null_count:
        raise Mismatch


@dataclass(frozen=True, slots=True)
class WrittenChange:
    """The batch of a table's change, whose files are written in a directory, but known to nobody."""

    table: Table
    batch: Batch
    directory: Path

    @property
    def content(self) -> str:
        """The content of the table after it."""
        return after(self.table, [self.batch]).content


def written_change(engine: Engine, table: Table, change: Change) -> WrittenChange | None:
    """The batch of a change; none where no row does."""
    if change.is_empty:
        return None
    directory = new_batch_directory(engine, table)
    return WrittenChange(table, write_batch(engine, table, change, directory), directory)


def commit_changes(engine: Engine, table: Table, changes: Sequence[WrittenChange], state: State) -> Table:
    """Change stored rows of a view, and of what is kept beside it, together with what is known of the view."""
    try:
        batches = [(each.table, each.batch) for each in changes]
        changed = engine.catalog.commit_batches(batches, {table.name: state.notes}, [table])
    except Conflict:
        for each in changes:
            shutil.rmtree(each.directory, ignore_errors=True)
        raise
    return next(each for each in changed if each.name == table.name)


def _sides(table: Table, delta: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows that came and those that went, each as often as its weight says."""
    schema = arrow_schema(table.columns)
    weights = delta.column(delta.num_columns - 1).to_numpy().astype(np.int64)
    rows = pa.Table.from_arrays([delta.column(place).cast(field.type) for place, field in enumerate(schema)], schema=schema)
    numbers = np.arange(len(weights))
    return rows.take(np.repeat(numbers, np.maximum(weights, 0))), rows.take(np.repeat(numbers, np.maximum(-weights, 0)))


def _with_keys(engine: Engine, table: Table, keys: pa.Table) -> tuple[Positions, pa.Table]:
    """Where the stored rows with some keys lie, and the rows in that order; those of a small table are found and read at once."""
    if table.rows <= SMALL:
        found = rows_by_key(engine, table, table.base, keys)
        return Positions.of(found), found.drop_columns([FILE, ROW])
    places = Positions.of(by_key(engine, table, table.base, keys))
    return places, rows_at(engine, table, table.base, places)


def _change(engine: Engine, table: Table, came: pa.Table, went: pa.Table) -> Change:
    """Rows found where they lie; those whose key is in both are the same rows, before and after.

    By their key rows are found also where a sum of doubles, computed again, differs from the stored one in its last digits.
    """
    if not went.num_rows:
        return Change(REFRESH, came)
    key = list(table.key)
    places, gone = (
        _with_keys(engine, table, went.select(key)) if key else (Positions.of(by_content(engine, table, table.base, went)), went)
    )
    if len(places) != went.num_rows:
        raise Mismatch
    if not key:
        return Change(REFRESH, came, gone, places)
    matches = pairs(engine, came.select(key), gone.select(key))
    updates = matches.filter(pc.is_valid(matches["old"])).sort_by("old")
    if matches.num_rows != came.num_rows or pc.count_distinct(updates["old"]).as_py() != updates.num_rows:
        raise Mismatch  # the key of a table, which is taken at its word, is none
    others = matches.filter(pc.is_null(matches["old"])).sort_by("new")
    left = np.setdiff1d(np.arange(gone.num_rows), updates["old"].to_numpy())
    came = pa.concat_tables([came.take(updates["new"]), came.take(others["new"])])
    gone = pa.concat_tables([gone.take(updates["old"]), gone.take(left)])
    return Change(REFRESH, came, gone, places, updates.num_rows)
