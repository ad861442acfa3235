"""Aggregates and window functions of the native kernel give what Spark SQL gives."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from nearly.plan.dialects import native
from nearly.plan.expressions import WindowCall
from tests.plan.dialects.conformance import inputs
from tests.plan.dialects.conformance.fixtures import tables
from tests.plan.dialects.conformance.groups import AGGREGATES, WINDOWS
from tests.plan.dialects.conformance.kernels import Native, arrow_type, by_spark, differences, plain, rendered

__all__ = ["tables"]

COLUMNS = inputs.columns("numbers") | {"id": inputs.INT}
FORMS = {
    "groups": ("{table} GROUP BY u", "{table} GROUP BY u ORDER BY u NULLS LAST", ["u"]),
    "everything": ("{table}", "{table}", []),
    "nothing": ("{table} WHERE FALSE", "{table} WHERE FALSE", []),
    "single rows": ("{table} GROUP BY id", "{table} GROUP BY id ORDER BY id", ["id"]),
}


def compare(spark: Any, rows: pa.Table, chosen: list[Any], spark_rest: str, native_rest: str, order: list[str]) -> list[str]:
    expressions = [case.typed(COLUMNS) for case in chosen]
    texts = [text for case, each in zip(chosen, expressions, strict=True) for text in (case.written(), rendered(each))]
    types, values = by_spark(spark, texts, spark_rest.format(table="conformance_numbers"), order)
    found = Native(rows).query(
        [native.expression(each).sql(dialect="duckdb") for each in expressions], native_rest.format(table="input")
    )
    wrong = []
    for number, (case, expression) in enumerate(zip(chosen, expressions, strict=True)):
        column = found.column(number)
        if types[2 * number : 2 * number + 2] != [str(expression.type)] * 2:
            wrong.append(f"{case.written()}: Spark types it {types[2 * number : 2 * number + 2]}, nearly {expression.type}")
        if column.type != arrow_type(expression.type, "UTC"):
            wrong.append(f"{case.written()}: native type {column.type} for {expression.type}")
        results = list(zip(values[2 * number], values[2 * number + 1], plain(column), strict=True))
        wrong += differences(case.written(), results, list(range(len(results))), guarded=False)
    return wrong


@pytest.mark.parametrize("form", FORMS)
def test_aggregates_agree(form: str, spark: Any, tables: dict[str, pa.Table]) -> None:
    wrong = compare(spark, tables["numbers"], AGGREGATES, *FORMS[form])
    assert not wrong, "\n".join(wrong)


def test_windows_agree(spark: Any, tables: dict[str, pa.Table]) -> None:
    wrong = compare(spark, tables["numbers"], WINDOWS, "{table}", "{table} ORDER BY id", ["id"])
    assert not wrong, "\n".join(wrong)


def test_every_native_aggregate_has_a_case() -> None:
    assert set(native.AGGREGATES) <= {case.typed(COLUMNS).function for case in AGGREGATES}


def test_every_native_window_function_has_a_case() -> None:
    calls = [case.typed(COLUMNS) for case in WINDOWS]
    assert set(native.WINDOWS) <= {getattr(each.call, "function", "") for each in calls if isinstance(each, WindowCall)}
