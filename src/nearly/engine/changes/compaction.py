"""Compaction: the rows of a table as they are now, in files without deleted rows and without many small ones.

Law: the version and its rows stay what they are; only the files differ. Older versions are read from the old files, which are kept
as long as those versions are. The user's own files are neither touched nor copied: of a table used in place, what was changed since
is put together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from nearly.engine.changes.batch_files import CAME, GONE, SOURCE, with_vector
from nearly.engine.changes.row_files import write_files
from nearly.engine.engine import Engine
from nearly.engine.native.places import Positions
from nearly.engine.native.reading import gone_rows
from nearly.engine.storage.batches import LayoutChange, changed
from nearly.engine.storage.blocks import Block
from nearly.engine.storage.clustering import RANGE, TICKETS, Clustering
from nearly.engine.storage.layouts import BASE, Layout, Table
from nearly.engine.storage.manifest import Manifest
from nearly.engine.storage.ticket_order import BUCKET, bucket_of
from nearly.engine.writing.parquet_writer import Progress
from nearly.engine.writing.preparation import same
from nearly.engine.writing.staging import Arrangement, Staged, commit, new_directory, stage
from nearly.errors import Conflict
from nearly.plan.dialects import native
from nearly.plan.expressions import Column
from nearly.plan.quoting import native_name
from nearly.plan.types import is_simple

SHARE = 0.05
"""A table is worth compacting when so large a part of its rows was deleted."""
FILES = 64
"""Or when so many files came since it was written, of rows or of deleted ones."""


def is_due(engine: Engine, table: Table) -> bool:
    """Whether queries read the table noticeably slower than they would after compaction."""
    base = table.base
    if not all(is_simple(column.type) for column in table.columns):  # which nobody here can write
        return False
    return max(len(base.vectors), len(_late(engine, table))) > FILES or (
        not table.origin.in_place and base.gone > SHARE * max(1, base.manifest.rows)
    )


def compact_alone(engine: Engine, name: str, progress: Progress | None = None) -> Table:
    """Write what was changed anew, while whoever would change the table waits."""
    with engine.catalog.changing(name):
        return compact(engine, name, progress, nullcontext)


def compact(
    engine: Engine, name: str, progress: Progress | None = None, turn: Callable[[], AbstractContextManager[None]] | None = None
) -> Table:
    """Write what was changed anew; a commit meanwhile makes it a `Conflict`, and then nothing has happened."""
    catalog = engine.catalog
    table = catalog.changeable(name)
    if not table.base.vectors and not _late(engine, table):
        return table
    with engine.reading([table]), catalog.temporary(name) as temporary:
        staged, base = (_folded if table.origin.in_place else _rewritten)(engine, table, temporary, progress)
        fresh = replace(table, layouts=(base, *table.layouts[1:]))
        with catalog.between_changes(name) if turn is None else turn():
            made = commit(catalog, name, [staged], lambda present: _same_version(table, present, fresh), "compact")
    if progress is not None:
        progress(1.0)
    return made


def _same_version(known: Table, present: Table | None, fresh: Table) -> Table:
    if present is not None and present.version != known.version:
        raise Conflict(f"table {known.name!r} was changed while it was compacted; nothing was changed, try again")
    others = same(known, present)
    return replace(fresh, layouts=(fresh.base, *others.layouts[1:]), behind=others.behind)


def _late(engine: Engine, table: Table) -> list[str]:
    """The files that came by changes and can be put together: not those in directories that tell values of columns."""
    if table.base.partitioned_by:
        return []
    own, stem = f"{engine.catalog.directory(table.name)}{os.sep}", Path(CAME).stem
    return [path for path in table.base.manifest.paths if path.startswith(own) and path.rpartition(os.sep)[2].startswith(stem)]


def _rewritten(engine: Engine, table: Table, temporary: Path, progress: Progress | None) -> tuple[Staged, Layout]:
    """All rows in new files."""
    destination = new_directory(engine.catalog, table.name, BASE)
    source = temporary / destination.name
    query = str(engine.native.reader.whole(table, table.base, table.column_names).sql(dialect="duckdb"))
    order, tickets = _order(table), _tickets(table)
    if tickets is not None:
        by = [Column(table.column(name).type, name) for name in tickets.columns]
        bucket = native.expression(bucket_of(by, tickets.buckets or 1)).sql(dialect="duckdb")
        query = f"SELECT *, {bucket} AS {BUCKET} FROM ({query}) ORDER BY {BUCKET}, {order}"
    elif order:
        query = f"SELECT * FROM ({query}) ORDER BY {order}"
    write_files(engine, table, query, source / "part", progress, tickets is not None)
    staged = stage(source, destination, Arrangement(BASE, tickets))
    return staged, staged.layout


def _tickets(table: Table) -> Clustering | None:
    """The buckets of tickets that the table's rows lie in, if they do."""
    order = table.base.clustering
    return order if order is not None and order.kind == TICKETS and table.key else None


def _folded(engine: Engine, table: Table, temporary: Path, progress: Progress | None) -> tuple[Staged, Layout]:
    """The user's files as they are, with one vector for all their deleted rows, and what came in one file."""
    base, late = table.base, set(_late(engine, table))
    own = [path for path in base.manifest.paths if path not in late]
    destination = new_directory(engine.catalog, table.name, BASE)
    source = temporary / destination.name
    paths = [path for path in base.manifest.paths if path in late]
    gone = gone_rows(base, paths) if base.vectors and paths else None
    reader = engine.native.reader
    query = reader.query(table, base, table.column_names, paths or own[:1], gone=gone).sql(dialect="duckdb")
    write_files(engine, table, str(query) if paths else f"{query} LIMIT 0", source / Path(CAME).stem, progress)
    came = stage(source, destination, Arrangement(BASE))
    plain = _without_changes(base, late)
    filled = came.layout.rows > 0 or not own
    change = LayoutChange(base.name, came.layout.manifest.files if filled else (), came.layout.blocks if filled else ())
    whole = changed(plain, change)
    for stem in (GONE, SOURCE):
        places = _places(base, own, stem)
        if len(places):
            whole = changed(whole, with_vector(LayoutChange(base.name), whole, places, source, destination, stem))
    return came, whole


def _without_changes(base: Layout, late: set[str]) -> Layout:
    """A layout of the user's files alone, all their rows included."""
    files = tuple(file for file in base.manifest.files if file.path not in late)
    blocks = [block for block in base.blocks if block.parts[0].path not in late]
    whole = tuple(_whole(replace(block, id=number)) for number, block in enumerate(blocks))
    return replace(base, manifest=Manifest(files), blocks=whole, vectors=())


def _whole(block: Block) -> Block:
    return replace(block, rows=block.rows + block.gone, gone=0)


def _places(base: Layout, own: Sequence[str], stem: str) -> Positions:
    """The deleted rows of the user's files, by their numbers among these."""
    vectors = [vector for vector in base.vectors if Path(vector.path).name.startswith(stem)]
    return Positions.at(Positions.stored(vectors).by_path(base.manifest.paths), own)


def _order(table: Table) -> str:
    """What the table was clustered by before its changes, as far as that is known: else its key."""
    clustering = table.base.clustering
    names: Sequence[str] = clustering.columns if clustering is not None and clustering.kind == RANGE else table.key
    return ", ".join(native_name(name) for name in names)
