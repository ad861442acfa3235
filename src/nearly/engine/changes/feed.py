"""What changed between two versions of a table, row by row, in the words of Delta and Spark.

Law: the rows of the earlier version, without those that were deleted and with those that were inserted, are those of the later one;
and what changed from v0 to v2 is what changed from v0 to v1 and then to v2.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from nearly.engine.changes.batch_files import nothing
from nearly.engine.changes.given_rows import arrow_schema
from nearly.engine.changes.positions import rows_at
from nearly.engine.changes.shown import shown_rows, shown_sql, shown_table, shows_rows
from nearly.engine.engine import Engine
from nearly.engine.native.failures import final
from nearly.engine.native.places import Positions
from nearly.engine.storage.batches import Batch
from nearly.engine.storage.blocks import PartitionValue
from nearly.engine.storage.layouts import Table
from nearly.engine.storage.manifest import FileEntry
from nearly.errors import EngineError, SchemaError, Unsupported
from nearly.plan.quoting import native_name
from nearly.plan.types import DataType, to_arrow

INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"
KIND, VERSION, TIME = "_change_type", "_commit_version", "_commit_timestamp"


@dataclass(frozen=True, slots=True)
class Step:
    """What one version changed: rows that went and rows that came; the first `updated` of both are what rows were and became."""

    version: int
    time: dt.datetime
    went: pa.Table
    came: pa.Table
    updated: int = 0


def changes(engine: Engine, name: str, since: int, until: int | None = None) -> pa.Table:
    """The rows that came and went after version `since` up to `until`, the present one unless it is given; in order of versions."""
    present = engine.catalog.table(name)
    last = present.version if until is None else until
    _refuse_odd(present, since, last)
    first, end = engine.catalog.at(name, since), engine.catalog.at(name, last)
    if _shape(first) != _shape(end):
        raise SchemaError(f"table {name!r} has other columns in version {last} than in version {since}")
    _refuse_told(end)
    if end.schema.reading is None:
        found = steps(engine, name, since, last, end.column_names)
        return pa.concat_tables([_empty(end), *(part for step in found for part in _parts(end, step))])
    return pa.concat_tables([_empty(shown_table(end)), *_shown_changes(engine, name, since, end)])


def _shown_changes(engine: Engine, name: str, since: int, end: Table) -> Iterator[pa.Table]:
    """What users of a view see of its changes: row by row where what is stored of a row decides what is shown of it."""
    catalog, reading = engine.catalog, end.schema.reading
    logged = catalog.batches(name, since, end.version)
    times = {commit.version: commit.time for commit in catalog.commits(name)}
    for version in range(since + 1, end.version + 1):
        before = catalog.at(name, version - 1)
        if version in logged and reading is not None and shows_rows(reading) and before.schema.reading == reading:
            (step,) = steps(engine, name, version - 1, version, before.column_names)
            yield from _shown(engine, before, _parts(before, step))
        else:
            now, shown = catalog.at(name, version), shown_table(catalog.at(name, version))
            queries = (shown_sql(engine, before), shown_sql(engine, now))
            went, came = _difference(engine, (before, now), queries, shown.column_names)
            yield from _parts(shown, Step(version, times[version], went, came))


def _parts(table: Table, step: Step) -> list[pa.Table]:
    """What one version did, rows that went before those that came, each with what happened to it."""
    found = []
    for rows, replaced, others in ((step.went, BEFORE, DELETE), (step.came, AFTER, INSERT)):
        found.append(_told(table, rows.slice(0, step.updated), replaced, step))
        found.append(_told(table, rows.slice(step.updated), others, step))
    return found


def steps(engine: Engine, name: str, since: int, until: int, columns: Sequence[str]) -> Iterator[Step]:
    """What each version after `since` up to `until` changed, told by some of the table's columns."""
    catalog = engine.catalog
    logged = catalog.batches(name, since, until)
    times = {commit.version: commit.time for commit in catalog.commits(name)} if len(logged) < until - since else {}
    for version in range(since + 1, until + 1):
        before = catalog.at(name, version - 1)
        if version in logged:
            batch = logged[version]
            with _telling(name):
                went, came = _went_from(engine, [(before, batch)], columns), _came(before, batch, columns)
            yield Step(version, batch.time, went, came, batch.updated)
        else:
            versions = (before, catalog.at(name, version))
            queries = [str(engine.native.reader.whole(each, each.base, columns).sql(dialect="duckdb")) for each in versions]
            yield Step(version, times[version], *_difference(engine, versions, queries, columns))


def moved(engine: Engine, name: str, since: int, until: int, columns: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """The rows that went and those that came by all of some versions, which a log tells; a row may do both.

    Rows that went are read at once as long as the files stay the same and others are only added to them.
    """
    catalog = engine.catalog
    logged = catalog.batches(name, since, until)
    went, came = [nothing(catalog.at(name, since), columns)], [nothing(catalog.at(name, since), columns)]
    waiting: list[tuple[Table, Batch]] = []
    with _telling(name):
        for version in range(since + 1, until + 1):
            before, batch = catalog.at(name, version - 1), logged[version]
            came.append(_came(before, batch, columns))
            if waiting and not _goes_on(waiting[-1][0], before):
                went.append(_went_from(engine, waiting, columns))
                waiting = []
            if batch.gone:
                waiting.append((before, batch))
        went.append(_went_from(engine, waiting, columns) if waiting else went[0])
    return pa.concat_tables(went), pa.concat_tables(came)


def _goes_on(before: Table, after: Table) -> bool:
    """Whether places in the files of a table are those in the files of another."""
    paths = before.base.manifest.paths
    return after.base.manifest.paths[: len(paths)] == paths


def _went_from(engine: Engine, batches: Sequence[tuple[Table, Batch]], columns: Sequence[str]) -> pa.Table:
    """The rows that batches took out of the same files, read where they lay, unless a file holds them.

    Of one batch, those that were updated come first.
    """
    table = batches[-1][0]
    told = [_read(table, batch.went.path, (), columns) for _, batch in batches if batch.went is not None]
    vectors = [batch.base.vector for _, batch in batches if batch.went is None and batch.base.vector is not None]
    return pa.concat_tables([nothing(table, columns), *told, *([_rows_of(engine, table, vectors, columns)] if vectors else [])])


@contextmanager
def _telling(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as trouble:
        raise EngineError(f"what changed in table {name!r} cannot be read: {trouble}") from trouble


def _shown(engine: Engine, table: Table, parts: list[pa.Table]) -> list[pa.Table]:
    """What users see of what one batch did: a row that was hidden comes, one that is hidden now goes."""
    reading = table.schema.reading
    if reading is None or not parts:
        return parts
    told = pa.concat_tables(parts)
    rows, numbers = shown_rows(engine, reading, told.select(list(table.column_names)))
    kinds = told[KIND].to_pylist()
    before, after = ([place for place, kind in enumerate(kinds) if kind == each] for each in (BEFORE, AFTER))
    shown = {number: place for place, number in enumerate(numbers.tolist())}
    values = rows.to_pylist()
    kept = set(shown)
    for old, new in zip(before, after, strict=True):
        if old in shown and new in shown and values[shown[old]] == values[shown[new]]:
            kept -= {old, new}
        elif (old in shown) != (new in shown):
            kinds[old], kinds[new] = DELETE, INSERT
    chosen = [number for number in shown if number in kept]
    places = pa.array([shown[number] for number in chosen], pa.int64())
    facts = told.set_column(told.column_names.index(KIND), KIND, pa.array(kinds, pa.string())).select([KIND, VERSION, TIME])
    found = rows.take(places)
    for name, column in zip(facts.column_names, facts.take(pa.array(chosen, pa.int64())).columns, strict=True):
        found = found.append_column(name, column)
    return [found.cast(_schema(shown_table(table)))]


def _shape(table: Table) -> list[tuple[str, DataType]]:
    return [(column.name, column.type) for column in shown_table(table).columns]


def _refuse_odd(table: Table, since: int, until: int) -> None:
    for what, version in (("since", since), ("until", until)):
        if isinstance(version, bool) or not isinstance(version, int):
            raise SchemaError(f"{what}={version!r} must be the number of a version")
    if not since <= until <= table.version:
        raise SchemaError(
            f"changes since {since} until {until}: table {table.name!r} is at version {table.version}, and since comes first"
        )


def _refuse_told(table: Table) -> None:
    """What happened to a row is told beside its columns."""
    taken = {each.lower() for each in (KIND, VERSION, TIME)} & {each.name.lower() for each in shown_table(table).columns}
    if taken:
        raise Unsupported(f"table {table.name!r} has a column {min(taken)!r}, by which changes are told; read it through a view")


def _came(table: Table, batch: Batch, columns: Sequence[str]) -> pa.Table:
    """The rows that a batch added, those that were updated first."""
    told = {part.path: block.partition for block in batch.base.blocks for part in block.parts}
    return pa.concat_tables(
        [nothing(table, columns), *(_read(table, file.path, told.get(file.path, ()), columns) for file in batch.base.files)]
    )


def _rows_of(engine: Engine, table: Table, vectors: Sequence[FileEntry], columns: Sequence[str]) -> pa.Table:
    with engine.reading([table]):
        found = rows_at(engine, table, table.base, Positions.stored(vectors), columns)
    return found.cast(nothing(table, columns).schema)


def _read(table: Table, path: str, told: Sequence[PartitionValue], columns: Sequence[str]) -> pa.Table:
    """The rows of a file, with the values that its directory tells."""
    inside = {each.column: each.value for each in told}
    rows = pq.read_table(path, columns=[name for name in columns if name not in inside], partitioning=None)
    for name in inside.keys() & set(columns):
        rows = rows.append_column(name, pa.array([inside[name]] * rows.num_rows, to_arrow(table.column(name).type)))
    schema = nothing(table, columns).schema
    return rows.select(schema.names).cast(schema)


def _difference(
    engine: Engine, versions: Sequence[Table], queries: Sequence[str], names: Sequence[str]
) -> tuple[pa.Table, pa.Table]:
    """Two versions compared as bags, where the table was replaced and no log tells what changed: what went, what came."""
    local = engine.native.local
    columns = ", ".join(native_name(name) for name in names)
    old, new = (f"SELECT {columns} FROM ({query})" for query in queries)
    local.configure(engine.native.settings)
    with engine.reading(versions):
        try:
            went = local.run(f"{old} EXCEPT ALL {new}", (), {})
            came = local.run(f"{new} EXCEPT ALL {old}", (), {})
        except duckdb.Error as trouble:
            raise final(trouble) from trouble
    return went, came


def _told(table: Table, rows: pa.Table, kind: str, step: Step) -> pa.Table:
    schema = _schema(table)
    arrays = [rows[name].cast(schema.field(name).type) for name in table.column_names]
    facts = (kind, step.version, step.time)
    arrays += [pa.array([fact] * rows.num_rows, schema.field(place).type) for place, fact in enumerate(facts, len(arrays))]
    return pa.Table.from_arrays(arrays, schema=schema)


def _schema(table: Table) -> pa.Schema:
    facts = [(KIND, pa.string()), (VERSION, pa.int64()), (TIME, pa.timestamp("us", tz="UTC"))]
    return pa.schema([*arrow_schema(table.columns), *(pa.field(*fact) for fact in facts)])


def _empty(table: Table) -> pa.Table:
    return _schema(table).empty_table()
