"""The native kernel's expressions give what Spark SQL gives, type and value, on tricky inputs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from nearly.plan.dialects import native, native_casts
from nearly.plan.expressions import Call, Cast, Expression, columns_of, walk
from tests.plan.dialects.conformance import cases, inputs
from tests.plan.dialects.conformance.fixtures import tables
from tests.plan.dialects.conformance.kernels import Native, arrow_type, by_spark, differences, rendered
from tests.plan.dialects.conformance.language import typed, written

__all__ = ["tables"]

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


def compare(spark: Any, rows: pa.Table, table: str, chosen: list[Any], zone: str, guarded: bool) -> list[str]:
    """What differs between Spark on the user's text, Spark on nearly's text, and the native kernel."""
    expressions = [typed(case, inputs.columns(table)) for case in chosen]
    texts = [text for case, each in zip(chosen, expressions, strict=True) for text in (written(case), rendered(each))]
    types, values = by_spark(spark, texts, f"conformance_{table}", ["id"])
    wrong = []
    for number, (found_type, found) in enumerate(Native(rows, zone).evaluate(expressions)):
        case, expression = chosen[number], expressions[number]
        spark_types = types[2 * number : 2 * number + 2]
        if spark_types != [str(expression.type)] * 2:
            wrong.append(f"{case}: Spark types it and the rendered text {spark_types}, nearly {expression.type}")
            continue
        if found_type is not None and found_type != arrow_type(expression.type, zone):
            wrong.append(f"{case}: native type {found_type} for {expression.type}")
        shown = rows.sort_by("id").select(sorted(columns_of(expression)) or ["id"]).to_pylist()
        results = zip(values[2 * number], values[2 * number + 1], found, strict=True)
        wrong += differences(case, results, shown, guarded)
    return wrong


@pytest.mark.parametrize("family", SUITE)
def test_family_agrees(family: str, spark: Any, tables: dict[str, pa.Table]) -> None:
    table, chosen = SUITE[family]
    wrong = compare(spark, tables[table], table, chosen, "UTC", guarded=family.startswith("guarded"))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("zone", ZONES)
def test_instants_agree_in_zone(zone: str, spark: Any, tables: dict[str, pa.Table]) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        wrong = compare(spark, tables["moments"], "moments", cases.INSTANTS, zone, guarded=True)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("zone", ZONES)
def test_texts_with_an_offset_are_the_same_instant_in_every_zone(zone: str, spark: Any, tables: dict[str, pa.Table]) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        chosen = [("cast", "stamp", "timestamp"), ("cast", "stamp", "timestamp_ntz"), ("cast", "moment", "timestamp_ntz")]
        wrong = compare(spark, tables["numerals"], "numerals", chosen, zone, guarded=False)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert not wrong, "\n".join(wrong)


def every_expression() -> list[Expression]:
    every = [typed(case, inputs.columns(table)) for table, chosen in SUITE.values() for case in chosen]
    return [part for expression in every for part in walk(expression)]


def test_every_native_function_has_a_case() -> None:
    assert set(native.FUNCTIONS) <= {each.function for each in every_expression() if isinstance(each, Call)}


def test_every_native_cast_has_a_case() -> None:
    assert set(native_casts.CONVERSIONS) <= {native_casts.pair(each) for each in every_expression() if isinstance(each, Cast)}
