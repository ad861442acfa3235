"""The native kernel's expressions give what Spark SQL gives, type and value, on tricky inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.plan.conformance import cases, inputs
from tests.plan.conformance.language import typed, written

from nearly.plan.dialects import native, native_casts
from nearly.plan.dialects import spark as spark_dialect
from nearly.plan.expressions import Call, Cast, Expression, walk
from nearly.plan.types import TIMESTAMP, to_arrow

CHUNK = 100
ZONES = ("America/New_York", "America/Havana", "Asia/Kolkata")
SUITE = {
    "numbers": ("numbers", cases.NUMBERS),
    "extremes": ("extremes", cases.EXTREMES),
    "words": ("words", cases.WORDS),
    "guarded words": ("words", cases.GUARDED_WORDS),
    "numerals": ("numerals", cases.NUMERALS),
    "moments": ("moments", cases.MOMENTS),
    "instants": ("moments", cases.INSTANTS + cases.UTC_INSTANTS),
}


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, pa.Table]]:
    """The same rows for both engines."""
    home: Path = tmp_path_factory.mktemp("conformance")
    made = {}
    for name in inputs.TABLES:
        made[name] = inputs.rows(name)
        pq.write_table(made[name], home / f"{name}.parquet")
        spark.read.parquet(str(home / f"{name}.parquet")).createOrReplaceTempView(f"conformance_{name}")
    yield made
    for name in made:
        spark.catalog.dropTempView(f"conformance_{name}")


def by_spark(spark: Any, table: str, texts: list[str]) -> tuple[list[str], list[list[Any]]]:
    """Types and values of many expressions in few queries."""
    types: list[str] = []
    values: list[list[Any]] = []
    for start in range(0, len(texts), CHUNK):
        chosen = [f"{text} AS c{number}" for number, text in enumerate(texts[start : start + CHUNK])]
        frame = spark.sql(f"SELECT id, {', '.join(chosen)} FROM conformance_{table}")
        types += [field.dataType.simpleString() for field in frame.schema.fields[1:]]
        values += [plain(column) for column in frame.toArrow().sort_by("id").columns[1:]]
    return types, values


def plain(column: pa.ChunkedArray) -> list[Any]:
    """The values in Python; days and microseconds since 1970 for moments, since Python has no years beyond 9999."""
    if pa.types.is_date(column.type):
        return list(column.cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(column.type):
        return list(column.cast(pa.int64()).to_pylist())
    return list(column.to_pylist())


def by_native(rows: pa.Table, expression: Expression, zone: str) -> tuple[pa.DataType, list[Any]]:
    """The value on each row, or the error where the native kernel leaves the row to Spark."""
    text = native.expression(expression).sql(dialect="duckdb")
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{zone}'")
        try:
            found = connection.from_arrow(rows).select(f"{text} AS c, id").order("id").to_arrow_table()
            return found.schema.field("c").type, plain(found.column("c"))
        except duckdb.Error:
            return None, [_by_row(connection, rows.slice(number, 1), text) for number in range(rows.num_rows)]


def _by_row(connection: duckdb.DuckDBPyConnection, row: pa.Table, text: str) -> Any:
    try:
        return plain(connection.from_arrow(row).select(f"{text} AS c").to_arrow_table().column("c"))[0]
    except duckdb.Error as error:
        return error


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right) or left == 0 or right == 0:
            return repr(left) == repr(right) or (abs(left - right) < 1e-300 and left != right)
        return math.isclose(left, right, rel_tol=1e-9)
    return type(left) is type(right) and left == right and str(left) == str(right)


def rendered(expression: Expression) -> str:
    return spark_dialect.expression(expression).sql(dialect="spark")


def compare(spark: Any, tables: dict[str, pa.Table], table: str, chosen: list[Any], zone: str, guarded: bool) -> list[str]:
    """What differs between Spark on the user's text, Spark on nearly's text, and the native kernel."""
    expressions = [typed(case, inputs.columns(table)) for case in chosen]
    texts = [(written(case), rendered(each)) for case, each in zip(chosen, expressions, strict=True)]
    all_types, all_values = by_spark(spark, table, [text for pair in texts for text in pair])
    user_types, types, user_values, values = all_types[::2], all_types[1::2], all_values[::2], all_values[1::2]
    wrong = []
    for number, (case, expression) in enumerate(zip(chosen, expressions, strict=True)):
        if not user_types[number] == types[number] == str(expression.type):
            wrong.append(f"{case}: Spark types it {user_types[number]}, nearly {expression.type}, rendered {types[number]}")
            continue
        arrow, found = by_native(tables[table], expression, zone)
        if arrow is not None and arrow != expected_arrow(expression, zone):
            wrong.append(f"{case}: native type {arrow} for {expression.type}")
        wrong += differences(case, tables[table], zip(user_values[number], values[number], found, strict=True), guarded)
    return wrong


def expected_arrow(expression: Expression, zone: str) -> pa.DataType:
    return pa.timestamp("us", zone) if expression.type == TIMESTAMP else to_arrow(expression.type)


def differences(case: Any, rows: pa.Table, results: Iterator[tuple[Any, Any, Any]], guarded: bool) -> list[str]:
    wrong, left_to_spark = [], 0
    for number, (user, again, found) in enumerate(results):
        if isinstance(found, Exception):
            left_to_spark += 1
            if not guarded:
                wrong.append(f"{case}: native raises {str(found)[:90]!r} on {rows.slice(number, 1).to_pylist()}")
        elif not (same(user, again) and same(user, found)):
            wrong.append(f"{case}: Spark {user!r}, rendered {again!r}, native {found!r} on {rows.slice(number, 1).to_pylist()}")
    if left_to_spark > rows.num_rows * 0.6:
        wrong.append(f"{case}: native leaves {left_to_spark} of {rows.num_rows} rows to Spark")
    return wrong[:2]


@pytest.mark.parametrize("family", SUITE)
def test_family_agrees(family: str, spark: Any, tables: dict[str, pa.Table]) -> None:
    table, chosen = SUITE[family]
    wrong = compare(spark, tables, table, chosen, "UTC", guarded=family.startswith("guarded"))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("zone", ZONES)
def test_instants_agree_in_zone(zone: str, spark: Any, tables: dict[str, pa.Table]) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        wrong = compare(spark, tables, "moments", cases.INSTANTS, zone, guarded=True)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert not wrong, "\n".join(wrong)


def test_every_native_function_has_a_case() -> None:
    every = [(table, case) for table, chosen in SUITE.values() for case in chosen]
    used = {
        each.function
        for table, case in every
        for each in walk(typed(case, inputs.columns(table)))
        if isinstance(each, Call)
    }
    assert set(native.FUNCTIONS) <= used


def test_every_native_cast_has_a_case() -> None:
    every = [(table, case) for table, chosen in SUITE.values() for case in chosen]
    used = {
        native_casts.pair(each)
        for table, case in every
        for each in walk(typed(case, inputs.columns(table)))
        if isinstance(each, Cast)
    }
    assert set(native_casts.CONVERSIONS) <= used
