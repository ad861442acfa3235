"""Numbers as text: readable, and never an interval that is narrower than the one that is meant."""

from __future__ import annotations

import doctest
import importlib
import math
import re
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearly.printing.numbers import duration_text, estimate_text, number_text, percent_text

MODULES = (
    "printing.cells", "printing.characters", "printing.numbers", "printing.plain", "display.status", "display.trail", "cli.lake",
    "cli.settings",
)  # fmt: skip
FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20),
    FINITE,
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**12), max_value=10**12),
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"nearly.{name}"))
    assert found.attempted
    assert not found.failed


@settings(max_examples=400, deadline=None, derandomize=True)
@given(NUMBERS, NUMBERS, NUMBERS)
def test_law_the_shown_interval_contains_the_meant_one(first: float, second: float, third: float) -> None:
    kind = type(first)
    low, value, high = sorted((kind(first), kind(second), kind(third)))
    if low == high:
        return
    shown = estimate_text(value, low, high)
    middle = read(shown.value)
    if shown.interval.startswith("±"):
        half = read(shown.interval.removeprefix("± "))
        ends = (middle - half, middle + half)
    else:
        ends = tuple(read(each) for each in shown.interval.strip("[]").split(", "))
    assert ends[0] <= Decimal(low)
    assert ends[1] >= Decimal(high)


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (1_000_000, 900_000, 1_100_000, "1,000,000 ± 100,000"),
        (7, 6, 8, "7 ± 1"),
        (Decimal("12.34"), Decimal("12.30"), Decimal("12.38"), "12.340 ± 0.040"),
        (0.5, 0.5 - 1e-7, 0.5 + 1e-7, "0.50000000 ± 0.00000011"),
        (5.0, 5.0, math.inf, "5 [5, Infinity]"),
        (-3.0, -3.5, -2.5, "-3.00 ± 0.50"),
        (0, 0, 100, "0 [0, 100]"),
    ],
)
def test_estimates(value: float, low: float, high: float, expected: str) -> None:
    shown = estimate_text(value, low, high)
    assert f"{shown.value} {shown.interval}" == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0"), (-0.5, "-0.5"), (1e300, "1e+300"), (1e-9, "1e-09"), (1 / 3, "0.33333333"), (2**60, "1,152,921,504,606,846,976"),
        (-math.inf, "-Infinity"), (Decimal("-0.10"), "-0.10"), (Decimal("NaN"), "NaN"), (123456789.123, "123,456,789"),
    ],
)  # fmt: skip
def test_known_numbers(value: float, expected: str) -> None:
    assert number_text(value) == expected


def test_shares_and_durations_at_their_ends() -> None:
    assert [percent_text(each) for each in (0.0, 1.0, 0.0999, math.nan)] == ["0 %", "100 %", "10.0 %", "?"]
    assert [duration_text(each) for each in (0.0, 59.7, 3599.9)] == ["0.0 s", "1 min 0 s", "1 h 0 min"]


def read(text: str) -> Decimal:
    """The number that a reader reads."""
    assert re.fullmatch(r"-?[\d,]+(\.\d+)?|-?\d(\.\d+)?e[+-]\d+", text), text
    return Decimal(text.replace(",", ""))
