"""How DuckDB reads a stored table: `read_parquet` over exactly the files of the manifest, never a directory listing."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from nearly.engine.storage.differences import Part
from nearly.engine.storage.layouts import Layout, Table
from nearly.engine.storage.manifest import FileEntry
from nearly.errors import EngineError, Unsupported
from nearly.plan.dialects import native
from nearly.plan.quoting import native_name, native_text
from nearly.plan.types import DATE, FRACTIONS, TIMESTAMP, DataType, is_simple

FILE, ROW = "nearly_file", "nearly_row"
"""Columns that every stored table has for those who change it: the number of the row's file in the manifest, and of the row in it.

They are right in queries over all files of a layout.
"""
REMEMBERED = 1_000
"""Schemas of new files that are known to fit."""
ROW_NUMBER = "file_row_number"
_FILE_INDEX = "file_index"
_GONE, _PLACE, _GONE_ROW = "nearly_gone", "nearly_gone_place", "nearly_gone_row"
_IS_ROW = exp.EQ(this=exp.column(ROW_NUMBER), expression=exp.column(_GONE_ROW, _GONE))
_IS_GONE = exp.and_(exp.EQ(this=exp.column(_FILE_INDEX), expression=exp.column(_PLACE, _GONE)), _IS_ROW)
_PLACES: dict[str, exp.Expr] = {
    FILE: exp.alias_(exp.Cast(this=exp.column(_FILE_INDEX), to=exp.DataType.build("int")), FILE, quoted=True),
    ROW: exp.alias_(exp.column(ROW_NUMBER), ROW, quoted=True),
}
_DESCRIBED = {"REAL": "FLOAT", "TIMESTAMPTZ": "TIMESTAMPWITHTIMEZONE"}
"""Types that DuckDB describes by another name."""
MOST_TEXTS = 256
MOST_ALONE = 256
"""So many files are read each by a query of its own; of more, each takes longer to plan than it spares."""
_UNSIGNED = frozenset({"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"})


class NativeReader:
    """Gives the SQL by which DuckDB reads a table with Spark's column types."""

    def __init__(self) -> None:
        _looking(os.getpid())  # opened now, so that no query waits for it
        self._found: dict[tuple[str, int], dict[str, str]] = {}
        self._fitting: set[tuple[str, str]] = set()
        self._texts: dict[Hashable, str] = {}
        self._counted: dict[tuple[str, str, int], tuple[int, int]] = {}

    def query(
        self,
        table: Table,
        layout: Layout,
        columns: Sequence[str],
        paths: Sequence[str],
        row_numbers: bool = False,
        gone: str | None = None,
        named: bool = False,
        alone: bool = False,
    ) -> exp.Select:
        """A query over the files that gives the named columns; `row_numbers` lets a condition name rows of a file.

        `gone` is a query for the rows to leave out, by place of a file among these and number of a row (`gone_rows`); with `named`
        these are the only rows wanted. A file that is read `alone` needs no look at its place.
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
        same = _IS_ROW if alone else _IS_GONE
        return query.join(left_out, on=same.copy(), join_type="semi" if named else "anti", copy=False)

    def whole(self, table: Table, layout: Layout, columns: Sequence[str]) -> exp.Select:
        """A query for all rows of a layout."""
        files = layout.manifest.paths
        gone = gone_rows(layout, files) if layout.vectors else None
        return self.query(table, layout, columns, files, gone=gone, alone=len(files) == 1)

    def text(self, table: Table, columns: Sequence[str]) -> str:
        """The text of a query for all rows of the base layout; the last ones asked for are remembered."""
        known = (table.content, table.base.files, tuple(columns))
        if known not in self._texts:
            while len(self._texts) >= MOST_TEXTS:
                self._texts.pop(next(iter(self._texts)), None)
            self._texts[known] = str(self.whole(table, table.base, columns).sql(dialect="duckdb"))
        return self._texts[known]

    def of_files(self, table: Table, columns: Sequence[str], paths: Sequence[str]) -> str:
        """A query for the rows that some files of the base layout hold."""
        gone = gone_rows(table.base, paths) if table.base.vectors else None
        return str(self.query(table, table.base, columns, paths, gone=gone, alone=len(paths) == 1).sql(dialect="duckdb"))

    def with_keys(
        self, table: Table, columns: Sequence[str], column: str, keys: str, test: str, *, in_order: bool = False,
        paths: Sequence[str] | None = None,
    ) -> str:  # fmt: skip
        """A query for the rows of the base layout whose column meets one of the keys, a table with a column `k`, by a test.

        They are in the files named by `paths`, where these are given. Rows that were deleted are left out of the few that are
        found, not of all that are read.
        """
        base = table.base
        files = base.manifest.paths if paths is None else paths
        names = list(dict.fromkeys([*columns, column, FILE, ROW]))
        rows = self.query(table, base, names, files).sql(dialect="duckdb")
        shown = ", ".join(f"s.{native_name(each)}" for each in columns)
        found = f"({rows}) AS s SEMI JOIN {native_name(keys)} AS n ON s.{native_name(column)} {test} n.k"
        if base.vectors:
            gone = gone_rows(base, files)
            place = f"s.{FILE} = g.{_PLACE} AND s.{ROW} = g.{_GONE_ROW}"
            found = f"(SELECT s.* FROM {found}) AS s ANTI JOIN ({gone}) AS g ON {place}"
        return f"SELECT {shown} FROM {found}" + (f" ORDER BY s.{FILE}, s.{ROW}" if in_order else "")

    def runs(
        self, table: Table, column: str, keys: str, test: str, length: int, paths: Sequence[str] | None = None
    ) -> str:  # fmt: skip
        """A query for the runs of so many rows, by file and number, in which the column of some row meets one of the keys.

        Runs are those of the base layout's files, or of some of them; rows that were deleted are counted, but not looked at.
        """
        found = self.with_keys(table, (FILE, ROW), column, keys, test, paths=paths)
        return f"SELECT DISTINCT {FILE}, {ROW} // {length} FROM ({found})"

    def part(self, part: Part, columns: Sequence[str], weight: str, *, in_order: bool = False) -> str:
        """A query for rows that came or went between two versions of a table; `weight` names the column that tells which."""
        if part.named and 1 < len(part.files) <= MOST_ALONE:
            return self._file_by_file(part, columns, weight, in_order)
        files = part.table.base.manifest.paths
        gone = rows_at(files, part.vectors, part.paths) if part.vectors else None
        stored = [name for name in columns if name != weight]
        if part.apart:
            rows = self._apart(part, stored, in_order)
        else:
            rows = self.query(
                part.table, part.table.base, stored, part.paths, in_order, gone, part.named, alone=len(part.paths) == 1
            )
        sign = exp.alias_(exp.Cast(this=exp.Literal.number(part.weight), to=exp.DataType.build("bigint")), weight, quoted=True)
        if not stored:
            rows.set("expressions", [])
        if weight in columns:
            rows = rows.select(sign, copy=False)
        if in_order:
            rows = rows.order_by(exp.column(_FILE_INDEX), exp.column(ROW_NUMBER), copy=False)
        return str(rows.sql(dialect="duckdb"))

    def _file_by_file(self, part: Part, columns: Sequence[str], weight: str, in_order: bool) -> str:
        """The same, of rows that lie here and there in several files. DuckDB passes over what holds none of the rows that it looks
        for, as their numbers tell it: those of one file do, those of all files together are nearly all numbers.
        """
        shown = sorted(columns, key=lambda name: name == weight)
        if not in_order:
            return " UNION ALL ".join(self.part(replace(part, files=(file,)), shown, weight) for file in part.files)
        each = (self.part(replace(part, files=(file,)), (*shown, ROW), weight) for file in part.files)
        rows = " UNION ALL ".join(f"SELECT *, {place} AS {FILE} FROM ({own})" for place, own in enumerate(each))
        return f"SELECT {', '.join(map(native_name, shown))} FROM ({rows}) ORDER BY {FILE}, {ROW}"

    def _apart(self, part: Part, columns: Sequence[str], row_numbers: bool) -> exp.Select:
        """The rows of files that are not of a layout, but hold a table's columns."""
        found = self._described(part.paths[0], {})
        items = [_converted(part.table.column(name).type, found[name.lower()], name) for name in columns]
        return exp.Select(expressions=items or [exp.Star()], from_=exp.From(this=read_parquet(part.paths, {}, row_numbers)))

    def distinct(self, table: Table, column: str, rows: int) -> tuple[int, int]:
        """How many of the table's first rows were looked at, and how many different values of a column they have."""
        known = (table.content, column, rows)
        if known not in self._counted:
            query = self.query(table, table.base, [column], table.base.manifest.paths[:1]).limit(rows).sql(dialect="duckdb")
            [(looked, different)] = _looked_up(f"SELECT count(*), count(DISTINCT columns(*)) FROM ({query})")
            self._counted[known] = looked, different
        return self._counted[known]

    def _hive(self, table: Table, layout: Layout) -> dict[str, DataType]:
        """The table's partition columns, when the layout keeps them in directories."""
        return {column.name: column.type for column in table.columns if column.name in layout.partitioned_by}

    def refuse_other_types(self, table: Table, path: str, schema: str | None = None) -> None:
        """All files of a layout are read as its first: one whose columns DuckDB reads with other types cannot join them.

        `schema` tells how the library wrote it: what was written in one way is read in one way, so that one look is enough.
        """
        known = (table.base.manifest.paths[0], schema or path)
        if known in self._fitting:
            return
        found = self._described(path, self._hive(table, table.base))
        for name, kind in self._types(table, table.base).items():
            if found.get(name) != kind:
                raise Unsupported(
                    f"the files of table {table.name!r} hold column {name!r} as {kind}, new rows would hold it as "
                    f"{found.get(name)}; register a copy of the table to change it"
                )
        if len(self._fitting) >= REMEMBERED:
            self._fitting.clear()
        self._fitting.add(known)

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
            self._found[known] = {str(row[0]).lower(): str(row[1]) for row in _looked_up(f"DESCRIBE {query}")}
        return self._found[known]


class _Looking:
    """An engine that only looks at files. One thread is enough for that, and leaves nothing that a forked child would miss."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        self._lock = threading.Lock()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self._lock:
            cursor = self._connection.cursor()
        with cursor:
            return cursor.execute(sql).fetchall()


@cache
def _looking(_process: int) -> _Looking:
    """One for all sessions of a process: opening an engine is most of what opening a session takes."""
    return _Looking()


def _looked_up(sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query that reads no more than the beginning of a file."""
    return _looking(os.getpid()).rows(sql)


def gone_rows(layout: Layout, paths: Sequence[str]) -> str:
    """A query for the deleted rows of some files of a layout: the place of each file among these, and the number of the row."""
    return rows_at(layout.manifest.paths, layout.vectors, paths)


def rows_at(files: Sequence[str], vectors: Sequence[FileEntry], paths: Sequence[str]) -> str:
    """A query for the places that vectors name, of some of the files they number."""
    numbers = {path: number for number, path in enumerate(files)}
    named = ", ".join(native_text(literal_path(vector.path)) for vector in vectors)
    wanted = [numbers[path] for path in paths]
    read = f"SELECT file, row FROM read_parquet([{named}])"
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
        types = {exp.to_identifier(name, quoted=True): native.type_name(type_) for name, type_ in hive.items()}
        fields = [exp.PropertyEQ(this=name, expression=exp.Literal.string(type_)) for name, type_ in types.items()]
        arguments.append(exp.EQ(this=exp.to_identifier("hive_types"), expression=exp.Struct(expressions=fields)))
    for option, value in (("hive_partitioning", bool(hive)), ("file_row_number", row_numbers)):
        arguments.append(exp.EQ(this=exp.to_identifier(option), expression=exp.Boolean(this=value)))
    return exp.Table(this=exp.Anonymous(this="read_parquet", expressions=arguments))


def literal_path(path: str) -> str:
    """DuckDB takes a path as a pattern; brackets keep its special characters from meaning anything."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)


def _with_nan(column: exp.Expr, name: str) -> exp.Expr:
    """A column of doubles as it is, of which DuckDB does not know the statistics.

    Those in footers leave NaN out, and DuckDB takes them for those of all values: it passed over row groups with NaN, and knew the
    greatest value without reading.
    """
    as_it_is = exp.Case(ifs=[exp.If(this=exp.Is(this=column, expression=exp.Null()), true=exp.Null())], default=column.copy())
    return exp.alias_(as_it_is, name, quoted=True)


def _converted(wanted: DataType, found: str, name: str) -> exp.Expr:
    column = exp.column(name, quoted=True)
    if not is_simple(wanted):
        raise Unsupported(f"column {name!r} has type {wanted}, which the native kernel does not read")
    target, name_there = native.type_sql(wanted), native.type_name(wanted).replace(" ", "")
    if _DESCRIBED.get(name_there, name_there) == found.replace(" ", ""):
        return _with_nan(column, name) if wanted in FRACTIONS else column
    if found in _UNSIGNED or (wanted == DATE and found == "TIMESTAMP"):
        return exp.alias_(exp.Cast(this=column, to=target), name, quoted=True)
    if wanted == TIMESTAMP and found == "TIMESTAMP":
        return exp.alias_(exp.AtTimeZone(this=column, zone=exp.Literal.string("UTC")), name, quoted=True)
    raise Unsupported(f"column {name!r} is {wanted} for Spark and {found} for the native kernel")
