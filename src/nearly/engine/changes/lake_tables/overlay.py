"""What was changed here in a table of a source with versions, carried over to a later version of the source.

Law: rows inserted here stay, rows deleted here stay deleted. Rows of a file that the source replaced are found again in the files
that it wrote; one that the source has changed as well is a conflict, which is told and not decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from nearly.engine.changes.batch_files import GONE, SOURCE, with_vector
from nearly.engine.changes.positions import by_content, by_key, placed, run_here
from nearly.engine.engine import Engine
from nearly.engine.native.places import Positions
from nearly.engine.native.reading import FILE, ROW, gone_rows
from nearly.engine.storage.batches import LayoutChange, changed
from nearly.engine.storage.blocks import Block
from nearly.engine.storage.lake_logs.lakes import Lake, LakeSnapshot, Rows, describe_lake
from nearly.engine.storage.layouts import BASE, Layout, Table
from nearly.engine.storage.manifest import FileEntry
from nearly.errors import Unsupported


def is_ours(engine: Engine, table: Table, path: str) -> bool:
    """Whether a file of a table was written here, not by its source."""
    return Path(path).is_relative_to(engine.catalog.directory(table.name))


def came_here(engine: Engine, table: Table) -> tuple[FileEntry, ...]:
    """The files of rows that were inserted here."""
    return tuple(file for file in table.base.manifest.files if file.rows and is_ours(engine, table, file.path))


def deleted(layout: Layout, stem: str) -> dict[str, Rows]:
    """The deleted rows of each file, of the vectors whose names begin so."""
    vectors = [vector for vector in layout.vectors if Path(vector.path).name.startswith(stem)]
    return Positions.stored(vectors).by_path(layout.manifest.paths)


def overlaid(engine: Engine, table: Table, base: Layout, lake: Lake, snapshot: LakeSnapshot, directory: Path) -> Layout:
    """The files of a later version with the changes that were made here: files that came, and rows that were deleted."""
    late = came_here(engine, table)
    if late:
        names = {file.path for file in late}
        blocks = tuple(_whole(block) for block in table.base.blocks if block.parts[0].path in names)
        if snapshot.files and any(tuple(v.column for v in block.partition) != base.partitioned_by for block in blocks):
            raise Unsupported(f"rows were inserted into table {table.name!r} while its source was empty; register the source again")
        base = changed(base, LayoutChange(BASE, late, blocks))
    mine, known = deleted(table.base, GONE), deleted(base, SOURCE)
    lost = {path: rows for path, rows in mine.items() if path not in set(base.manifest.paths)}
    if lost:
        mine |= _found_again(engine, table, lake, replace(snapshot, gone=known), lost)
    mine = {path: np.setdiff1d(rows, known[path]) if path in known else rows for path, rows in mine.items()}
    _refuse_same_keys(engine, table, lake, snapshot, (mine, known))
    places = Positions.at(mine, base.manifest.paths)
    return changed(base, with_vector(LayoutChange(BASE), base, places, directory)) if len(places) else base


def _whole(block: Block) -> Block:
    return replace(block, rows=block.rows + block.gone, gone=0)


def refuse_same_keys(engine: Engine, table: Table, there: Table, gone: Sequence[Mapping[str, Rows]] = ()) -> None:
    """A key that was inserted here may not come from the source as well; `gone` are rows there that do not count."""
    late = [file.path for file in came_here(engine, table)]
    if not late or not table.key:
        return
    alive = gone_rows(table.base, late) if table.base.vectors else None
    query = engine.native.reader.query(table, table.base, list(table.key), late, gone=alive)
    keys = run_here(engine, str(query.sql(dialect="duckdb")), {})
    for path, rows in Positions.of(by_key(engine, there, there.base, keys)).by_path(there.base.manifest.paths).items():
        left = set(rows.tolist()).difference(*(each[path].tolist() for each in gone if path in each))
        if left:
            raise Unsupported(
                f"the source of table {table.name!r} has a row in {path} whose key was inserted through nearly; "
                f"which holds is not known. Delete it here, or register the source again"
            )


def _refuse_same_keys(engine: Engine, table: Table, lake: Lake, snapshot: LakeSnapshot, gone: Sequence[Mapping[str, Rows]]) -> None:
    before = set(table.base.manifest.paths)
    added = tuple(file for file in snapshot.files if file.path not in before)
    if added and table.key and came_here(engine, table):
        there = describe_lake(table.name, lake, replace(snapshot, files=added, gone={}, equal=()), table.key)
        refuse_same_keys(engine, table, there, gone)


def _found_again(engine: Engine, table: Table, lake: Lake, snapshot: LakeSnapshot, lost: Mapping[str, Rows]) -> dict[str, Rows]:
    """Where rows that were deleted here lie in the files that the source added; a key that is not there was deleted there, too."""
    before = set(table.base.manifest.paths)
    added = tuple(file for file in snapshot.files if file.path not in before)
    conflict = Unsupported(
        f"the source of table {table.name!r} replaced {min(lost)} and changed rows that were deleted or updated through nearly; "
        f"which holds is not known. Export the table, or register the source again"
    )
    if any(file.path in snapshot.gone for file in added) or not all(Path(path).exists() for path in lost):
        raise conflict
    rows = _rows_at(engine, table, lost)
    if not added:
        if table.key:
            return {}
        raise conflict
    there = describe_lake(table.name, lake, replace(snapshot, files=added, gone={}, equal=()), table.key)
    found = by_content(engine, there, there.base, rows)
    with_key = by_key(engine, there, there.base, rows.select(list(table.key))).num_rows if table.key else rows.num_rows
    if found.num_rows != with_key:
        raise conflict
    return Positions.of(found).by_path(there.base.manifest.paths)


def _rows_at(engine: Engine, table: Table, places: Mapping[str, Rows]) -> pa.Table:
    """The rows of a table's files at some places, whether they were deleted or not."""
    paths = [path for path in table.base.manifest.paths if path in places]
    names = [column.name for column in placed(table).columns]
    rows = engine.native.reader.query(placed(table), table.base, names, paths).sql(dialect="duckdb")
    wanted = Positions.at(places, paths).table
    found = run_here(
        engine, f"SELECT s.* FROM ({rows}) AS s SEMI JOIN given AS g ON s.{FILE} = g.file AND s.{ROW} = g.row", {"given": wanted}
    )
    return found.select(list(table.column_names))
