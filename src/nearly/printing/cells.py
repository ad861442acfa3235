"""One value of a table, with its bounds, as text."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from nearly.printing.characters import cut, visible
from nearly.printing.numbers import estimate_text, number_text

NULL = "NULL"
UNKNOWN_INTERVAL = "± ?"
LONGEST_TEXT = 40


@dataclass(frozen=True, slots=True)
class CellText:
    """What is shown of one value: the value, the interval beside it, and how the value has moved."""

    value: str
    interval: str = ""
    history: str = ""
    null: bool = False


def cell(value: Any, low: Any, high: Any, decimals: int | None = None, *, year: bool = False) -> CellText:
    """A value and its bounds; equal bounds show nothing, bounds that are withheld a question mark. `decimals` is for doubles.

    The digits of a `year` stand together.

    >>> cell(1000, 1000, 1000), cell("a", None, None)
    (CellText(value='1,000', interval='', history='', null=False), CellText(value='a', interval='± ?', history='', null=False))
    """
    if value is None:
        return CellText(NULL, null=True)
    known = number_text(value, decimals) if isinstance(value, float) else str(value) if year else value_text(value)
    if certain(value, low, high):
        return CellText(known)
    if low is None or high is None:
        return CellText(known, UNKNOWN_INTERVAL)
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        estimate = estimate_text(value, low, high)
        return CellText(estimate.value, estimate.interval)
    return CellText(known, f"[{value_text(low)}, {value_text(high)}]")


def certain(value: Any, low: Any, high: Any) -> bool:
    """Whether both bounds are the value; of a null nothing is shown as uncertain."""
    return value is None or (_same(value, low) and _same(value, high))


def some_uncertain(values: Iterable[Any], lows: Iterable[Any], highs: Iterable[Any]) -> bool:
    """Whether the bounds of some value are not the value."""
    return any(not certain(*each) for each in zip(values, lows, highs, strict=True))


def is_year(name: str, type_: pa.DataType) -> bool:
    """Whether a column holds years, by its name.

    >>> [is_year(name, pa.int32()) for name in ("year", "birth_year", "year(born)", "yearly_sum", "n")]
    [True, True, True, False, False]
    """
    return bool(pa.types.is_integer(type_)) and re.search(r"(?<![a-z])(year|yr|yyyy|jahr|année)(?![a-z])", name.lower()) is not None


def is_numeric(type_: pa.DataType) -> bool:
    """Whether values of an Arrow type are numbers, which are aligned right."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def value_text(value: Any) -> str:
    """Any value that Arrow hands to Python, on one line and not too long.

    >>> value_text(True), value_text(b"\\x00a"), value_text(dt.date(2024, 2, 29)), value_text([1, None])
    ('true', "X'0061'", '2024-02-29', '[1, NULL]')
    """
    return cut(visible(_text(value)), LONGEST_TEXT)


def _text(value: Any) -> str:
    match value:
        case None:
            return NULL
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return number_text(value)
        case bytes():
            return f"X'{value[:LONGEST_TEXT].hex().upper()}'"
        case dt.datetime():
            return value.isoformat(sep=" ")
        case list():
            return "[" + ", ".join(_text(each) for each in value[:LONGEST_TEXT]) + "]"
        case dict():
            return "{" + ", ".join(f"{key}: {_text(each)}" for key, each in value.items()) + "}"
        case tuple():
            return ": ".join(_text(each) for each in value)
    return str(value)


def _same(value: Any, bound: Any) -> bool:
    if isinstance(value, float) and isinstance(bound, float) and math.isnan(value):
        return math.isnan(bound)
    return bool(value == bound)
