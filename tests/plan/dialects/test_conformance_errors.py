"""Where Spark's ANSI mode raises, the native kernel raises too: it never answers with a value or a null instead."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from nearly.plan.dialects import native
from nearly.plan.types import to_arrow
from tests.fixtures.quick_spark import quick_session
from tests.plan.dialects.conformance import inputs
from tests.plan.dialects.conformance.kernels import Native
from tests.plan.dialects.conformance.language import Number, Text, typed, written

LAST_INT, FIRST_INT, LAST_LONG, FIRST_LONG = 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)

NUMBERS: list[tuple[Any, dict[str, Any]]] = [
    (("+", "b", "b"), {"b": 127}),
    (("+", "i", "j"), {"i": LAST_INT, "j": 1}),
    (("+", "i", 1), {"i": LAST_INT}),
    (("-", "i", "j"), {"i": FIRST_INT, "j": 1}),
    (("*", "i", "j"), {"i": 65536, "j": 65536}),
    (("+", "l", "m"), {"l": LAST_LONG, "m": 1}),
    (("*", "l", "m"), {"l": 2**62, "m": 2}),
    (("neg", "i"), {"i": FIRST_INT}),
    (("neg", "l"), {"l": FIRST_LONG}),
    (("abs", "i"), {"i": FIRST_INT}),
    (("abs", "l"), {"l": FIRST_LONG}),
    (("/", "i", "j"), {"i": 1, "j": 0}),
    (("/", "d", "e"), {"d": 1.0, "e": 0.0}),
    (("/", "d", "e"), {"d": 0.0, "e": -0.0}),
    (("/", "n", "o"), {"n": Decimal("1.00"), "o": Decimal("0.0000")}),
    (("/", "n", 0), {"n": Decimal("1.00")}),
    (("div", "i", "j"), {"i": 1, "j": 0}),
    (("div", "n", "o"), {"n": Decimal("1.00"), "o": Decimal("0.0000")}),
    (("div", "l", "m"), {"l": FIRST_LONG, "m": -1}),
    (("%", "i", "j"), {"i": 1, "j": 0}),
    (("%", "d", "e"), {"d": 1.0, "e": 0.0}),
    (("%", "n", "o"), {"n": Decimal("1.00"), "o": Decimal("0.0000")}),
    (("%", "v", "o"), {"v": Decimal(1), "o": Decimal("0.0000")}),
    (("pmod", "i", "j"), {"i": 1, "j": 0}),
    (("pmod", "d", "e"), {"d": 1.0, "e": 0.0}),
    (("*", "v", "v"), {"v": Decimal(10**30)}),
    (("+", "v", "v"), {"v": Decimal("9" * 38)}),
    (("/", "v", "o"), {"v": Decimal("9" * 38), "o": Decimal("0.0001")}),
    (("ceil", "d"), {"d": 1e19}),
    (("floor", "d"), {"d": -1e19}),
    (("round", "i", -1), {"i": LAST_INT}),
    (("cast", "i", "tinyint"), {"i": 128}),
    (("cast", "l", "int"), {"l": 2**31}),
    (("cast", "i", "decimal(3,1)"), {"i": 100}),
    (("cast", "n", "decimal(4,2)"), {"n": Decimal("99.995")}),
    (("cast", "n", "tinyint"), {"n": Decimal("128.00")}),
    (("cast", "v", "bigint"), {"v": Decimal(10**20)}),
    (("cast", "d", "int"), {"d": 2147483648.0}),
    (("cast", "d", "int"), {"d": float("nan")}),
    (("cast", "d", "bigint"), {"d": float("inf")}),
    (("cast", "d", "bigint"), {"d": 1e19}),
    (("cast", "d", "decimal(4,2)"), {"d": 123.456}),
]
WORDS: list[tuple[Any, dict[str, Any]]] = [
    *((("cast", "s", "int"), {"s": text}) for text in ("", "x", "1.5", "1e3", "0x10", "1_000", "99999999999", "12a")),
    *((("cast", "s", "bigint"), {"s": text}) for text in ("", "1.5", "9223372036854775808")),
    *((("cast", "s", "double"), {"s": text}) for text in ("", "x", "1,5", "1_000", "0x10")),
    *((("cast", "s", "decimal(5,2)"), {"s": text}) for text in ("", "x", "1234.5")),
    *((("cast", "s", "boolean"), {"s": text}) for text in ("", "x", "2", "on")),
    *((("cast", "s", "date"), {"s": text}) for text in ("", "x", "2021-02-29", "2021-13-01", "20210101", "infinity")),
    *((("cast", "s", "timestamp"), {"s": text}) for text in ("", "x", "2021-02-29 00:00:00", "2021-01-01 25:00:00")),
    (("=", "s", 1), {"s": "one"}),
    (("+", "s", Number("1.5")), {"s": "one"}),
    (("split_part", "s", Text(","), 0), {"s": "a,b"}),
    (("<", "s", ("date", "2020-01-01")), {"s": "soon"}),
]
MOMENTS: list[tuple[Any, dict[str, Any]]] = [
    (("make_date", "k", 13, 1), {"k": 2020}),
    (("make_date", "k", 2, 29), {"k": 2021}),
]
CASES = [(table, *case) for table, chosen in (("numbers", NUMBERS), ("words", WORDS), ("moments", MOMENTS)) for case in chosen]


def one_row(table: str, values: dict[str, Any]) -> pa.Table:
    types = inputs.columns(table)
    arrays = {name: pa.array(inputs.scaled([value], types[name]), to_arrow(types[name])) for name, value in values.items()}
    return pa.table({**arrays, "id": pa.array([0], pa.int32())})


def test_native_raises_where_spark_raises(spark: Any) -> None:
    """One Spark query a case, on one row."""
    quick, quiet = quick_session(spark), []
    for table, case, values in CASES:
        row = one_row(table, values)
        assert spark_raises(quick, row, written(case)), f"Spark does not raise on {case} with {values}"
        text = native.expression(typed(case, inputs.columns(table))).sql(dialect="duckdb")
        try:
            found = Native(row).query([text], "input").to_pylist()
        except duckdb.Error:
            continue
        quiet.append(f"{case} with {values}: native gives {found}")
    assert not quiet, "\n".join(quiet)


def spark_raises(spark: Any, row: pa.Table, text: str) -> bool:
    from pyspark.errors import PySparkException

    try:
        spark.createDataFrame(row).selectExpr(text).collect()
    except PySparkException:
        return True
    return False


@pytest.mark.parametrize("setting", ["error_on_division_by_zero"])
def test_kernel_relies_on_default(setting: str) -> None:
    """Integer division by zero raises by DuckDB's default."""
    found = duckdb.connect().execute(f"SELECT current_setting('{setting}')").fetchone()
    assert found == (True,)
