"""How DuckDB reads a stored table: `read_parquet` over exactly the files of the manifest, never a directory listing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from nearly.engine.storage.layouts import Layout, Table
from nearly.errors import EngineError, Unsupported
from nearly.plan.dialects import native
from nearly.plan.quoting import native_text
from nearly.plan.types import DATE, TIMESTAMP, DataType, is_simple

FILE, ROW = "nearly_file", "nearly_row"
"""Columns that every stored table has for those who change it: the number of the row's file in the manifest, and of the row in it.

They are right in queries over all files of a layout.
"""
ROW_NUMBER = "file_row_number"
_FILE_INDEX = "file_index"
_GONE, _PLACE, _GONE_ROW = "nearly_gone", "nearly_gone_place", "nearly_gone_row"
_IS_GONE = exp.and_(
    exp.EQ(this=exp.column(_FILE_INDEX), expression=exp.column(_PLACE, _GONE)),
    exp.EQ(this=exp.column(ROW_NUMBER), expression=exp.column(_GONE_ROW, _GONE)),
)
_PLACES: dict[str, exp.Expr] = {
    FILE: exp.alias_(exp.Cast(this=exp.column(_FILE_INDEX), to=exp.DataType.build("int")), FILE, quoted=True),
    ROW: exp.alias_(exp.column(ROW_NUMBER), ROW, quoted=True),
}
_UNSIGNED = frozenset({"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"})


class NativeReader:
    """Gives the SQL by which DuckDB reads a table with Spark's column types."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._lock = threading.Lock()
        self._found: dict[tuple[str, int], dict[str, str]] = {}
        self._counted: dict[tuple[str, str, int], tuple[int, int]] = {}

    def query(
        self,
        table: Table,
        layout: Layout,
        columns: Sequence[str],
        paths: Sequence[str],
        row_numbers: bool = False,
        gone: str | None = None,
    ) -> exp.Select:
        """A query over the files that gives the named columns; `row_numbers` lets a condition name rows of a file.

        `gone` is a query for the rows to leave out, by place of a file among these and number of a row (`gone_rows`).
        """
        found = self._types(table, layout)
        placed = {FILE, ROW} & set(columns)
        source = read_parquet(paths, self._hive(table, layout), row_numbers or gone is not None or bool(placed))
        items = [
            _PLACES[name].copy() if name in placed else _converted(table.column(name).type, found[name.lower()], name)
            for name in columns
        ]
        query = exp.Select(expressions=items or [exp.Star()], from_=exp.From(this=source))
        if gone is None:
            return query
        left_out = exp.Subquery(this=sqlglot.parse_one(gone, dialect="duckdb"), alias=exp.TableAlias(this=exp.to_identifier(_GONE)))
        return query.join(left_out, on=_IS_GONE.copy(), join_type="anti", copy=False)

    def whole(self, table: Table, layout: Layout, columns: Sequence[str]) -> exp.Select:
        """A query for all rows of a layout."""
        files = layout.manifest.paths
        gone = gone_rows(layout, files) if layout.vectors else None
        return self.query(table, layout, columns, files, gone=gone)

    def distinct(self, table: Table, column: str, rows: int) -> tuple[int, int]:
        """How many of the table's first rows were looked at, and how many different values of a column they have."""
        known = (table.content, column, rows)
        if known not in self._counted:
            query = self.query(table, table.base, [column], table.base.manifest.paths[:1]).limit(rows).sql(dialect="duckdb")
            with self._lock:
                counts = self._connection.execute(f"SELECT count(*), count(DISTINCT columns(*)) FROM ({query})").fetchone()
            self._counted[known] = counts if counts is not None else (0, 0)
        return self._counted[known]

    def _hive(self, table: Table, layout: Layout) -> dict[str, DataType]:
        """The table's partition columns, when the layout keeps them in directories."""
        return {column.name: column.type for column in table.columns if column.name in layout.partitioned_by}

    def refuse_other_types(self, table: Table, path: str) -> None:
        """All files of a layout are read as its first: one whose columns DuckDB reads with other types cannot join them."""
        found = self._described(path, self._hive(table, table.base))
        for name, kind in self._types(table, table.base).items():
            if found.get(name) != kind:
                raise Unsupported(
                    f"the files of table {table.name!r} hold column {name!r} as {kind}, new rows would hold it as "
                    f"{found.get(name)}; register a copy of the table to change it"
                )

    def _types(self, table: Table, layout: Layout) -> dict[str, str]:
        """The types as which DuckDB itself reads the layout's columns."""
        return self._described(layout.manifest.paths[0], self._hive(table, layout))

    def _described(self, path: str, hive: dict[str, DataType]) -> dict[str, str]:
        try:
            known = (path, Path(path).stat().st_mtime_ns)
        except OSError as error:
            raise EngineError(f"{path} has vanished since the table was registered") from error
        if known not in self._found:
            query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=read_parquet([path], hive))).sql(dialect="duckdb")
            with self._lock:
                rows: list[tuple[Any, ...]] = self._connection.execute(f"DESCRIBE {query}").fetchall()
            self._found[known] = {str(row[0]).lower(): str(row[1]) for row in rows}
        return self._found[known]


def gone_rows(layout: Layout, paths: Sequence[str]) -> str:
    """A query for the deleted rows of some files of a layout: the place of each file among these, and the number of the row."""
    numbers = {path: number for number, path in enumerate(layout.manifest.paths)}
    vectors = ", ".join(native_text(literal_path(vector.path)) for vector in layout.vectors)
    wanted = [numbers[path] for path in paths]
    read = f"SELECT file, row FROM read_parquet([{vectors}])"
    if wanted == list(range(len(numbers))):
        return f"SELECT file AS {_PLACE}, row AS {_GONE_ROW} FROM ({read})"
    if len(wanted) == 1:
        return f"SELECT 0 AS {_PLACE}, row AS {_GONE_ROW} FROM ({read}) WHERE file = {wanted[0]}"
    pairs = ", ".join(f"({place}, {number})" for place, number in enumerate(wanted))
    chosen = f"{read} WHERE file IN ({', '.join(map(str, wanted))})"
    numbered = f"(VALUES {pairs}) AS numbered(place, number)"
    return f"SELECT place AS {_PLACE}, row AS {_GONE_ROW} FROM ({chosen}) AS v JOIN {numbered} ON v.file = numbered.number"


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
