"""How DuckDB reads a stored table: `read_parquet` over exactly the files of the manifest, never a directory listing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import duckdb
from sqlglot import exp

from nearly.engine.storage.layouts import Layout, Table
from nearly.errors import Unsupported
from nearly.plan.dialects import native
from nearly.plan.types import DATE, TIMESTAMP, DataType, is_simple

_UNSIGNED = frozenset({"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"})


class NativeReader:
    """Gives the SQL by which DuckDB reads a table with Spark's column types."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._lock = threading.Lock()
        self._found: dict[tuple[str, str], dict[str, str]] = {}
        self._counted: dict[tuple[str, str, int], tuple[int, int]] = {}

    def query(
        self, table: Table, layout: Layout, columns: Sequence[str], paths: Sequence[str], row_numbers: bool = False
    ) -> exp.Select:
        """A query over the files that gives the named columns; `row_numbers` lets a condition name rows of a file."""
        found = self._types(table, layout)
        source = read_parquet(paths, self._hive(table, layout), row_numbers)
        items = [_converted(table.column(name).type, found[name.lower()], name) for name in columns]
        return exp.Select(expressions=items or [exp.Star()], from_=exp.From(this=source))

    def distinct(self, table: Table, column: str, rows: int) -> tuple[int, int]:
        """How many of the table's first rows were looked at, and how many different values of a column they have."""
        known = (table.content, column, rows)
        if known not in self._counted:
            paths = table.base.manifest.paths[:1]
            query = self.query(table, table.base, [column], paths).limit(rows).sql(dialect="duckdb")
            with self._lock:
                counts = self._connection.execute(f"SELECT count(*), count(DISTINCT columns(*)) FROM ({query})").fetchone()
            self._counted[known] = counts if counts is not None else (0, 0)
        return self._counted[known]

    def _hive(self, table: Table, layout: Layout) -> dict[str, DataType]:
        """The table's partition columns, when the layout keeps them in directories."""
        names = {value.column for block in layout.blocks[:1] for value in block.partition}
        return {column.name: column.type for column in table.columns if column.name in names}

    def _types(self, table: Table, layout: Layout) -> dict[str, str]:
        """The types as which DuckDB itself reads the layout's columns."""
        known = (table.content, layout.name)
        if known not in self._found:
            source = read_parquet(layout.manifest.paths[:1], self._hive(table, layout))
            query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=source)).sql(dialect="duckdb")
            with self._lock:
                rows: list[tuple[Any, ...]] = self._connection.execute(f"DESCRIBE {query}").fetchall()
            self._found[known] = {str(row[0]).lower(): str(row[1]) for row in rows}
        return self._found[known]


def read_parquet(paths: Sequence[str], hive: dict[str, DataType], row_numbers: bool = False) -> exp.Expr:
    """`read_parquet([...])`; the values of partition directories get the types the table has."""
    arguments: list[exp.Expr] = [exp.Array(expressions=[exp.Literal.string(literal_path(path)) for path in paths])]
    if hive:
        types = [_typed(name, type_) for name, type_ in hive.items()]
        arguments.append(exp.EQ(this=exp.to_identifier("hive_types"), expression=exp.Struct(expressions=types)))
    for option, value in (("hive_partitioning", bool(hive)), ("file_row_number", row_numbers)):
        arguments.append(exp.EQ(this=exp.to_identifier(option), expression=exp.Boolean(this=value)))
    return exp.Table(this=exp.Anonymous(this="read_parquet", expressions=arguments))


def _typed(name: str, type_: DataType) -> exp.Expr:
    text = str(native.type_sql(type_).sql(dialect="duckdb"))
    return exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=exp.Literal.string(text))


def literal_path(path: str) -> str:
    """DuckDB takes a path as a pattern; brackets keep its special characters from meaning anything."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)


def _converted(wanted: DataType, found: str, name: str) -> exp.Expr:
    column = exp.column(name, quoted=True)
    if not is_simple(wanted):
        raise Unsupported(f"column {name!r} has type {wanted}, which the native kernel does not read")
    target = native.type_sql(wanted)
    if target.sql(dialect="duckdb").replace(" ", "") == found.replace(" ", "") or _same_type(wanted, found):
        return column
    if found in _UNSIGNED or (wanted == DATE and found == "TIMESTAMP"):
        return exp.alias_(exp.Cast(this=column, to=target), name, quoted=True)
    if wanted == TIMESTAMP and found == "TIMESTAMP":
        return exp.alias_(exp.AtTimeZone(this=column, zone=exp.Literal.string("UTC")), name, quoted=True)
    raise Unsupported(f"column {name!r} is {wanted} for Spark and {found} for the native kernel")


def _same_type(wanted: DataType, found: str) -> bool:
    """DuckDB's own names for types that sqlglot spells differently."""
    names = {
        "boolean": "BOOLEAN", "tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER", "bigint": "BIGINT",
        "float": "FLOAT", "double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB", "date": "DATE",
        "timestamp": "TIMESTAMP WITH TIME ZONE", "timestamp_ntz": "TIMESTAMP",
    }  # fmt: skip
    return names.get(wanted.name) == found
