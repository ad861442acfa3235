"""Writing rows that are in memory as a layout's files, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nearly.engine.storage.durable import flush, writing_in
from nearly.engine.storage.layouts import BASE
from nearly.engine.writing.parquet_writer import UNCOUNTED_ROW_GROUP, refuse_equal_names
from nearly.engine.writing.staging import Arrangement, Staged, stage
from nearly.errors import SchemaError
from nearly.plan import types

_WIDER = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}


def staged_rows(rows: pa.Table, directory: Path, destination: Path) -> Staged:
    """Rows as a base layout, not yet committed: a file in a directory that will be moved."""
    fitting = as_spark_has_it(rows)
    with writing_in(directory.parent):
        directory.mkdir(parents=True)
        path = directory / "part-00000.parquet"
        pq.write_table(fitting, path, row_group_size=UNCOUNTED_ROW_GROUP, compression="snappy", store_decimal_as_integer=True)
        flush(path)
    return stage(directory, destination, Arrangement(BASE))


def as_spark_has_it(rows: pa.Table) -> pa.Table:
    """The rows with types that Spark has, none of them rounded: what has no such type is an error that names the column."""
    if not rows.column_names:
        raise SchemaError("the rows given have no column")
    refuse_equal_names(rows.column_names, "the table given")
    columns = [_cast(field, column) for field, column in zip(rows.schema, rows.columns, strict=True)]
    return pa.table(columns, names=rows.column_names)


def _cast(field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    wanted = _type(field.type)
    if not pa.types.is_nested(wanted) and not types.is_simple(types.from_arrow(wanted)):
        raise SchemaError(f"column {field.name!r} is {field.type}, which Spark has no type for; cast it first")
    try:
        return column if wanted == field.type else column.cast(wanted)
    except pa.ArrowException as error:
        raise SchemaError(f"column {field.name!r} is {field.type} and does not fit into {wanted}: {error}") from error


def _type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type_):
        return _type(type_.value_type)
    if pa.types.is_null(type_) or pa.types.is_large_string(type_) or type_ == pa.string_view():
        return pa.string()
    if pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_) or type_ == pa.binary_view():
        return pa.binary()
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", tz=type_.tz and "UTC")
    if pa.types.is_date64(type_):
        return pa.date32()
    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_decimal(type_):
        return pa.decimal128(type_.precision, type_.scale) if type_.precision <= 38 else type_
    return _WIDER.get(type_, type_)
