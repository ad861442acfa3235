"""Columns as coordinates: a range of constants holds exactly the values between them, and values come back from coordinates."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal as Number
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nearly
from nearly.plan import types
from nearly.plan.types import DataType, to_arrow
from nearly.synopsis.structure.domain import Domain
from nearly.synopsis.structure.rows import LOWEST, MISSING

NAN = math.nan
VALUES: dict[DataType, list[Any]] = {
    types.INT: [-(2**31), -1, 0, 5, 2**31 - 1],
    types.LONG: [-(2**53), -7, 0, 2**53 - 1, 2**53],
    types.decimal(9, 2): [Number("-3.10"), Number("0.00"), Number("0.07"), Number("12.50")],
    types.decimal(18, 4): [Number("-1.0001"), Number("0.5000"), Number("900719925474.0991")],
    types.DOUBLE: [-1e12, -0.1, 0.0, 0.1, 5.0, 1e12, NAN],
    types.FLOAT: [float(np.float32(each)) for each in (-2.5, 0.1, 3.0)] + [NAN],
    types.DATE: [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)],
    types.TIMESTAMP: [dt.datetime(1990, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)],
    types.TIMESTAMP_NTZ: [dt.datetime(1990, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1)],  # noqa: DTZ001  (it has no zone)
    types.BOOLEAN: [False, True],
}
BETWEEN = {
    types.INT: [Fraction(-3, 2), 4.5, 10**30, -math.inf, math.inf],
    types.LONG: [2**60, -0.5, math.inf],
    types.decimal(9, 2): [0.075, Number("12.505"), -5, 10**12],
    types.decimal(18, 4): [2**53, 0.50001],
    types.DOUBLE: [1, 10**400, -(10**400), math.inf, -math.inf, Number("0.25")],
    types.FLOAT: [0.1, 1e300, -math.inf],
    types.DATE: [dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)],
}


def key(value: Any) -> Any:
    """Values in Spark's order, NaN on top."""
    if isinstance(value, float):
        return (1, Fraction(0)) if math.isnan(value) else (0, value if math.isinf(value) else Fraction(repr(value)))
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    return (0, Fraction(value)) if isinstance(value, int | Number | Fraction) and not isinstance(value, bool) else value


@pytest.mark.parametrize("type_", list(VALUES), ids=str)
def test_oracle_a_range_holds_the_values_between_its_constants(type_: DataType) -> None:
    domain, values, draw = Domain("x", type_), VALUES[type_], random.Random(0)
    coordinates = domain.coordinates(pa.array([*values, None], to_arrow(type_)))
    assert coordinates[-1] == MISSING
    constants = [None, *values, *BETWEEN.get(type_, [])]
    for _ in range(300):
        low, high = draw.choice(constants), draw.choice(constants)
        first, last = domain.between(low, high)
        found = [first <= each <= last for each in coordinates]
        expected = [(low is None or key(low) <= key(each)) and (high is None or key(each) <= key(high)) for each in values]
        assert found == [*expected, False], (low, high)


@pytest.mark.parametrize("type_", list(VALUES), ids=str)
def test_law_values_come_back(type_: DataType) -> None:
    domain = Domain("x", type_)
    values = [each for each in VALUES[type_] if each == each]  # noqa: PLR0124  (NaN)
    for value, coordinate in zip(values, domain.coordinates(pa.array(values, to_arrow(type_))), strict=True):
        assert domain.value(coordinate) == value
        assert domain.between(value, value) == (coordinate, coordinate)
    assert domain.value(MISSING) is None


def test_texts_are_compared_for_equality() -> None:
    domain = Domain("t", types.STRING, ["b", "a"])
    assert (domain.between("a", "a"), domain.between("c", "c")) == ((1.0, 1.0), (math.inf, -math.inf))
    assert domain.between(None, None) == (LOWEST, math.inf)
    for low, high in (("a", "b"), (None, "a"), ("a", None)):
        with pytest.raises(nearly.Unsupported, match="equality only"):
            domain.between(low, high)
    for value in (3, True, dt.date(2024, 1, 1)):
        with pytest.raises(nearly.SchemaError, match="no value of it"):
            domain.between(value, value)
