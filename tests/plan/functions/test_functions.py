"""The function table types calls as Spark does, and both dialects spell them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal

import pytest

from nearly.errors import SchemaError, Unsupported
from nearly.plan import functions
from nearly.plan.dialects import native, spark
from nearly.plan.expressions import Call, Cast, Column, Expression, Literal, SortKey, WindowCall, WindowFrame
from nearly.plan.types import BOOLEAN, DATE, DOUBLE, INT, LONG, STRING, TIMESTAMP, decimal
from tests.plan.dialects.conformance.language import literal

MONEY = Column(decimal(15, 2), "price")
DISCOUNT = Column(decimal(15, 2), "discount")
WHOLE = Column(INT, "whole")
LARGE = Column(LONG, "large")
REAL = Column(DOUBLE, "real")
WORD = Column(STRING, "word")
DAY = Column(DATE, "day")
MOMENT = Column(TIMESTAMP, "moment")


def in_native(expression: Expression) -> str:
    return native.expression(expression).sql(dialect="duckdb")


def in_spark(expression: Expression) -> str:
    return spark.expression(expression).sql(dialect="spark")


@pytest.mark.parametrize(
    ("name", "arguments", "type_"),
    [
        ("-", [literal(1), DISCOUNT], "decimal(16,2)"),
        ("*", [MONEY, DISCOUNT], "decimal(31,4)"),
        ("*", [functions.number("100.00"), Column(decimal(38, 4), "total")], "decimal(38,6)"),
        ("/", [Column(decimal(38, 4), "a"), Column(decimal(38, 4), "b")], "decimal(38,6)"),
        ("/", [WHOLE, WHOLE], "double"),
        ("div", [WHOLE, WHOLE], "bigint"),
        ("%", [MONEY, WHOLE], "decimal(12,2)"),
        ("+", [WHOLE, LARGE], "bigint"),
        ("+", [MONEY, REAL], "double"),
        ("+", [DAY, WHOLE], "date"),
        ("-", [DAY, DAY], "interval day"),
        ("neg", [MONEY], "decimal(15,2)"),
        ("ceil", [MONEY], "decimal(14,0)"),
        ("round", [MONEY, literal(1)], "decimal(15,1)"),
        ("coalesce", [Column(decimal(8, 2), "a"), literal(0)], "decimal(12,2)"),
        ("nullif", [WHOLE, functions.number("1.5")], "int"),
        ("length", [WORD], "int"),
        ("year", [MOMENT], "int"),
    ],
)
def test_result_type(name: str, arguments: Sequence[Expression], type_: str) -> None:
    assert str(functions.call(name, arguments).type) == type_


@pytest.mark.parametrize(
    ("name", "argument", "type_"),
    [
        ("sum", WHOLE, "bigint"),
        ("sum", MONEY, "decimal(25,2)"),
        ("sum", REAL, "double"),
        ("avg", MONEY, "decimal(19,6)"),
        ("avg", Column(decimal(38, 10), "wide"), "decimal(38,14)"),
        ("mean", WHOLE, "double"),
        ("max", DAY, "date"),
        ("stddev_samp", WHOLE, "double"),
        ("median", MONEY, "double"),
        ("count", WORD, "bigint"),
    ],
)
def test_aggregate_type(name: str, argument: Expression, type_: str) -> None:
    assert str(functions.aggregate(name, [argument]).type) == type_


def test_cast_in_the_query_is_not_a_literal_to_narrow() -> None:
    """Spark narrows the literal 1 beside a decimal, but not CAST(1 AS BIGINT)."""
    one = functions.cast(literal(1), LONG)
    assert isinstance(one, Cast)
    assert str(functions.call("+", [one, DISCOUNT]).type) == "decimal(23,2)"


def test_constants_are_folded_for_scans() -> None:
    shifted = functions.call("-", [functions.date("1998-12-01"), functions.interval("90", "day")])
    assert shifted == Literal(DATE, dt.date(1998, 9, 2))
    last = functions.call("+", [functions.date("2020-01-31"), functions.interval("1", "month")])
    assert last == Literal(DATE, dt.date(2020, 2, 29))
    compared = functions.call("<=", [DAY, literal("1998-09-02")])
    assert compared == Call(BOOLEAN, "<=", (DAY, Literal(DATE, dt.date(1998, 9, 2))))


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("7", "int", 7),
        ("3000000000", "bigint", 3_000_000_000),
        ("9223372036854775808", "decimal(19,0)", Decimal(2**63)),
        ("1.50", "decimal(3,2)", Decimal("1.50")),
        (".5", "decimal(1,1)", Decimal("0.5")),
        ("1e3", "double", 1000.0),
    ],
)
def test_number_literal(text: str, type_: str, value: object) -> None:
    found = functions.number(text)
    assert (str(found.type), found.value) == (type_, value)


def test_unmodelled_functions_are_left_to_spark() -> None:
    with pytest.raises(Unsupported, match="'soundex' is not in nearly's verified set"):
        functions.call("soundex", [WORD])
    with pytest.raises(Unsupported):
        functions.aggregate("approx_count_distinct", [WHOLE])
    with pytest.raises(Unsupported):
        functions.call("+", [WORD, WORD])
    with pytest.raises(Unsupported):
        functions.cast(DAY, INT)
    assert functions.is_aggregate("COLLECT_LIST")
    assert functions.is_window("Row_Number")


def test_wrong_number_of_arguments() -> None:
    with pytest.raises(SchemaError, match="'round' takes 1 to 2 arguments, not 3"):
        functions.call("round", [REAL, WHOLE, WHOLE])


def test_decimals_stay_in_fast_operators() -> None:
    """The TPC-H revenue: no cast between the operators, one around the sum."""
    factor = functions.call("-", [literal(1), DISCOUNT])
    total = functions.aggregate("sum", [functions.call("*", [MONEY, factor])])
    assert in_native(total) == """CAST(SUM("price" * (CAST('1' AS DECIMAL(1, 0)) - "discount")) AS DECIMAL(38, 4))"""
    assert in_spark(total) == "SUM(`price` * (CAST('1' AS DECIMAL(1, 0)) - `discount`))"


def test_widening_a_decimal_leaves_the_column_bare() -> None:
    compared = functions.call(">", [DISCOUNT, Column(decimal(17, 2), "limit")])
    assert in_native(compared) == '"discount" > "limit"'


def test_nested_operators_keep_their_order() -> None:
    either = functions.call("or", [functions.call(">", [WHOLE, literal(1)]), functions.call("isnull", [REAL])])
    both = functions.call("and", [either, functions.call("not", [functions.call("=", [WHOLE, WHOLE])])])
    assert in_native(both) == '(("whole" > 1) OR ("real" IS NULL)) AND (NOT ("whole" = "whole"))'


def test_native_refuses_what_it_has_not_verified() -> None:
    for expression in (
        functions.call("rlike", [WORD, literal("a+")]),
        functions.call("initcap", [WORD]),
        functions.cast(REAL, STRING),
        functions.call("-", [DAY, DAY]),
        functions.cast(WORD, INT, safe=True),
    ):
        with pytest.raises(Unsupported):
            in_native(expression)
        assert in_spark(expression)


def test_like_escapes() -> None:
    assert in_native(functions.call("like", [WORD, literal("a%")])) == "\"word\" LIKE 'a%'"
    escaped = functions.call("like", [WORD, literal("a\\%")])
    assert in_native(escaped) == "\"word\" LIKE 'a\\%' ESCAPE '\\'"
    with pytest.raises(Unsupported, match="must stand before"):
        in_native(functions.call("like", [WORD, literal("a\\b")]))


def test_window_with_frame() -> None:
    total = functions.aggregate("sum", [WHOLE])
    over = WindowCall(total.type, total, (WORD,), (SortKey(DAY, ascending=False, nulls_first=False),), WindowFrame("rows", -2, 0))
    frame = "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"
    assert in_native(over) == f'CAST(SUM("whole") OVER (PARTITION BY "word" ORDER BY "day" DESC {frame}) AS BIGINT)'
    assert in_spark(over) == f"SUM(`whole`) OVER (PARTITION BY `word` ORDER BY `day` DESC {frame})"
    offset = WindowCall(total.type, total, (), (SortKey(DAY),), WindowFrame("range", -2, 0))
    with pytest.raises(Unsupported, match="RANGE"):
        in_native(offset)


def test_quoted_names_and_text() -> None:
    odd = functions.call("=", [Column(STRING, 'a"b`c'), literal("it's\\")])
    assert in_native(odd) == "\"a\"\"b`c\" = 'it''s\\'"
    assert in_spark(odd) == "`a\"b``c` = 'it\\'s\\\\'"
