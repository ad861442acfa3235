"""Programmes at their limits: rows without limit, huge numbers, a solver that finds no time."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from nearly import Constraint
from nearly.algebra.boxes import EVERYWHERE
from nearly.missing.programmes.aggregate_range import AggregateRange, Ranger
from nearly.missing.programmes.allocation import Allocation, Independent, Programme
from nearly.missing.programmes.cells import Cell, TimeLimit, decompose
from nearly.missing.programmes.conflicts import refuse_conflicts
from nearly.missing.programmes.effects import MissingMeasure, RangeQuestion
from nearly.missing.programmes.problem import Problem
from nearly.missing.range_answer import KnownAggregate
from nearly.missing.statements.bound_set import bind_constraints, region_of
from nearly.plan.expressions import Column
from nearly.plan.schema import SchemaColumn, TableSchema
from nearly.plan.types import DOUBLE, INT
from nearly.plan.values.ranges import Extent
from nearly.plan.values.regions import Regions, RowSpace

SPACE = RowSpace.of(TableSchema("t", (SchemaColumn("n", INT), SchemaColumn("x", DOUBLE))), "UTC")


def asked(
    function: str, constraints: list[Constraint], where: str = "TRUE", certain: Any = (0, 0), column: str = "n"
) -> AggregateRange:
    measure = MissingMeasure(Regions(SPACE, {"n": "n", "x": "x"}), Column(SPACE.domains[column].type, column))
    known = KnownAggregate(Extent(certain[0], certain[0]), Extent(certain[0], certain[0]), Extent(certain[1], certain[1]))
    return Ranger(Problem(bind_constraints(constraints, SPACE)), TimeLimit(20))(
        function, RangeQuestion(region_of(where, SPACE), measure), known
    )


OVERLAP = [Constraint("n >= 0 and n < 10", rows=(0, 2**60)), Constraint("n >= 5 and n < 20", rows=(2**59, 2**61))]


def test_greedy_is_what_the_programme_says() -> None:
    cells = tuple(Cell((place,), EVERYWHERE) for place in range(3))
    low, high = (1, 0, 2), (4, 5, 2)
    for gains in ([3, -2, 5], [-1, -1, -1], [0, 7, -3]):
        greedy = Independent(low, high).best(gains)
        solved = Programme(cells, low, high, TimeLimit()).best(gains)
        assert (greedy.bound, solved.bound) == (sum(max(g * h, g * lo) for g, lo, h in zip(gains, low, high, strict=True)),) * 2


def test_rows_without_limit() -> None:
    constraints = [Constraint("n >= 0 and n <= 9", rows=(2, None)), Constraint("n >= 5 and n <= 12", rows=(0, 3))]
    assert (asked("sum", constraints).low, asked("sum", constraints).high) == (0, None)
    found = asked("avg", constraints, certain=(100, 1))
    assert (found.low, found.high) == (0, Fraction(100 + 2 * 9, 1 + 2))
    assert not found.end("low").proven, "many rows of 0 draw the average as near to 0 as one likes, and never to it"
    assert asked("max", constraints).high == 12


def test_values_without_limit() -> None:
    constraints = [Constraint("n = 1", rows=(0, 3)), Constraint("n <= 2 and n >= 0", x=(None, 5.0), rows=(0, 4))]
    assert (asked("sum", constraints, column="x").low, asked("sum", constraints, column="x").high) == (None, 20)
    assert (asked("avg", constraints, column="x").low, asked("avg", constraints, column="x").high) == (None, 5)


def test_huge_numbers_of_rows_stay_inside_the_range() -> None:
    found = asked("sum", OVERLAP)
    assert found.high is not None
    exact = 19 * 2**61 + 4 * 2**60
    assert exact <= found.high <= exact * (1 + 1e-6)
    assert found.low is not None
    assert 0 <= found.low <= 5 * 2**59


def test_a_solver_without_an_answer_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time ran out before the solver found anything: the range stays valid, and no conflict is claimed."""

    class Nothing:
        x = None
        status = 1
        mip_dual_bound = None

    constraints = [Constraint("n >= 0 and n < 10", rows=(1, 4)), Constraint("n >= 5 and n < 20", rows=(1, 4))]
    exact = {function: asked(function, constraints) for function in ("sum", "avg", "min", "max")}
    monkeypatch.setattr("nearly.missing.programmes.allocation.integer_minimum", lambda *_, **__: Nothing())
    refuse_conflicts(Problem(bind_constraints(constraints, SPACE)), TimeLimit(5))
    for function, truth in exact.items():
        found = asked(function, constraints)
        assert found.low is None or found.low <= truth.low
        assert found.high is None or found.high >= truth.high
        assert not found.is_tight


def test_twenty_overlapping_constraints_test_few_conjunctions() -> None:
    """Of more than a million combinations of 20 predicates, fewer than one in a thousand is ever looked at."""
    constraints = [
        Constraint(f"n >= {5 * place} and n < {5 * place + 60} and x >= {place % 4} and x < {place % 4 + 9}") for place in range(20)
    ]
    found = decompose(bind_constraints(constraints, SPACE).constraints, EVERYWHERE, SPACE.everything)
    assert len({cell.members for cell in found.cells}) == len(found.cells)
    assert found.nodes < 2**20 / 1000
    assert not any(cell.doubtful for cell in found.cells)


def test_allocation_of_nothing() -> None:
    assert Independent((), ()).best([]) == Allocation(0, ())
    assert Programme((), (), (), TimeLimit()).best([]) == Allocation(0, ())
