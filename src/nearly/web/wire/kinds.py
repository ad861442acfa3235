"""Types and values on their way to Postgres clients and back."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal as Number
from decimal import localcontext
from typing import Any

import numpy as np
import pyarrow as pa
from pg_mimic import (
    ARRAY_OID,
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSON,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    PgError,
    ResultColumn,
)
from pg_mimic.types import BPCHAR, NAME, OID, UNKNOWN, VARCHAR
from sqlglot import exp

from nearly.plan.types import DataType, Decimal, IntervalType
from nearly.web.encoding import plain

_MOST_DIGITS = 2000
_WHOLE = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
_DECIMAL = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*", re.ASCII)
_TRUTH = dict.fromkeys(("t", "true", "y", "yes", "on", "1"), True) | dict.fromkeys(("f", "false", "n", "no", "off", "0"), False)
BATCH = 2000
"""Rows that are turned into Python's values at a time."""

_OIDS = {
    "boolean": BOOL, "tinyint": INT2, "smallint": INT2, "int": INT4, "bigint": INT8, "float": FLOAT4, "double": FLOAT8,
    "string": TEXT, "binary": BYTEA, "date": DATE, "timestamp": TIMESTAMPTZ, "timestamp_ntz": TIMESTAMP, "void": TEXT,
}  # fmt: skip
_SQL = {
    BOOL: "boolean", INT2: "smallint", INT4: "integer", INT8: "bigint", FLOAT4: "real", FLOAT8: "double precision",
    NUMERIC: "numeric", TEXT: "text", VARCHAR: "character varying", BPCHAR: "character", BYTEA: "bytea", DATE: "date",
    TIMESTAMPTZ: "timestamp with time zone", TIMESTAMP: "timestamp without time zone", INTERVAL: "interval", JSON: "json",
    OID: "oid", NAME: "name",
}  # fmt: skip
_NAMES = {
    BOOL: "bool", INT2: "int2", INT4: "int4", INT8: "int8", FLOAT4: "float4", FLOAT8: "float8", NUMERIC: "numeric", TEXT: "text",
    VARCHAR: "varchar", BPCHAR: "bpchar", BYTEA: "bytea", DATE: "date", TIMESTAMPTZ: "timestamptz", TIMESTAMP: "timestamp",
    INTERVAL: "interval", JSON: "json", OID: "oid", NAME: "name",
}  # fmt: skip
_SPARK = {
    BOOL: "boolean", INT2: "smallint", INT4: "int", INT8: "bigint", FLOAT4: "float", FLOAT8: "double", TEXT: "string",
    VARCHAR: "string", BPCHAR: "string", NAME: "string", BYTEA: "binary", DATE: "date", TIMESTAMPTZ: "timestamp",
    TIMESTAMP: "timestamp_ntz", OID: "bigint", NUMERIC: "decimal(38, 18)", UNKNOWN: "string",
}  # fmt: skip


def oid_of(type_: DataType) -> int:
    """The Postgres type of a column; what Postgres has no type for is JSON, or text.

    >>> oid_of(DataType("bigint")), oid_of(DataType("array<int>")), oid_of(DataType("struct<a:int>"))
    (20, 1007, 114)
    """
    if isinstance(type_, Decimal):
        return NUMERIC
    if isinstance(type_, IntervalType):
        return INTERVAL if type_.unit == "microsecond" else TEXT
    name = type_.name.lower()
    if name.startswith("array<") and name[6:-1] in _OIDS:
        return int(ARRAY_OID[_OIDS[name[6:-1]]])
    return _OIDS.get(name, JSON if name.startswith(("array<", "map<", "struct<")) else TEXT)


def sql_name(oid: int) -> str:
    """How Postgres spells a type."""
    return _SQL.get(oid) or next((f"{_SQL.get(element, 'text')}[]" for element, array in ARRAY_OID.items() if array == oid), "text")


def short_name(oid: int) -> str:
    """The name of a type in pg_type."""
    return _NAMES.get(oid) or next(
        (f"_{_NAMES.get(element, 'text')}" for element, array in ARRAY_OID.items() if array == oid), "text"
    )


KNOWN: tuple[int, ...] = tuple(_NAMES)
"""The types that the catalogue lists."""


def typmod(type_: DataType) -> int:
    """Postgres' modifier of a decimal's precision and scale; -1 for other types."""
    return ((type_.precision << 16) | type_.scale) + 4 if isinstance(type_, Decimal) else -1


def column(name: str, type_: DataType) -> ResultColumn:
    return ResultColumn(name, oid_of(type_))


def rows(table: pa.Table, columns: list[ResultColumn]) -> Iterator[tuple[Any, ...]]:
    """The rows of a table as values that the wire can encode, a batch at a time."""
    converters = [_converter(each.oid, field.type) for each, field in zip(columns, table.schema, strict=True)]
    for start in range(0, table.num_rows, BATCH):
        part = table.slice(start, BATCH)
        values = [convert(side) for convert, side in zip(converters, part.columns, strict=True)]
        yield from zip(*values, strict=True)


def _converter(oid: int, type_: pa.DataType) -> Callable[[pa.ChunkedArray], list[Any]]:
    if oid == FLOAT4:
        return lambda side: [None if each is None else float(str(np.float32(each))) for each in side.to_pylist()]
    if oid == JSON:
        return lambda side: [None if each is None else json.dumps(plain(each)) for each in side.to_pylist()]
    if oid == TEXT and not (pa.types.is_string(type_) or pa.types.is_large_string(type_)):
        return lambda side: [None if each is None else str(each) for each in side.to_pylist()]
    if oid == INTERVAL:
        return lambda side: [_interval(each) for each in side.to_pylist()]
    return lambda side: list(side.to_pylist())


def _interval(value: Any) -> dt.timedelta | None:
    return (
        value
        if value is None or isinstance(value, dt.timedelta)
        else dt.timedelta(days=value.days, microseconds=value.nanoseconds // 1000)
    )


def literal(value: str | list[Any] | exp.Expr | None, oid: int | None) -> exp.Expr:
    """A parameter as a part of a query. It is a literal of its tree, never text that is put together."""
    if isinstance(value, exp.Expr):
        name = None if oid == NUMERIC else _SPARK.get(oid or 0)
        return exp.Paren(this=value.copy()) if name is None else exp.cast(value.copy(), name, dialect="spark")
    if isinstance(value, list):
        element = next((each for each, array in ARRAY_OID.items() if array == oid), TEXT)
        return exp.Array(expressions=[literal(each, element) for each in value])
    if value is None:
        return exp.Null() if oid in (None, 0, UNKNOWN) else exp.cast(exp.Null(), _SPARK.get(oid, "string"), dialect="spark")
    match oid:
        case 21 | 23 | 20 | 26:
            return _signed(value, _WHOLE, oid)
        case 1700 if value.strip().lower().lstrip("+-") in ("nan", "inf", "infinity"):
            return exp.cast(exp.Literal.string(value.strip()), "double", dialect="spark")
        case 1700:
            return _signed(value, _DECIMAL, oid)
        case 16 if value.strip().lower() in _TRUTH:
            return exp.true() if _TRUTH[value.strip().lower()] else exp.false()
        case 17 if re.fullmatch(r"\\x([0-9a-fA-F]{2})*", value):
            return exp.HexString(this=value.removeprefix("\\x"))
        case 16 | 17:
            raise _misread(value, oid)
        case None | 0 | 25 | 1043 | 1042 | 19 | 705:
            return exp.Literal.string(value)
    return exp.cast(exp.Literal.string(value), _SPARK.get(oid, "string"), dialect="spark")


def _signed(value: str, shape: re.Pattern[str], oid: int) -> exp.Expr:
    """A number with all its digits, without an exponent."""
    if shape.fullmatch(value) is None:
        raise _misread(value, oid)
    with localcontext(prec=_MOST_DIGITS):
        number = Number(value.strip())
        digits = exp.Literal.number(f"{abs(number):f}")
    return exp.Paren(this=exp.Neg(this=digits)) if number < 0 else digits


def _misread(value: str, oid: int) -> PgError:
    return PgError("22P02", f"{value[:60]!r} is no {sql_name(oid)}")
