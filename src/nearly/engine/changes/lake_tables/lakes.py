"""Tables of sources with versions of their own: Delta and Iceberg, used in place, and followed from version to version.

Law: after `refresh` a table holds the rows of the source's version, without those that were deleted here and with those that were
inserted here. The source's files are never touched. What a version changed is recorded row by row: from the source's own feed where
it keeps one, else from the difference of the files that it replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearly.engine.changes.batch_files import CAME, GONE, SOURCE, WENT, entry_of_file, nothing, with_vector, written
from nearly.engine.changes.feed import AFTER, BEFORE, DELETE, INSERT, KIND
from nearly.engine.changes.given_rows import arrow_schema
from nearly.engine.changes.lake_tables.overlay import came_here, deleted, is_ours, overlaid, refuse_same_keys
from nearly.engine.changes.positions import by_key, run_here
from nearly.engine.engine import Engine
from nearly.engine.native.places import Positions
from nearly.engine.native.reading import gone_rows
from nearly.engine.storage.batches import Batch, LayoutChange, changed
from nearly.engine.storage.catalog import check_name
from nearly.engine.storage.footers import checksum_of
from nearly.engine.storage.lake_logs.lakes import Lake, LakeSnapshot, Rows, describe_lake
from nearly.engine.storage.layouts import BASE, Layout, Table
from nearly.engine.storage.listing import FoundFile
from nearly.engine.storage.manifest import Manifest
from nearly.engine.storage.registration import schema_difference
from nearly.engine.storage.versions import now
from nearly.engine.writing.staging import new_directory
from nearly.errors import Conflict, EngineError, SchemaError
from nearly.plan.types import is_simple

MOST_STEPS = 64
"""Older versions that were missed are taken together."""
MOST_COMPARED = 20_000_000
"""Rows of replaced files that are compared to tell what changed; with more of them, that is found out when somebody asks."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A directory that is being written, and where it will be."""

    source: Path
    destination: Path

    def placed(self, layout: Layout) -> Layout:
        """A layout as it will be."""
        inside = str(self.source)
        moved = tuple(replace(each, path=each.path.replace(inside, str(self.destination), 1)) for each in layout.vectors)
        files = tuple(replace(each, path=each.path.replace(inside, str(self.destination), 1)) for each in layout.manifest.files)
        return replace(layout, vectors=moved, manifest=Manifest(files))


@dataclass(frozen=True, slots=True)
class _Changed:
    """Rows that came and went by one version of a source; the first `updated` of both are the same rows."""

    came: pa.Table
    went: pa.Table
    updated: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.came.num_rows and not self.went.num_rows


def register_lake(
    engine: Engine,
    name: str,
    lake: Lake,
    key: Sequence[str] = (),
    clustered_by: Sequence[str] | None = None,
    version: str | None = None,
) -> Table:
    """Register a source at one of its versions, or as it is now."""
    check_name(name)
    snapshot = lake.snapshot(version)
    fresh = describe_lake(name, lake, snapshot, key, clustered_by)
    with engine.catalog.temporary(name) as temporary:
        draft = _drafted(engine, name, temporary)
        base = _without_deleted(engine, fresh, snapshot, draft)
        return _commit(engine, None, _with_base(fresh, base), draft, f"register {lake.kind} {snapshot.version}")


def refresh_lake(engine: Engine, table: Table, lake: Lake) -> Table:
    """Bring a table up to the present version of its source, by one commit for each version that can still be read."""
    with engine.catalog.changing(table.name):
        table = engine.catalog.table(table.name)
        seen, later = str(table.origin.version), lake.later(str(table.origin.version))
        if not later:  # unless the source was made again from the beginning
            present = lake.snapshot()
            return table if _is_at(engine, table, present) else _follow(engine, table, lake, present, one_step=False)
        for before, version in pairwise([seen, *later]):
            snapshot = _readable(lake, version, last=version == later[-1]) if version in later[-MOST_STEPS:] else None
            if snapshot is not None:
                table = _follow(engine, table, lake, snapshot, one_step=before == seen)
                seen = version
    return table


def _is_at(engine: Engine, table: Table, snapshot: LakeSnapshot) -> bool:
    known = {path for path in table.base.manifest.paths if not is_ours(engine, table, path)}
    return known == {file.path for file in snapshot.files}


def _readable(lake: Lake, version: str, last: bool) -> LakeSnapshot | None:
    """A version of a source, None when it can be read no longer; but the last one must be."""
    try:
        snapshot = lake.snapshot(version)
    except EngineError:
        if last:
            raise
        return None
    return snapshot if last or snapshot.is_there else None


def _follow(engine: Engine, table: Table, lake: Lake, snapshot: LakeSnapshot, one_step: bool) -> Table:
    if difference := schema_difference(table.columns, snapshot.columns):
        raise SchemaError(f"the source of table {table.name!r} changed its schema: {difference}; register it again")
    operation = f"{lake.kind} {snapshot.version}: {snapshot.operation}".strip(": ")
    added = _only_added(engine, table, snapshot)
    if added is not None:
        return _append(engine, table, lake, replace(snapshot, files=added), operation)
    with engine.catalog.held([table]), engine.catalog.temporary(table.name) as temporary:
        draft = _drafted(engine, table.name, temporary)
        fresh = _described_again(table, lake, snapshot)
        late = came_here(engine, table)
        source = fresh.base if late and not snapshot.files else _without_deleted(engine, fresh, snapshot, draft)
        base = overlaid(engine, table, source, lake, snapshot, draft.source)
        told = _told_changes(engine, table, _with_base(fresh, base), lake if one_step else None)
        return _replace(engine, table, _with_base(fresh, base), told, draft, operation)


def _described_again(table: Table, lake: Lake, snapshot: LakeSnapshot) -> Table:
    """The table as a version has it; a declared clustering stays when it still holds."""
    if table.base.clustering is not None:
        with suppress(SchemaError):
            return describe_lake(table.name, lake, snapshot, table.key, table.base.clustering.columns)
    return describe_lake(table.name, lake, snapshot, table.key)


def _only_added(engine: Engine, table: Table, snapshot: LakeSnapshot) -> tuple[FoundFile, ...] | None:
    """The files that a version added, when that is all it did."""
    known = {path for path in table.base.manifest.paths if not is_ours(engine, table, path)}
    added = tuple(file for file in snapshot.files if file.path not in known)
    if snapshot.equal or not known or len(added) + len(known) != len(snapshot.files):
        return None
    before = deleted(table.base, SOURCE)
    same = before.keys() == snapshot.gone.keys() and all(np.array_equal(before[path], snapshot.gone[path]) for path in before)
    return added if same else None


def _append(engine: Engine, table: Table, lake: Lake, snapshot: LakeSnapshot, operation: str) -> Table:
    """Files that a version added, as rows that came."""
    if not snapshot.files:
        return table
    there = describe_lake(table.name, lake, snapshot, table.key)
    refuse_same_keys(engine, table, there)
    added = there.base
    change = LayoutChange(BASE, added.manifest.files, added.blocks)
    batch = Batch(table.version + 1, now(), operation, added.rows, 0, 0, (change,), source=snapshot.version)
    (made,) = engine.catalog.commit_batches([(table, batch)])
    return made


def _replace(engine: Engine, table: Table, fresh: Table, told: _Changed | None, draft: _Draft, operation: str) -> Table:
    """Commit a description of the source's files in place of the one before, with a record of what changed."""
    if told is not None and told.is_empty:  # the same rows in other files
        same = replace(fresh, content=table.content, layouts=(fresh.base, *table.layouts[1:]), behind=table.behind)
        return _commit(engine, table, same, draft, operation)
    record = None if told is None else _record(table, told, draft, operation)
    behind = (*table.behind, *table.layouts[1:])
    return _commit(engine, table, replace(fresh, behind=behind), draft, operation, record)


def _record(table: Table, told: _Changed, draft: _Draft, operation: str) -> Batch:
    """A batch that only tells what changed: its files are read by those who follow changes."""
    entries = []
    for name, rows in ((CAME, told.came), (WENT, told.went)):
        entry = entry_of_file(written(rows, draft.source / name)) if rows.num_rows else None
        entries.append(entry and replace(entry, path=str(draft.destination / name)))
    came, went = entries
    change = LayoutChange(BASE, (came,) if came else ())
    return Batch(table.version + 1, now(), operation, told.came.num_rows, told.went.num_rows, told.updated, (change,), went)


def _commit(engine: Engine, known: Table | None, table: Table, draft: _Draft, operation: str, record: Batch | None = None) -> Table:
    def moved(present: Table | None) -> Table:
        if known is not None and (present is None or present.base.files != known.base.files or present.version != known.version):
            raise Conflict(f"table {known.name!r} was changed by someone else meanwhile; nothing was changed, try again")
        draft.source.rename(draft.destination)
        return table

    table = replace(table, layouts=(draft.placed(table.base), *table.layouts[1:]))
    return engine.catalog.commit(table.name, moved, operation, record)


def _drafted(engine: Engine, name: str, temporary: Path) -> _Draft:
    destination = new_directory(engine.catalog, name, SOURCE)
    source = temporary / destination.name
    source.mkdir()
    return _Draft(source, destination)


def _with_base(fresh: Table, base: Layout) -> Table:
    deleted = " ".join(vector.footer_checksum for vector in base.vectors)
    paths = " ".join(base.manifest.paths[len(fresh.base.manifest.paths) :])
    content = checksum_of(f"{fresh.content} {deleted} {paths}".encode())
    return replace(fresh, layouts=(base,), content=content)


def _without_deleted(engine: Engine, fresh: Table, snapshot: LakeSnapshot, draft: _Draft) -> Layout:
    """The layout of a snapshot's files without the rows that it holds as deleted."""
    base = fresh.base
    if not base.manifest.files:
        empty = entry_of_file(written(nothing(fresh), draft.source / CAME))
        return replace(base, manifest=Manifest((empty,)))
    gone = _resolved(engine, fresh, snapshot)
    if not gone:
        return base
    places = Positions.at(gone, base.manifest.paths)
    return changed(base, with_vector(LayoutChange(BASE), base, places, draft.source, stem=SOURCE))


def _resolved(engine: Engine, fresh: Table, snapshot: LakeSnapshot) -> Mapping[str, Rows]:
    """The deleted rows of each file, those included that are named by their values."""
    gone = dict(snapshot.gone)
    for each in snapshot.equal:
        keys = pq.read_table(each.file, partitioning=None).select(list(each.columns))
        places = Positions.of(by_key(engine, fresh, fresh.base, keys)).by_path(fresh.base.manifest.paths)
        for path in each.applies_to:
            if path in places:
                gone[path] = np.union1d(gone.get(path, np.empty(0, np.int64)), places[path])
    return gone


def _told_changes(engine: Engine, table: Table, fresh: Table, lake: Lake | None) -> _Changed | None:
    """What came and went between two descriptions; None when that is too much to find out now."""
    if not all(is_simple(column.type) for column in table.columns):
        return None
    untouched = not any(is_ours(engine, table, path) for path in table.base.manifest.paths) and not deleted(table.base, GONE)
    fed = lake.feed(str(fresh.origin.version)) if lake is not None and untouched else None
    if fed is not None:
        found = _fed(table, fed)
        if found is not None and found.came.num_rows - found.went.num_rows == fresh.rows - table.rows:
            return found
    return _difference(engine, table, fresh)


def _fed(table: Table, fed: pa.Table) -> _Changed | None:
    """The rows of a source's own feed."""
    schema = arrow_schema(table.columns)
    kinds = fed[KIND].cast(pa.string())
    rows = fed.select(schema.names).cast(schema)
    parts = {kind: rows.filter(pc.equal(kinds, kind)) for kind in (BEFORE, AFTER, DELETE, INSERT)}
    if parts[BEFORE].num_rows != parts[AFTER].num_rows:
        return None
    came, went = pa.concat_tables([parts[AFTER], parts[INSERT]]), pa.concat_tables([parts[BEFORE], parts[DELETE]])
    return _Changed(came, went, parts[AFTER].num_rows)


def _difference(engine: Engine, table: Table, fresh: Table) -> _Changed | None:
    """The rows of replaced files that the other side does not have, as bags."""
    before, after = (Positions.stored(each.base.vectors).by_path(each.base.manifest.paths) for each in (table, fresh))
    same = {
        path
        for path in set(table.base.manifest.paths) & set(fresh.base.manifest.paths)
        if np.array_equal(before.get(path, ()), after.get(path, ()))
    }
    old, new = ([file for file in each.base.manifest.files if file.path not in same] for each in (table, fresh))
    if sum(file.rows for file in (*old, *new)) > MOST_COMPARED or not all(Path(file.path).exists() for file in old):
        return None
    left, right = (_rows(engine, each, [f.path for f in files]) for each, files in ((table, old), (fresh, new)))
    went = run_here(engine, f"FROM ({left}) EXCEPT ALL FROM ({right})", {})
    came = run_here(engine, f"FROM ({right}) EXCEPT ALL FROM ({left})", {})
    schema = arrow_schema(table.columns)
    return _Changed(came.cast(schema), went.cast(schema))


def _rows(engine: Engine, table: Table, paths: Sequence[str]) -> str:
    reader, layout, names = engine.native.reader, table.base, table.column_names
    gone = gone_rows(layout, paths) if layout.vectors and paths else None
    query = reader.query(table, layout, names, paths or layout.manifest.paths[:1], gone=gone)
    return str((query if paths else query.limit(0)).sql(dialect="duckdb"))
