"""Evaluates expressions in both kernels on the same rows, and tells what differs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from nearly.plan.dialects import native
from nearly.plan.dialects import spark as spark_dialect
from nearly.plan.expressions import Expression, columns_of
from nearly.plan.types import TIMESTAMP, DataType, to_arrow

CHUNK = 200
MOST_LEFT_TO_SPARK = 0.7


class Native:
    """The native kernel over one table, in one time zone."""

    def __init__(self, rows: pa.Table, zone: str = "UTC") -> None:
        self.rows = rows
        self.connection = duckdb.connect()
        self.connection.execute(f"SET TimeZone = '{zone}'")
        self.connection.execute("CREATE TABLE input AS SELECT * FROM rows")

    def query(self, texts: Sequence[str], rest: str) -> pa.Table:
        chosen = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))
        return self.connection.execute(f"SELECT {chosen} FROM {rest}").to_arrow_table()

    def evaluate(self, expressions: Sequence[Expression]) -> list[tuple[pa.DataType | None, list[Any]]]:
        """Type and values of each, an error instead of a value on rows that are left to Spark (then without a type)."""
        texts = [native.expression(each).sql(dialect="duckdb") for each in expressions]
        try:
            found = self.query(texts, "input ORDER BY id")
        except duckdb.Error:
            if len(expressions) == 1:
                return [(None, self._by_row(expressions[0], texts[0]))]
            middle = len(expressions) // 2
            return self.evaluate(expressions[:middle]) + self.evaluate(expressions[middle:])
        return [(column.type, plain(column)) for column in found.columns]

    def _by_row(self, expression: Expression, text: str) -> list[Any]:
        inputs = self.rows.sort_by("id").select(sorted(columns_of(expression)) or ["id"]).to_pylist()
        known: dict[str, Any] = {}
        for number, row in enumerate(inputs):
            if repr(row) not in known:
                known[repr(row)] = self._on_row(number, text)
        return [known[repr(row)] for row in inputs]

    def _on_row(self, number: int, text: str) -> Any:
        try:
            return plain(self.query([text], f"(SELECT * FROM input WHERE id = {number})").column(0))[0]
        except duckdb.Error as error:
            return error


def by_spark(spark: Any, texts: list[str], rest: str, order: list[str]) -> tuple[list[str], list[list[Any]]]:
    """Types and values of many expressions in few queries, sorted by the columns that `order` selects first."""
    types: list[str] = []
    values: list[list[Any]] = []
    for start in range(0, len(texts), CHUNK):
        chosen = [*order, *(f"{text} AS c{number}" for number, text in enumerate(texts[start : start + CHUNK]))]
        frame = spark.sql(f"SELECT {', '.join(chosen)} FROM {rest}")
        types += [field.dataType.simpleString() for field in frame.schema.fields[len(order) :]]
        found = frame.toArrow()
        keys = [(name, "ascending") for name in found.column_names[: len(order)]]
        values += [plain(column) for column in (found.sort_by(keys) if keys else found).columns[len(order) :]]
    return types, values


def plain(column: pa.ChunkedArray) -> list[Any]:
    """The values in Python; days and microseconds since 1970 for moments, since Python has no years beyond 9999."""
    if pa.types.is_date(column.type):
        return list(column.cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(column.type):
        return list(column.cast(pa.int64()).to_pylist())
    return list(column.to_pylist())


def rendered(expression: Expression) -> str:
    return spark_dialect.expression(expression).sql(dialect="spark")


def arrow_type(type_: DataType, zone: str) -> pa.DataType:
    return pa.timestamp("us", zone) if type_ == TIMESTAMP else to_arrow(type_)


def same(left: Any, right: Any) -> bool:
    """Equal values; doubles up to rounding, but NaN and the sign of zero exactly."""
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right) or left == right == 0:
            return repr(left) == repr(right)
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-300)
    return type(left) is type(right) and left == right and str(left) == str(right)


def differences(case: Any, results: Iterable[tuple[Any, Any, Any]], rows: list[Any], guarded: bool) -> list[str]:
    """What is wrong with a case, given each row's value by the user's text, nearly's text and the native kernel."""
    wrong, left_to_spark = [], 0
    for row, (user, again, found) in zip(rows, results, strict=True):
        if isinstance(found, Exception):
            left_to_spark += 1
            if not guarded:
                wrong.append(f"{case}: native raises {str(found)[:90]!r} on {row}")
        elif not (same(user, again) and same(user, found)):
            wrong.append(f"{case}: Spark {user!r}, rendered {again!r}, native {found!r} on {row}")
    if left_to_spark > len(rows) * MOST_LEFT_TO_SPARK:
        wrong.append(f"{case}: native leaves {left_to_spark} of {len(rows)} rows to Spark")
    return wrong[:2]
