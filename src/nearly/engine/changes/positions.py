"""Where rows lie: the file and the number of each row that a condition, a key or a whole row names.

The driver's engine looks for them, over the files of one layout. Law: a row given twice names two rows, as in a bag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearly.engine.engine import Engine
from nearly.engine.native.failures import final
from nearly.engine.native.reading import FILE, ROW
from nearly.engine.storage.batches import Gone
from nearly.engine.storage.layouts import Layout, Table
from nearly.engine.storage.manifest import FileEntry
from nearly.errors import Unsupported
from nearly.plan import types
from nearly.plan.quoting import native_name
from nearly.plan.schema import SchemaColumn

GIVEN = "given"
_NUMBER = "nearly_number"


@dataclass(frozen=True, slots=True)
class Positions:
    """Rows of a layout's files, in order of file and row."""

    files: NDArray[np.int32]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, found: pa.Table) -> Positions:
        files = found[FILE].to_numpy().astype(np.int32)
        rows = found[ROW].to_numpy().astype(np.int64)
        order = np.lexsort((rows, files))
        return cls(files[order], rows[order])

    @classmethod
    def at(cls, rows: Mapping[str, NDArray[np.int64]], paths: Sequence[str]) -> Positions:
        """Rows of files, given by path, as positions in a manifest of these paths."""
        named = [(number, rows[path]) for number, path in enumerate(paths) if path in rows]
        files = [np.full(len(found), number, np.int32) for number, found in named]
        return cls(
            np.concatenate([np.empty(0, np.int32), *files]),
            np.concatenate([np.empty(0, np.int64), *(np.sort(r) for _, r in named)]),
        )

    @classmethod
    def stored(cls, vectors: Sequence[FileEntry]) -> Positions:
        """What deletion vectors hold."""
        found = [pq.read_table(vector.path, partitioning=None) for vector in vectors]
        files = np.concatenate([np.empty(0, np.int32), *(each["file"].to_numpy() for each in found)])
        rows = np.concatenate([np.empty(0, np.int64), *(each["row"].to_numpy() for each in found)])
        order = np.lexsort((rows, files))
        return cls(files[order].astype(np.int32), rows[order].astype(np.int64))

    def by_path(self, paths: Sequence[str]) -> dict[str, NDArray[np.int64]]:
        """The rows of each file, of those that have some; the paths are the manifest's."""
        numbers, starts = np.unique(self.files, return_index=True)
        parts = np.split(self.rows, starts[1:])
        return {paths[number]: rows for number, rows in zip(numbers.tolist(), parts, strict=True)} if len(self) else {}

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def table(self) -> pa.Table:
        """As a deletion vector is stored."""
        return pa.table({"file": pa.array(self.files, pa.int32()), "row": pa.array(self.rows, pa.int64())})

    def by_block(self, layout: Layout) -> tuple[Gone, ...]:
        """How many of them lie in each part of a block."""
        numbers = {path: number for number, path in enumerate(layout.manifest.paths)}
        found: list[Gone] = []
        for block in layout.blocks:
            for part in block.parts:
                number = numbers[part.path]
                first, end = np.searchsorted(self.files, [number, number + 1])
                inside = np.searchsorted(self.rows[first:end], [part.first_row, part.first_row + part.rows])
                if inside[1] > inside[0]:
                    found.append((number, part.first_row_group, int(inside[1] - inside[0])))
        return tuple(found)


def placed(table: Table) -> Table:
    """The table with two more columns: the file and the number of each row."""
    for name in table.column_names:
        if name.lower() in (FILE, ROW, _NUMBER):
            raise Unsupported(f"table {table.name!r} cannot be changed: nearly needs the name of its column {name!r} for itself")
    return replace(table, columns=(*table.columns, SchemaColumn(FILE, types.INT, False), SchemaColumn(ROW, types.LONG, False)))


def by_key(engine: Engine, table: Table, layout: Layout, keys: pa.Table) -> pa.Table:
    """The keys given that a layout has, with the positions of their rows; no other column is read."""
    rows, same = _rows(engine, table, layout, keys.column_names), _same(keys.column_names)
    return run_here(engine, f"SELECT s.* FROM ({rows}{_within(keys)}) AS s SEMI JOIN {GIVEN} AS g ON {same}", {GIVEN: keys})


def _within(keys: pa.Table) -> str:
    """A condition on the files' rows that all keys meet: with it, row groups that can hold none of them are not read."""
    tests = []
    for name in keys.column_names:
        if pa.types.is_integer(keys.schema.field(name).type) and keys.num_rows and not keys[name].null_count:
            ends = pc.min_max(keys[name]).as_py()
            tests.append(f"{native_name(name)} BETWEEN {ends['min']} AND {ends['max']}")
    return f" WHERE {' AND '.join(tests)}" if tests else ""


def by_content(engine: Engine, table: Table, layout: Layout, rows: pa.Table) -> pa.Table:
    """For every row given, one row of a layout that is equal in these columns, where there still is one; with their positions."""
    names = rows.column_names
    columns = ", ".join(native_name(name) for name in names)
    stored = f"SELECT s.* FROM ({_rows(engine, table, layout, names)}) AS s SEMI JOIN {GIVEN} AS g ON {_same(names)}"
    counted = "SELECT *, row_number() OVER (PARTITION BY {by}{order}) AS {number} FROM {rows}"
    mine = counted.format(by=columns, order=f" ORDER BY {FILE}, {ROW}", number=_NUMBER, rows=f"({stored})")
    theirs = counted.format(by=columns, order="", number=_NUMBER, rows=GIVEN)
    same = f"{_same(names)} AND s.{_NUMBER} = g.{_NUMBER}"
    return run_here(engine, f"SELECT s.* EXCLUDE ({_NUMBER}) FROM ({mine}) AS s SEMI JOIN ({theirs}) AS g ON {same}", {GIVEN: rows})


def duplicates(engine: Engine, keys: pa.Table) -> pa.Table:
    """Keys that are given more than once."""
    columns = ", ".join(native_name(name) for name in keys.column_names)
    return run_here(engine, f"SELECT {columns} FROM {GIVEN} GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL LIMIT 1", {GIVEN: keys})


def absent(engine: Engine, keys: pa.Table, found: pa.Table) -> pa.Table:
    """A key that is given but not found."""
    names = keys.column_names
    columns = ", ".join(native_name(name) for name in names)
    sql = f"SELECT {columns} FROM {GIVEN} AS g ANTI JOIN found AS s ON {_same(names)} ORDER BY ALL LIMIT 1"
    return run_here(engine, sql, {GIVEN: keys, "found": found.select(names)})


def pairs(engine: Engine, keys: pa.Table, found: pa.Table) -> pa.Table:
    """The number of each key given, and that of the same among those found; null where there is none.

    Keys are the same here exactly where `by_key` finds them: 0.0 is -0.0, and NaN is NaN.
    """
    names = keys.column_names
    numbered = [each.append_column(_NUMBER, pa.array(np.arange(each.num_rows), pa.int64())) for each in (keys, found)]
    sql = f"SELECT g.{_NUMBER} AS new, s.{_NUMBER} AS old FROM {GIVEN} AS g LEFT JOIN found AS s ON {_same(names)}"
    return run_here(engine, sql, dict(zip((GIVEN, "found"), numbered, strict=True)))


def rows_at(engine: Engine, table: Table, layout: Layout, places: Positions) -> pa.Table:
    """The rows of a layout's files at some places, deleted since or not, in the order of the places."""
    paths = [layout.manifest.paths[number] for number in np.unique(places.files).tolist()]
    names = [*table.column_names, FILE, ROW]
    read = engine.native.reader.query(placed(table), layout, names, paths or layout.manifest.paths[:1]).sql(dialect="duckdb")
    among = np.searchsorted(np.unique(places.files), places.files)
    wanted = pa.table({FILE: pa.array(among, pa.int32()), ROW: pa.array(places.rows, pa.int64())})
    same = f"s.{FILE} = g.{FILE} AND s.{ROW} = g.{ROW}"
    sql = f"SELECT s.* FROM ({read}) AS s SEMI JOIN {GIVEN} AS g ON {same} ORDER BY {FILE}, {ROW}"
    return run_here(engine, sql, {GIVEN: wanted}).drop_columns([FILE, ROW])


def _rows(engine: Engine, table: Table, layout: Layout, names: Sequence[str]) -> str:
    return str(engine.native.reader.whole(placed(table), layout, [*names, FILE, ROW]).sql(dialect="duckdb"))


def _same(names: Sequence[str]) -> str:
    columns = [native_name(name) for name in names]
    return " AND ".join(f"s.{column} IS NOT DISTINCT FROM g.{column}" for column in columns)


def run_here(engine: Engine, sql: str, inputs: Mapping[str, pa.Table]) -> pa.Table:
    """Run SQL in the driver's engine, over files and the tables given."""
    local = engine.native.local
    local.configure(engine.native.settings)
    try:
        return local.run(sql, (), dict(inputs))
    except duckdb.Error as trouble:
        raise final(trouble) from trouble
