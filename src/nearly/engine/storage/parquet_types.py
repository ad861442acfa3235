"""The Spark types of a Parquet file's columns, read from the footer as Spark 4 reads them.

Spark's own schema, which its writer leaves in the footer, comes first; then the Parquet types, never Arrow's
annotations, which Spark does not know. A type that Spark refuses is refused here too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nearly.errors import SchemaError
from nearly.plan import types
from nearly.plan.types import DataType

SPARK_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_JSON_NAMES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
_SIGNED = {8: types.BYTE, 16: types.SHORT, 32: types.INT, 64: types.LONG}
_UNSIGNED = {8: types.SHORT, 16: types.INT, 32: types.LONG, 64: types.decimal(20, 0)}
_PLAIN = {
    "BOOLEAN": types.BOOLEAN, "INT32": types.INT, "INT64": types.LONG, "INT96": types.TIMESTAMP, "FLOAT": types.FLOAT,
    "DOUBLE": types.DOUBLE, "BYTE_ARRAY": types.BINARY, "FIXED_LEN_BYTE_ARRAY": types.BINARY,
}  # fmt: skip


def leaf_counts(schema: pa.Schema) -> tuple[int, ...]:
    """How many Parquet columns each top-level field takes."""
    return tuple(_leaves(field.type) for field in schema)


def _leaves(type_: pa.DataType) -> int:
    if isinstance(type_, pa.BaseExtensionType):
        return _leaves(type_.storage_type)
    return sum(_leaves(type_.field(i).type) for i in range(type_.num_fields)) if type_.num_fields else 1


def column_types(metadata: pq.FileMetaData, arrow: pa.Schema, path: str) -> tuple[DataType, ...]:
    """The Spark types of the top-level fields."""
    written = _spark_schema(metadata, arrow)
    if written is not None:
        return written
    found, position = [], 0
    for field, leaves in zip(arrow, leaf_counts(arrow), strict=True):
        if pa.types.is_nested(field.type):
            found.append(DataType(_nested(field.type)))
        else:
            found.append(_leaf(metadata.schema.column(position), path))
        position += leaves
    return tuple(found)


def _spark_schema(metadata: pq.FileMetaData, arrow: pa.Schema) -> tuple[DataType, ...] | None:
    """The schema Spark wrote; None when there is none or it is not about these columns."""
    text = (metadata.metadata or {}).get(SPARK_SCHEMA_KEY)
    try:
        fields = json.loads(text)["fields"] if text else []
        if [field["name"] for field in fields] != arrow.names:
            return None
        return tuple(types.from_name(simple_string(field["type"])) for field in fields)
    except (ValueError, KeyError, TypeError):
        return None


def simple_string(written: Any) -> str:
    """Spark's `simpleString` of a type in Spark's JSON form."""
    if isinstance(written, str):
        return _JSON_NAMES.get(written, written)
    match written["type"]:
        case "array":
            return f"array<{simple_string(written['elementType'])}>"
        case "map":
            return f"map<{simple_string(written['keyType'])},{simple_string(written['valueType'])}>"
        case "struct":
            fields = (f"{field['name']}:{simple_string(field['type'])}" for field in written["fields"])
            return f"struct<{','.join(fields)}>"
        case other:
            return str(other)


def _nested(type_: pa.DataType) -> str:
    """Spark's `simpleString` of a nested type."""
    if pa.types.is_map(type_):
        return f"map<{_nested(type_.key_type)},{_nested(type_.item_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{','.join(f'{field.name}:{_nested(field.type)}' for field in type_)}>"
    if pa.types.is_nested(type_):
        return f"array<{_nested(type_.value_type)}>"
    return types.from_arrow(type_).name


def _leaf(column: pq.ColumnSchema, path: str) -> DataType:
    logical = column.logical_type.type
    if logical in ("NONE", "UNKNOWN"):
        return _repeated(_PLAIN[column.physical_type], column)
    read = _LOGICAL.get(logical)
    found = read(column) if read else None
    if found is None:
        raise SchemaError(
            f"column {column.path!r} of {path} has the Parquet type {column.physical_type} ({column.logical_type}), "
            f"which Spark does not read; write it as another type, for instance timestamps in microseconds"
        )
    return _repeated(found, column)


def _repeated(type_: DataType, column: pq.ColumnSchema) -> DataType:
    return DataType(f"array<{type_}>") if column.max_repetition_level else type_


def _integer(column: pq.ColumnSchema) -> DataType | None:
    shape = json.loads(column.logical_type.to_json())
    return (_SIGNED if shape["isSigned"] else _UNSIGNED).get(shape["bitWidth"])


def _timestamp(column: pq.ColumnSchema) -> DataType | None:
    shape = json.loads(column.logical_type.to_json())
    if shape["timeUnit"] == "nanoseconds":
        return None
    return types.TIMESTAMP if shape["isAdjustedToUTC"] else types.TIMESTAMP_NTZ


_LOGICAL: dict[str, Callable[[Any], DataType | None]] = {
    "STRING": lambda _: types.STRING,
    "ENUM": lambda _: types.STRING,
    "JSON": lambda _: types.STRING,
    "BSON": lambda _: types.BINARY,
    "DATE": lambda _: types.DATE,
    "DECIMAL": lambda column: types.decimal(column.precision, column.scale),
    "INT": _integer,
    "TIMESTAMP": _timestamp,
}
