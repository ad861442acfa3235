"""Small tables of tricky values; every column has a fixed type, so a case only names columns."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

from nearly.plan.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    decimal,
    to_arrow,
)

ROWS = 160
UTC = dt.UTC
_DATES = [
    dt.date(*parts)
    for parts in (
        (1, 1, 1),
        (4, 2, 29),
        (1582, 10, 4),
        (1582, 10, 15),
        (1899, 12, 31),
        (1900, 2, 28),
        (1969, 12, 31),
        (1970, 1, 1),
        (2000, 2, 29),
        (2000, 12, 31),
        (2004, 12, 31),
        (2015, 3, 31),
        (2016, 1, 3),
        (2020, 1, 31),
        (2020, 2, 29),
        (2021, 3, 14),
        (2021, 11, 7),
        (2023, 5, 30),
        (2024, 12, 30),
        (9998, 12, 31),
    )
]
_INSTANTS = [
    dt.datetime(*parts, tzinfo=UTC)
    for parts in (
        (1902, 1, 1, 0, 0, 0),
        (1969, 12, 31, 23, 59, 59, 999999),
        (1970, 1, 1),
        (1999, 12, 31, 23, 59, 59, 1),
        (2000, 2, 29, 12, 30, 15, 250000),
        (2021, 3, 14, 6, 59, 59),
        (2021, 3, 14, 7, 0, 0),
        (2021, 3, 14, 7, 30, 0, 500),
        (2021, 11, 7, 5, 30, 0),
        (2021, 11, 7, 6, 30, 0),
        (2021, 3, 28, 1, 0, 0),
        (2021, 10, 31, 0, 30),
        (2021, 11, 6, 5, 30, 0),
        (2021, 11, 8, 6, 30, 0),
        (2021, 3, 13, 7, 30, 0),
        (2021, 10, 7, 5, 30, 0),
        (2021, 1, 31, 4, 0, 0),
        (2024, 12, 31, 18, 45, 59, 123456),
        (2100, 7, 4, 0, 0, 1),
    )
]
_TEXTS = [
    "",
    " ",
    "a",
    "A",
    "abc",
    "ABC",
    "  padded  ",
    "trailing ",
    " leading",
    "a,b,,c",
    "aXbXa",
    "aaa",
    "x%y",
    "x_y",
    "x\\y",
    "\ttab",
    "line\nbreak",
    "é",
    "straße",
    "ǅungla",
    "İstanbul",
    "日本語",
    "🎉party",
    "e\u0301",
    "12",
    "-7",
    "true",
    "special requests",
    "PROMO BRUSHED",
    "forest green",
]

_NUMBERS: dict[str, tuple[DataType, list[Any]]] = {
    "b": (BYTE, [0, 1, -1, 7, -10, 11]),
    "h": (SHORT, [0, 1, -1, 99, -120, 150]),
    "i": (INT, [0, 1, -1, 7, -7, 15, 25, -25, 1004, -30000, 46341]),
    "j": (INT, [1, -1, 2, -2, 3, 7, -10, 1000]),
    "l": (LONG, [0, 1, -1, 5, 10**12, -(10**12) - 7, 2**40, 123456789012345]),
    "m": (LONG, [1, -1, 2, 3, -7, 10**9, -(10**9) - 7]),
    "f": (FLOAT, [0.0, -0.0, 1.5, -2.5, 0.1, 16777216.0, 3.4e38, float("nan"), float("inf"), float("-inf")]),
    "g": (FLOAT, [1.0, -1.0, 0.5, 3.0, 1e-30]),
    "d": (
        DOUBLE,
        [0.0, -0.0, 1.5, -1.5, 2.5, 0.1, -0.7, 1e15, 123456.789, 1e-300, float("nan"), float("inf"), float("-inf")],
    ),
    "e": (DOUBLE, [1.0, -1.0, 0.5, -2.5, 3.0, 7.25, 1e-10]),
    "c": (
        DOUBLE,
        [0.0, 0.5, 1.0, 2.0, 2.5, -1.0, -3.5, 10.0, 100.0, 1.005, -0.285, 2.675, 0.045, 99.995, -0.0004, 8.345e-5],
    ),
    "n": (
        decimal(15, 2),
        [
            Decimal(text)
            for text in (
                "0.00",
                "0.01",
                "-0.01",
                "1.00",
                "0.05",
                "2.50",
                "-2.50",
                "99999.99",
                "1234567.89",
                "-104949.50",
            )
        ],
    ),
    "o": (
        decimal(7, 4),
        [Decimal(text) for text in ("0.0001", "-0.0001", "1.0000", "3.0000", "-7.0000", "0.3333", "999.9999")],
    ),
    "p": (decimal(4, 0), [Decimal(text) for text in ("0", "1", "-1", "5", "15", "-25", "9999")]),
    "q": (
        decimal(25, 4),
        [Decimal(text) for text in ("0.0000", "0.0001", "1.5000", "-2.5000", "123456789012.3456", "-99999.9999")],
    ),
    "w": (
        decimal(38, 10),
        [Decimal(text) for text in ("0", "0.0000000001", "-0.0000000005", "1.5", "-123456.7890123455", "12345678901234.5")],
    ),
    "v": (decimal(38, 0), [Decimal(text) for text in ("0", "1", "-1", "3", "123456789012345678", "-987654321")]),
    "t": (BOOLEAN, [True, False]),
    "u": (BOOLEAN, [True, False]),
}
_EXTREMES: dict[str, tuple[DataType, list[Any]]] = {
    "b": (BYTE, [-128, 127, 0]),
    "h": (SHORT, [-(2**15), 2**15 - 1, 0]),
    "i": (INT, [-(2**31), 2**31 - 1, 0, -1]),
    "l": (LONG, [-(2**63), 2**63 - 1, 0, -1, 2**53 + 1]),
    "d": (DOUBLE, [float("nan"), float("inf"), float("-inf"), 1.7976931348623157e308, 5e-324, 0.0, -0.0]),
    "f": (FLOAT, [float("nan"), float("inf"), float("-inf"), 3.4028234663852886e38, 0.0, -0.0]),
    "n": (decimal(15, 2), [Decimal("9999999999999.99"), Decimal("-9999999999999.99"), Decimal("0.00")]),
    "v": (decimal(38, 0), [Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(0)]),
    "x": (decimal(38, 38), [Decimal("0." + "9" * 38), Decimal("-0." + "9" * 38), Decimal("0E-38")]),
}
_WORDS: dict[str, tuple[DataType, list[Any]]] = {
    "s": (STRING, _TEXTS),
    "r": (STRING, ["", "a", "b", "X", ",", " ", "日", "aa", "%", "\u0301"]),
    "k": (INT, [-4, -1, 0, 1, 2, 3, 5, 12]),
}
_NUMERALS: dict[str, tuple[DataType, list[Any]]] = {
    "whole": (STRING, ["0", "-0", "7", "+12", "-30000", "007", "46341"]),
    "point": (STRING, ["0", "-0.0", "1.5", "1.005", "-1.005", "2.", "0.125", "99999.995"]),
    "science": (STRING, ["0", "1e3", "-1.5E-3", "2.", "0.1", "12345678.9"]),
    "day": (STRING, ["2020-02-29", "0001-01-01", "9999-12-31", "1970-01-01", "1582-10-10"]),
    "moment": (STRING, ["2020-02-29 23:59:59", "1970-01-01", "2021-07-04T01:02:03.5", "1900-01-01 00:00:00.000001"]),
    "stamp": (
        STRING,
        ["2024-01-02T03:04:05Z", "2024-06-30 23:59:59.123456+05:30", "1969-12-31T23:59:59.5-17:59", "0999-02-28 00:00:00Z"],
    ),
    "truth": (STRING, ["true", "FALSE", "True"]),
}
_MOMENTS: dict[str, tuple[DataType, list[Any]]] = {
    "dt": (DATE, _DATES),
    "du": (DATE, _DATES),
    "ts": (TIMESTAMP, _INSTANTS),
    "tu": (TIMESTAMP, _INSTANTS),
    "tn": (TIMESTAMP_NTZ, [each.replace(tzinfo=None) for each in _INSTANTS]),
    "k": (INT, [-4, -1, 0, 1, 2, 3, 5, 12]),
}

TABLES = {
    "numbers": _NUMBERS,
    "extremes": _EXTREMES,
    "words": _WORDS,
    "numerals": _NUMERALS,
    "moments": _MOMENTS,
}


def columns(table: str) -> dict[str, DataType]:
    return {name: type_ for name, (type_, _) in TABLES[table].items()}


def rows(table: str) -> pa.Table:
    """Rows that pair the tricky values of each column with those of the others; about one in nine is null."""
    generator = random.Random(table)
    arrays = {}
    for name, (type_, values) in TABLES[table].items():
        drawn = [*values, None, *(generator.choice([*values, None]) for _ in range(ROWS - len(values) - 1))]
        generator.shuffle(drawn)
        arrays[name] = pa.array(scaled(drawn, type_), to_arrow(type_))
    arrays["id"] = pa.array(range(ROWS), pa.int32())
    return pa.table(arrays)


def scaled(values: list[Any], type_: DataType) -> list[Any]:
    """Arrow takes a decimal only in the very scale of its type."""
    scale = getattr(type_, "scale", None)
    if scale is None:
        return values
    return [None if value is None else _with_scale(value, scale) for value in values]


def _with_scale(value: Decimal, scale: int) -> Decimal:
    sign, digits, exponent = value.as_tuple()
    return Decimal((sign, (*digits, *([0] * (int(exponent) + scale))), -scale))
