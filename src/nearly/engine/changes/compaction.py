"""Compaction: the rows of a table as they are now, in files without deleted rows and without many small ones.

Law: the version and its rows stay what they are; only the files differ. Older versions are read from the old files, which are kept
as long as those versions are. The user's own files are neither touched nor copied: of a table used in place, what was changed since
is put together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from nearly.engine.changes.batch_files import CAME, GONE, SOURCE, with_vector
from nearly.engine.changes.given_rows import arrow_schema
from nearly.engine.changes.positions import Positions
from nearly.engine.engine import Engine
from nearly.engine.native.failures import final
from nearly.engine.native.reading import gone_rows
from nearly.engine.storage.batches import LayoutChange, changed
from nearly.engine.storage.blocks import Block, target_for
from nearly.engine.storage.clustering import RANGE
from nearly.engine.storage.durable import flush, writing_in
from nearly.engine.storage.layouts import BASE, Layout, Table
from nearly.engine.storage.manifest import Manifest
from nearly.engine.writing.parquet_writer import Progress
from nearly.engine.writing.preparation import same
from nearly.engine.writing.staging import Arrangement, Staged, commit, new_directory, stage
from nearly.errors import Conflict
from nearly.plan.quoting import native_name

SHARE = 0.05
"""A table is worth compacting when so large a part of its rows was deleted."""
FILES = 64
"""Or when so many files came since it was written, of rows or of deleted ones."""
ROWS_IN_FILE = 4_000_000
BATCH_ROWS = 131_072


def is_due(engine: Engine, table: Table) -> bool:
    """Whether queries read the table noticeably slower than they would after compaction."""
    base = table.base
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
    own = engine.catalog.directory(table.name)
    stem = Path(CAME).stem
    return [path for path in table.base.manifest.paths if Path(path).is_relative_to(own) and Path(path).name.startswith(stem)]


def _rewritten(engine: Engine, table: Table, temporary: Path, progress: Progress | None) -> tuple[Staged, Layout]:
    """All rows in new files."""
    destination = new_directory(engine.catalog, table.name, BASE)
    source = temporary / destination.name
    query = str(engine.native.reader.whole(table, table.base, table.column_names).sql(dialect="duckdb"))
    if order := _order(table):
        query = f"SELECT * FROM ({query}) ORDER BY {order}"
    write_files(engine, table, query, source / "part", progress)
    staged = stage(source, destination, Arrangement(BASE))
    return staged, staged.layout


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


def write_files(engine: Engine, table: Table, query: str, stem: Path, progress: Progress | None) -> None:
    """Write the rows of a query into files of a new directory, whose names begin alike."""
    with writing_in(stem.parent):
        stem.parent.mkdir()
        with _FileWriter(stem, table) as writer:
            for batch in batches_of(engine, query):
                engine.life.refuse_over()
                writer.write(batch)
                if progress is not None:
                    progress(min(0.95, writer.rows / max(1, table.rows)))


def batches_of(engine: Engine, query: str) -> Iterator[pa.RecordBatch]:
    """The rows of a query of the driver's engine, some at a time."""
    local = engine.native.local
    local.configure(engine.native.settings)
    try:
        with local.cursor() as cursor:
            yield from cursor.sql(query).to_arrow_reader(BATCH_ROWS)
    except duckdb.Error as trouble:
        raise final(trouble) from trouble


class _FileWriter:
    """Writes rows into files of about the same size, whose names begin alike."""

    def __init__(self, stem: Path, table: Table) -> None:
        self._stem = self._path = stem
        self._schema = arrow_schema(table.columns)
        self._group = target_for(table.rows, table.base.manifest.bytes).rows
        self._open: pq.ParquetWriter | None = None
        self._pending: list[pa.RecordBatch] = []
        self._in_file = self._files = 0
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._pending.append(batch)
        self.rows += batch.num_rows
        if sum(each.num_rows for each in self._pending) >= self._group:
            self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Write what is left; after an error the file is given up, whatever else it says."""
        if kind is None:
            if self._pending or not self._files:
                self._flush()
            self._close()
        elif self._open is not None:
            with suppress(pa.ArrowException, OSError, ValueError):
                self._open.close()

    def _flush(self) -> None:
        if self._open is None:
            self._path = self._stem.with_name(f"{self._stem.name}-{self._files:05d}.parquet")
            self._open = pq.ParquetWriter(self._path, self._schema, compression="snappy", store_decimal_as_integer=True)
            self._files += 1
        rows = pa.Table.from_batches(self._pending).cast(self._schema) if self._pending else self._schema.empty_table()
        self._open.write_table(rows, row_group_size=self._group)
        self._in_file += rows.num_rows
        self._pending = []
        if self._in_file >= ROWS_IN_FILE:
            self._close()

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()
            flush(self._path)
            self._open, self._in_file = None, 0
