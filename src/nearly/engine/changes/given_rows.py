"""Rows as users give them, as Arrow with exactly a table's columns and types, or a clear refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nearly.engine.storage.layouts import Table
from nearly.errors import SchemaError, unknown
from nearly.plan import types
from nearly.plan.schema import SchemaColumn
from nearly.plan.types import to_arrow

_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
_TIMES = (pa.types.is_date, pa.types.is_timestamp)
_FAMILIES = (_NUMBERS, _TEXTS, _BYTES, _TIMES, (pa.types.is_boolean,))
"""A value may become one of another type of its own family, as long as nothing of it is lost."""


def as_arrow(rows: Any) -> pa.Table:
    """Rows of Arrow, pandas, polars, Spark, or mappings, as an Arrow table."""
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, Mapping):
        return _built(lambda: pa.table(dict(rows)), rows)
    if isinstance(rows, Sequence) and not isinstance(rows, str | bytes) and all(isinstance(row, Mapping) for row in rows):
        return _built(lambda: pa.Table.from_pylist([dict(row) for row in rows], schema=_schema_of(rows)), rows)
    convert = getattr(rows, "toArrow", None) or getattr(rows, "to_arrow", None)
    if convert is not None:
        return _built(lambda: _as_table(convert()), rows)
    if hasattr(rows, "__arrow_c_stream__"):
        return _built(lambda: pa.table(rows), rows)
    if type(rows).__module__.startswith("pandas"):
        return _built(lambda: pa.Table.from_pandas(rows, preserve_index=False), rows)
    raise SchemaError(f"rows are Arrow, pandas, polars or Spark tables, or a list of mappings, not {type(rows).__name__}")


def is_frame(rows: Any) -> bool:
    """Whether rows are a DataFrame of Spark, classic or Connect: they may be more than memory holds."""
    return type(rows).__module__.startswith("pyspark.") and hasattr(rows, "toArrow")


def _as_table(found: Any) -> pa.Table:
    return found if isinstance(found, pa.Table) else pa.table(found)


def _schema_of(rows: Sequence[Mapping[str, Any]]) -> pa.Schema | None:
    """Mappings may have different keys; pyarrow itself looks at those of the first only."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if rows and not names:
        raise SchemaError("the rows given have no column")
    arrays = {name: pa.array([row.get(name) for row in rows]) for name in names}
    return pa.schema([(name, array.type) for name, array in arrays.items()]) if names else None


def _built(make: Any, rows: Any) -> pa.Table:
    try:
        return make()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise SchemaError(f"the rows given ({type(rows).__name__}) do not make a table: {error}") from error


def fitted(rows: pa.Table, table: Table, columns: Sequence[SchemaColumn], what: str) -> pa.Table:
    """The rows with these columns of a table, in its order, names and types; other columns are refused."""
    given: dict[str, int] = {}
    for place, name in enumerate(rows.column_names):
        if name.lower() in given:
            raise SchemaError(f"{what} table {table.name!r}: column {name!r} is given twice (case does not count)")
        given[name.lower()] = place
    if not given and not rows.num_rows:
        return arrow_schema(columns).empty_table()
    known = {column.name.lower() for column in columns}
    for name in rows.column_names:
        if name.lower() not in known:
            raise unknown("column", name, [column.name for column in columns])
    missing = [column.name for column in columns if column.name.lower() not in given]
    if missing:
        raise SchemaError(f"{what} table {table.name!r}: the rows given have no column {missing[0]!r}; null must be given as null")
    arrays = [_cast(rows.column(given[each.name.lower()]), each, table, what) for each in columns]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(columns))


def arrow_schema(columns: Sequence[SchemaColumn]) -> pa.Schema:
    """The columns as Arrow has them."""
    for column in columns:
        if not types.is_simple(column.type):
            raise SchemaError(f"column {column.name!r} is {column.type}; tables with nested columns cannot be changed row by row")
    return pa.schema([(column.name, to_arrow(column.type)) for column in columns])


def _cast(values: pa.ChunkedArray, column: SchemaColumn, table: Table, what: str) -> pa.ChunkedArray:
    wanted = to_arrow(column.type) if types.is_simple(column.type) else arrow_schema([column]).field(0).type
    found = values.type
    if pa.types.is_dictionary(found):
        values, found = values.cast(found.value_type), found.value_type
    if found == wanted or pa.types.is_null(found):
        return values.cast(wanted)
    trouble = f"{what} table {table.name!r}: column {column.name!r} is {column.type}, but {found} was given"
    if not any(any(test(found) for test in family) and any(test(wanted) for test in family) for family in _FAMILIES):
        raise SchemaError(f"{trouble}; cast it first")
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(wanted) and (found.tz is None) != (wanted.tz is None):
        raise SchemaError(f"{trouble}; give the times with a time zone exactly where the column has one")
    if pa.types.is_date(found) != pa.types.is_date(wanted) and any(test(found) for test in _TIMES):
        raise SchemaError(f"{trouble}; cast it first")
    try:
        if pa.types.is_floating(found) and pa.types.is_decimal(wanted):
            raise SchemaError(f"{trouble}; floats are not exact decimals, cast them first")
        if pa.types.is_integer(found) and pa.types.is_floating(wanted):
            return _exactly(values, wanted)
        return values.cast(wanted)
    except pa.ArrowException as error:
        raise SchemaError(f"{trouble}: {str(error).splitlines()[0]}") from error


def _exactly(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Whole numbers as floating ones; nothing is rounded in silence."""
    cast = values.cast(wanted, safe=False)
    if not pc.all(pc.equal(cast.cast(pa.float64()), values.cast(pa.float64(), safe=False))).as_py() and len(values):
        raise pa.ArrowInvalid("a whole number has no exact floating one")
    return cast
