"""What changed between two versions of a table, row by row, in the words of Delta and Spark.

Law: the rows of the earlier version, without those that were deleted and with those that were inserted, are those of the later one;
and what changed from v0 to v2 is what changed from v0 to v1 and then to v2.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from nearly.engine.changes.given_rows import arrow_schema
from nearly.engine.changes.positions import Positions, rows_at
from nearly.engine.engine import Engine
from nearly.engine.native.failures import final
from nearly.engine.storage.batches import Batch
from nearly.engine.storage.blocks import PartitionValue
from nearly.engine.storage.layouts import Table
from nearly.errors import SchemaError
from nearly.plan.quoting import native_name
from nearly.plan.types import to_arrow

INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"
KIND, VERSION, TIME = "_change_type", "_commit_version", "_commit_timestamp"


def changes(engine: Engine, name: str, since: int, until: int | None = None) -> pa.Table:
    """The rows that came and went after version `since` up to `until`, the present one unless it is given; in order of versions."""
    present = engine.catalog.table(name)
    last = present.version if until is None else until
    _refuse_odd(present, since, last)
    first, end = engine.catalog.at(name, since), engine.catalog.at(name, last)
    if first.column_names != end.column_names or [c.type for c in first.columns] != [c.type for c in end.columns]:
        raise SchemaError(f"table {name!r} has other columns in version {last} than in version {since}")
    logged = engine.catalog.batches(name, since, last)
    times = {commit.version: commit.time for commit in engine.catalog.commits(name)}
    parts = [_empty(end)]
    for version in range(since + 1, last + 1):
        if version in logged:
            parts += _of_batch(engine, engine.catalog.at(name, version - 1), logged[version])
        else:
            parts += _difference(engine, engine.catalog.at(name, version - 1), engine.catalog.at(name, version), times[version])
    return pa.concat_tables(parts)


def _refuse_odd(table: Table, since: int, until: int) -> None:
    for what, version in (("since", since), ("until", until)):
        if isinstance(version, bool) or not isinstance(version, int):
            raise SchemaError(f"{what}={version!r} must be the number of a version")
    if not since <= until <= table.version:
        raise SchemaError(
            f"changes since {since} until {until}: table {table.name!r} is at version {table.version}, and since comes first"
        )


def _of_batch(engine: Engine, table: Table, batch: Batch) -> list[pa.Table]:
    """What one batch did to a table: rows that went before those that came."""
    found = []
    if batch.gone:
        went = _went(engine, table, batch)
        found += [_told(table, went.slice(0, batch.updated), BEFORE, batch.version, batch.time)]
        found += [_told(table, went.slice(batch.updated), DELETE, batch.version, batch.time)]
    if batch.base.files:
        told = {part.path: block.partition for block in batch.base.blocks for part in block.parts}
        came = pa.concat_tables(_read(table, file.path, told.get(file.path, ())) for file in batch.base.files)
        found += [_told(table, came.slice(0, batch.updated), AFTER, batch.version, batch.time)]
        found += [_told(table, came.slice(batch.updated), INSERT, batch.version, batch.time)]
    return found


def _went(engine: Engine, table: Table, batch: Batch) -> pa.Table:
    """The rows that a batch took out, those that were updated first; read where they lay, unless a file holds them."""
    if batch.went is not None:
        return pq.read_table(batch.went.path, partitioning=None)
    with engine.reading([table]):
        return rows_at(engine, table, table.base, Positions.stored([batch.base.vector] if batch.base.vector else []))


def _read(table: Table, path: str, told: Sequence[PartitionValue]) -> pa.Table:
    """The rows of a file, with the values that its directory tells."""
    rows = pq.read_table(path, partitioning=None)
    for each in told:
        rows = rows.append_column(each.column, pa.array([each.value] * rows.num_rows, to_arrow(table.column(each.column).type)))
    schema = arrow_schema(table.columns)
    return rows.select(schema.names).cast(schema)


def _difference(engine: Engine, before: Table, now: Table, time: dt.datetime) -> list[pa.Table]:
    """Two versions compared as bags, where the table was replaced and no log tells what changed."""
    reader, local = engine.native.reader, engine.native.local
    columns = ", ".join(native_name(name) for name in now.column_names)
    old, new = (f"SELECT {columns} FROM ({reader.whole(t, t.base, t.column_names).sql(dialect='duckdb')})" for t in (before, now))
    local.configure(engine.native.settings)
    with engine.reading([before, now]):
        try:
            went = local.run(f"{old} EXCEPT ALL {new}", (), {})
            came = local.run(f"{new} EXCEPT ALL {old}", (), {})
        except duckdb.Error as trouble:
            raise final(trouble) from trouble
    return [_told(now, went, DELETE, now.version, time), _told(now, came, INSERT, now.version, time)]


def _told(table: Table, rows: pa.Table, kind: str, version: int, time: dt.datetime) -> pa.Table:
    schema = _schema(table)
    arrays = [rows[name].cast(schema.field(name).type) for name in table.column_names]
    facts = (kind, version, time)
    arrays += [pa.array([fact] * rows.num_rows, schema.field(place).type) for place, fact in enumerate(facts, len(arrays))]
    return pa.Table.from_arrays(arrays, schema=schema)


def _schema(table: Table) -> pa.Schema:
    facts = [(KIND, pa.string()), (VERSION, pa.int64()), (TIME, pa.timestamp("us", tz="UTC"))]
    return pa.schema([*arrow_schema(table.columns), *(pa.field(*fact) for fact in facts)])


def _empty(table: Table) -> pa.Table:
    return _schema(table).empty_table()
