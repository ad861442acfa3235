"""Where rows lie: the file and the number of each row that a condition, a key or a whole row names.

The driver's engine looks for them, over the files of one layout. Law: a row given twice names two rows, as in a bag.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearly.engine.engine import Engine
from nearly.engine.native.failures import final
from nearly.engine.native.key_indexes import KeyReading
from nearly.engine.native.places import Positions
from nearly.engine.native.reading import FILE, ROW
from nearly.engine.storage.layouts import Layout, Table
from nearly.errors import Unsupported
from nearly.plan import types
from nearly.plan.quoting import native_name
from nearly.plan.schema import SchemaColumn

GIVEN = "given"
FEW = 2_000
"""So few keys are sooner compared here than by a query."""
_NUMBER = "nearly_number"
OWN_NAMES = frozenset({FILE, ROW, _NUMBER})
"""Names that no column of a table may have whose rows are looked for."""


def placed(table: Table) -> Table:
    """The table with two more columns: the file and the number of each row."""
    for name in table.column_names:
        if name.lower() in OWN_NAMES:
            raise Unsupported(f"table {table.name!r} cannot be changed: nearly needs the name of its column {name!r} for itself")
    return replace(table, columns=(*table.columns, SchemaColumn(FILE, types.INT, False), SchemaColumn(ROW, types.LONG, False)))


def by_key(engine: Engine, table: Table, layout: Layout, keys: pa.Table) -> pa.Table:
    """The keys given that a layout has, with the positions of their rows; no other column is read."""
    names = keys.column_names

    def scan() -> pa.Table:
        rows = f"{_rows(engine, table, layout, names)}{_within(keys)}"
        return run_here(engine, f"SELECT s.* FROM ({rows}) AS s SEMI JOIN {GIVEN} AS g ON {same_keys(names)}", {GIVEN: keys})

    def read(paths: Sequence[str]) -> pa.Table:
        query = engine.native.reader.query(placed(table), layout, [*names, FILE, ROW], paths)
        return run_here(engine, str(query.sql(dialect="duckdb")), {})

    return engine.key_indexes.find(table, layout, keys, KeyReading(scan, read, partial(run_here, engine)))


def rows_by_key(engine: Engine, table: Table, layout: Layout, keys: pa.Table) -> pa.Table:
    """The rows of a layout with the keys given, whole, with their positions and in their order: of tables that are small."""
    rows = _rows(engine, table, layout, table.column_names)
    same = same_keys(keys.column_names)
    return run_here(engine, f"SELECT s.* FROM ({rows}) AS s SEMI JOIN {GIVEN} AS g ON {same} ORDER BY {FILE}, {ROW}", {GIVEN: keys})


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
    stored = f"SELECT s.* FROM ({_rows(engine, table, layout, names)}) AS s SEMI JOIN {GIVEN} AS g ON {same_keys(names)}"
    counted = "SELECT *, row_number() OVER (PARTITION BY {by}{order}) AS {number} FROM {rows}"
    mine = counted.format(by=columns, order=f" ORDER BY {FILE}, {ROW}", number=_NUMBER, rows=f"({stored})")
    theirs = counted.format(by=columns, order="", number=_NUMBER, rows=GIVEN)
    same = f"{same_keys(names)} AND s.{_NUMBER} = g.{_NUMBER}"
    return run_here(engine, f"SELECT s.* EXCLUDE ({_NUMBER}) FROM ({mine}) AS s SEMI JOIN ({theirs}) AS g ON {same}", {GIVEN: rows})


def duplicates(engine: Engine, keys: pa.Table) -> pa.Table:
    """Keys that are given more than once."""
    if _is_plain(keys) and _different(keys) == keys.num_rows:
        return keys.slice(0, 0)
    columns = ", ".join(native_name(name) for name in keys.column_names)
    return run_here(engine, f"SELECT {columns} FROM {GIVEN} GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL LIMIT 1", {GIVEN: keys})


def absent(engine: Engine, keys: pa.Table, found: pa.Table) -> pa.Table:
    """A key that is given but not found."""
    names = keys.column_names
    columns = ", ".join(native_name(name) for name in names)
    sql = f"SELECT {columns} FROM {GIVEN} AS g ANTI JOIN found AS s ON {same_keys(names)} ORDER BY ALL LIMIT 1"
    return run_here(engine, sql, {GIVEN: keys, "found": found.select(names)})


def pairs(engine: Engine, keys: pa.Table, found: pa.Table) -> pa.Table:
    """The number of each key given, and that of the same among those found; null where there is none.

    Keys are the same here exactly where `by_key` finds them: 0.0 is -0.0, and NaN is NaN.
    """
    names = keys.column_names
    if _is_plain(keys) and len(names) == 1 and _different(found.select(names)) == found.num_rows:
        found = found.select(names).cast(keys.schema)
        old = pc.index_in(keys[names[0]], value_set=found[names[0]].combine_chunks())
        return pa.table({"new": pa.array(np.arange(keys.num_rows)), "old": old})
    if keys.num_rows + found.num_rows <= FEW and _is_plain(keys) and _is_plain(found.select(names)):
        numbers = {row: number for number, row in enumerate(_tuples(found.select(names).cast(keys.schema)))}
        if len(numbers) == found.num_rows:
            old = pa.array([numbers.get(row) for row in _tuples(keys)], pa.int64())
            return pa.table({"new": pa.array(np.arange(keys.num_rows)), "old": old})
    numbered = [each.append_column(_NUMBER, pa.array(np.arange(each.num_rows), pa.int64())) for each in (keys, found)]
    sql = f"SELECT g.{_NUMBER} AS new, s.{_NUMBER} AS old FROM {GIVEN} AS g LEFT JOIN found AS s ON {same_keys(names)}"
    return run_here(engine, sql, dict(zip((GIVEN, "found"), numbered, strict=True)))


def copies(engine: Engine, table: Table, rows: pa.Table) -> NDArray[np.int64]:
    """How many rows of a table are equal to each of the rows given, which are all different, in their columns."""
    read = engine.native.reader.whole(table, table.base, rows.column_names).sql(dialect="duckdb")
    numbered = rows.append_column(_NUMBER, pa.array(np.arange(rows.num_rows), pa.int64()))
    sql = f"SELECT g.{_NUMBER}, count(*) AS n FROM ({read}) AS s JOIN {GIVEN} AS g ON {same_keys(rows.column_names)} GROUP BY ALL"
    with engine.reading([table]):
        counted = run_here(engine, sql, {GIVEN: numbered})
    found = np.zeros(rows.num_rows, np.int64)
    found[counted[_NUMBER].to_numpy()] = counted["n"].to_numpy()
    return found


def rows_at(engine: Engine, table: Table, layout: Layout, places: Positions, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of a layout's files at some places, deleted since or not, in the order of the places; all columns, or some."""
    paths = [layout.manifest.paths[number] for number in np.unique(places.files).tolist()]
    names = [*(table.column_names if columns is None else columns), FILE, ROW]
    read = engine.native.reader.query(placed(table), layout, names, paths or layout.manifest.paths[:1]).sql(dialect="duckdb")
    among = np.searchsorted(np.unique(places.files), places.files)
    wanted = pa.table({FILE: pa.array(among, pa.int32()), ROW: pa.array(places.rows, pa.int64())})
    same = f"s.{FILE} = g.{FILE} AND s.{ROW} = g.{ROW}"
    sql = f"SELECT s.* FROM ({read}) AS s SEMI JOIN {GIVEN} AS g ON {same} ORDER BY {FILE}, {ROW}"
    return run_here(engine, sql, {GIVEN: wanted}).drop_columns([FILE, ROW])


def _is_plain(keys: pa.Table) -> bool:
    """Whether Arrow takes the same keys for equal as DuckDB does; of floating numbers, and of none, they think differently."""
    return not any(pa.types.is_floating(column.type) or column.null_count for column in keys.columns)


def _tuples(keys: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in keys.columns), strict=True)


def _different(keys: pa.Table) -> int:
    if keys.num_columns == 1:
        return int(pc.count_distinct(keys.column(0)).as_py())
    return int(keys.group_by(keys.column_names).aggregate([]).num_rows)


def _rows(engine: Engine, table: Table, layout: Layout, names: Sequence[str]) -> str:
    return str(engine.native.reader.whole(placed(table), layout, [*names, FILE, ROW]).sql(dialect="duckdb"))


def same_keys(names: Sequence[str]) -> str:
    """The condition that rows `s` and `g` are equal in these columns."""
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
