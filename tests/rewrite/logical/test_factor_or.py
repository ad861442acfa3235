"""What an OR over two tables implies for one of them."""

from __future__ import annotations

from nearly.plan.expressions import Call, Column, Expression, Literal
from nearly.plan.types import BOOLEAN, LONG
from nearly.rewrite.logical.factor_or import implied

A, B = Column(LONG, "a"), Column(LONG, "b")
LEFT = frozenset({"a"})


def _is(column: Expression, value: int) -> Call:
    return Call(BOOLEAN, "=", (column, Literal(LONG, value)))


def _and(one: Expression, other: Expression) -> Call:
    return Call(BOOLEAN, "and", (one, other))


def _or(one: Expression, other: Expression) -> Call:
    return Call(BOOLEAN, "or", (one, other))


def test_every_branch_must_say_something_about_the_side() -> None:
    assert implied(_or(_and(_is(A, 1), _is(B, 2)), _and(_is(A, 3), _is(B, 4))), LEFT) == _or(_is(A, 1), _is(A, 3))
    assert implied(_or(_and(_is(A, 1), _is(B, 2)), _is(B, 4)), LEFT) is None
    assert implied(_is(A, 1), LEFT) is None


def test_tests_that_may_fail_on_other_rows_are_not_moved() -> None:
    risky = _is(Call(LONG, "div", (Literal(LONG, 1), A)), 1)
    assert implied(_or(_and(_is(A, 1), _is(B, 2)), _and(risky, _is(B, 4))), LEFT) is None
