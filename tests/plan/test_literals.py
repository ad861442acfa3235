"""Constants are the same where they are the same value, the sign of a zero included."""

from __future__ import annotations

from nearly.plan.expressions import Cast, Literal
from nearly.plan.types import DOUBLE, FLOAT, LONG, STRING


def test_zeros_differ_in_their_sign() -> None:
    assert Literal(DOUBLE, 0.0) != Literal(DOUBLE, -0.0)
    assert Literal(DOUBLE, [0.0]) != Literal(DOUBLE, [-0.0])
    assert Cast(FLOAT, Literal(DOUBLE, 0.0)) != Cast(FLOAT, Literal(DOUBLE, -0.0))
    assert len({Literal(DOUBLE, 0.0), Literal(DOUBLE, -0.0), Literal(DOUBLE, 0.0)}) == 2


def test_equal_constants_are_equal() -> None:
    assert Literal(LONG, 1) == Literal(LONG, 1)
    assert Literal(LONG, None) == Literal(LONG, None)
    assert Literal(STRING, "a") == Literal(STRING, "a")
    assert Literal(LONG, 1) != Literal(DOUBLE, 1.0)
    assert Literal(LONG, 1) != 1
    assert hash(Literal(DOUBLE, 1.5)) == hash(Literal(DOUBLE, 1.5))
