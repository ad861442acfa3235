"""What an OR over two tables implies for one of them."""

from __future__ import annotations

import pytest

from nearly.plan.expressions import Call, Column, Expression, Literal, chain, chained, conjuncts
from nearly.plan.nodes import Field, Filter, Scan
from nearly.plan.types import BOOLEAN, LONG
from nearly.rewrite.logical import factor_or as module
from nearly.rewrite.logical.factor_or import factor_or, implied

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


def test_a_long_chain_is_not_taken_apart_for_each_of_its_beginnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the first two branches share nothing, the others need not be looked at: their number must not be squared."""
    looked = 0

    def counted(predicate: Expression | None) -> tuple[Expression, ...]:
        nonlocal looked
        looked += 1
        return conjuncts(predicate)

    monkeypatch.setattr(module, "conjuncts", counted)
    tests = [_is(A, value) for value in range(100)]
    plan = Filter(Scan("t", (Field("a", "a", LONG),)), chained(tests, "or"))
    assert factor_or(plan) is plan
    assert looked <= 3 * len(tests)


def test_what_all_branches_of_a_long_chain_share_comes_out() -> None:
    tests = [_and(_is(B, 7), _is(A, value)) for value in range(50)]
    plan = factor_or(Filter(Scan("t", (Field("a", "a", LONG), Field("b", "b", LONG))), chained(tests, "or")))
    assert isinstance(plan, Filter)
    shared, rest = conjuncts(plan.predicate)
    assert shared == _is(B, 7)
    assert chain(rest, "or") == tuple(_is(A, value) for value in range(50))
