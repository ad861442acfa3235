"""Values of columns: rounding to types, domains and ranges of constants, against exact arithmetic."""

from __future__ import annotations

import datetime as dt
import doctest
import math
import operator
import random
from collections.abc import Callable
from decimal import Decimal as Number
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import nearly
from nearly.algebra.ordered_sets import OrderedSet
from nearly.plan.expressions import Call, Cast, Column, Expression, Literal
from nearly.plan.functions import call
from nearly.plan.functions.casting import cast
from nearly.plan.schema import SchemaColumn, TableSchema
from nearly.plan.types import BOOLEAN, DATE, DOUBLE, FLOAT, INT, LONG, SHORT, TIMESTAMP, DataType, decimal
from nearly.plan.values import rounding
from nearly.plan.values.domains import domain_of, keeps_values
from nearly.plan.values.regions import Regions, RowSpace
from nearly.plan.values.rounding import DOWN, NEAREST, UP, rounded, typed, typed_array

MONEY = decimal(9, 2)
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne,
}  # fmt: skip


@pytest.mark.parametrize("type_", [INT, LONG, MONEY, DOUBLE, FLOAT], ids=str)
def test_law_rounding_goes_where_it_is_told(type_: DataType) -> None:
    draw = random.Random(0)
    for _ in range(300):
        value = Fraction(draw.randrange(-(10**9), 10**9), draw.choice([1, 2, 3, 7, 8, 100, 1000]))
        low, near, high = (Fraction(rounded(value, type_, towards) or 0) for towards in (DOWN, NEAREST, UP))
        assert low <= value <= high
        assert near in (low, high)
        assert abs(near - value) == min(value - low, high - value)
        assert [rounded(low, type_, each) for each in (DOWN, NEAREST, UP)] == [low] * 3


def test_what_a_type_cannot_hold_is_none() -> None:
    assert [typed(value, SHORT) for value in (2**15 - 1, 2**15, -(2**15), math.inf, math.nan)] == [
        2**15 - 1,
        None,
        -(2**15),
        None,
        None,
    ]
    assert (typed(Fraction(99999, 1000), decimal(4, 2), UP), typed(99, decimal(4, 2))) == (None, Number("99.00"))
    assert (typed(10**400, DOUBLE), typed(1e300, FLOAT), typed("text", INT), typed(dt.date(2024, 1, 1), DATE)) == (
        None, None, "text", dt.date(2024, 1, 1),
    )  # fmt: skip
    values = np.array([1.5, -1.5, math.nan, 1e30])
    assert [typed_array(values, LONG, each).to_pylist() for each in (DOWN, UP)] == [[1, -2, None, None], [2, -1, None, None]]
    assert typed_array(values, MONEY, DOWN).to_pylist() == [Number("1.50"), Number("-1.50"), None, None]
    assert doctest.testmod(rounding).failed == 0


@pytest.mark.parametrize(
    ("source", "target", "kept"),
    [
        (INT, LONG, True), (LONG, INT, False), (INT, DOUBLE, True), (LONG, decimal(10, 0), False), (INT, decimal(10, 0), True),
        (MONEY, decimal(12, 3), True), (MONEY, decimal(9, 3), False), (MONEY, DOUBLE, True), (decimal(18, 2), DOUBLE, False),
        (FLOAT, DOUBLE, True), (DOUBLE, FLOAT, False), (DOUBLE, INT, False),
    ],
)  # fmt: skip
def test_casts_that_keep_values_apart(source: DataType, target: DataType, kept: bool) -> None:
    assert keeps_values(Cast(target, Column(source, "x"))) == kept


SPACE = RowSpace.of(
    TableSchema(
        "t",
        tuple(SchemaColumn(name, type_) for name, type_ in {"n": INT, "big": LONG, "m": MONEY, "f": FLOAT, "x": DOUBLE}.items()),
    ),
    "UTC",
)


def side(predicate: Expression, column: str) -> OrderedSet:
    regions = Regions(SPACE, {name: name for name in SPACE.domains})
    return regions.true(predicate)[0].sides[column] if regions.true(predicate) else OrderedSet(())


def column(name: str) -> Column:
    return Column(SPACE.domains[name].type, name)


def test_constants_are_cast_before_they_are_compared() -> None:
    """`n = cast(2.7 as int)` is n = 2, and `f = cast(0.1 as float)` is what a float holds of 0.1."""
    assert side(call("=", [column("n"), cast(Literal(decimal(2, 1), Number("2.7")), INT)]), "n") == OrderedSet(((2, 3),))
    found = side(call("=", [column("f"), cast(Literal(decimal(2, 1), Number("0.1")), FLOAT)]), "f")
    assert SPACE.domains["f"].value(found.first) == float(np.float32(0.1))


def test_what_is_rounded_is_refused() -> None:
    """Comparisons that Spark makes in doubles, or with digits cut off, are no linear comparisons."""
    one = Literal(DOUBLE, 1.0)
    wide = Literal(decimal(2, 1), Number("1.5"))
    for predicate in (
        call("<", [column("big"), one]),
        call("<", [cast(column("big"), DOUBLE), cast(column("n"), DOUBLE)]),
        call("<", [call("+", [cast(column("n"), DOUBLE), one]), cast(column("m"), DOUBLE)]),
        Call(BOOLEAN, "<", (Call(decimal(10, 1), "*", (wide, column("m"))), column("n"))),
        call("<", [cast(column("big"), INT, safe=True), Literal(INT, 5)]),
    ):
        with pytest.raises(nearly.Unsupported):
            side(predicate, "n")


@pytest.mark.parametrize("type_", [INT, LONG, MONEY, DOUBLE, FLOAT, DATE, TIMESTAMP, BOOLEAN], ids=str)
def test_oracle_sets_of_values_are_those_that_compare(type_: DataType) -> None:
    """Values of a type, and constants that may lie between them."""
    domain, draw = domain_of(type_, "UTC", "x"), random.Random(1)
    for _ in range(60):
        middle = 0 if type_ in (DOUBLE, FLOAT) else (domain.first + domain.end) // 2
        ranks = [min(max(middle + draw.randrange(-3, 4), domain.first), domain.end - 1) for _ in range(3)]
        constant = domain.value(ranks[0])
        if type_ in (INT, LONG, MONEY) and draw.random() < 0.5:
            constant = Fraction(constant) + Fraction(1, 1000)
        for name, found in (
            ("<", domain.below),
            ("<=", domain.at_most),
            (">", domain.above),
            (">=", domain.at_least),
            ("=", domain.equal),
            ("<>", domain.unequal),
        ):
            for rank in ranks:
                value = domain.value(rank)
                number = Fraction(value) if isinstance(constant, Fraction) else value
                assert (rank in found(constant)) == COMPARE[name](number, constant)
