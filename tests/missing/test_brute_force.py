"""Ranges equal brute force: for thousands of random constraint sets all instances are enumerated."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from nearly.algebra.boxes import Region
from nearly.errors import ConstraintError
from nearly.missing.programmes.aggregate_range import AggregateRange, Ranger
from nearly.missing.programmes.cells import TimeLimit, decompose
from nearly.missing.programmes.conflicts import refuse_conflicts
from nearly.missing.programmes.effects import MissingMeasure, RangeQuestion
from nearly.missing.programmes.problem import Problem
from nearly.missing.range_answer import KnownAggregate
from nearly.missing.statements.bound_set import bind_constraints, region_of
from nearly.plan.expressions import Column
from nearly.plan.values.ranges import Extent
from nearly.plan.values.regions import Regions, RowSpace
from tests.fixtures.long import first_quick
from tests.missing.oracle import ROWS, SCHEMA, Row, Statement, aggregate, instances, predicate, statement

SPACE = RowSpace.of(SCHEMA, "UTC")
FUNCTIONS = ("sum", "count", "count(*)", "avg", "min", "max")
SETS_PER_SEED = 200


def measure(function: str) -> MissingMeasure:
    column = None if function == "count(*)" else Column(SPACE.domains["a"].type, "a")
    return MissingMeasure(Regions(SPACE, {"a": "a", "g": "g"}), column)


def certain_part(function: str, rows: list[Row]) -> KnownAggregate:
    name = function.removesuffix("(*)")
    counted = [(row, 1) for row in rows]

    def exactly(value: Any) -> Extent:
        return Extent(value, value)

    total, count = aggregate("sum", True, counted), aggregate("count", True, counted)
    return KnownAggregate(exactly(aggregate(name, function != "count(*)", counted)), exactly(total), exactly(count))


def computed(problem: Problem, function: str, region: Region, rows: list[Row]) -> AggregateRange:
    question = RangeQuestion(region, measure(function))
    return Ranger(problem, TimeLimit(60))(function.removesuffix("(*)"), question, certain_part(function, rows))


def value(found: Any, function: str) -> Fraction | None:
    return None if found is None else Fraction(found, 10) if function in ("min", "max") else Fraction(found)


def expected(function: str, worlds: list[dict[Row, int]], holds: Any, rows: list[Row]) -> tuple[Any, Any]:
    values = []
    for world in worlds:
        chosen = [(row, count) for row, count in world.items() if holds(row) is True] + [(row, 1) for row in rows]
        values.append(aggregate(function.removesuffix("(*)"), function != "count(*)", chosen))
    known = [each for each in values if each is not None]
    return (min(known), max(known)) if known else (None, None)


@pytest.mark.parametrize("seed", first_quick(range(10), 1))
def test_oracle_range_is_the_range_of_all_instances(seed: int) -> None:
    """2,000 constraint sets in all, six aggregates each, with and without certain rows: both ends are exactly right."""
    draw = random.Random(seed)
    checked = 0
    while checked < SETS_PER_SEED:
        statements: list[Statement] = [statement(draw) for _ in range(draw.randrange(1, 4))]
        where = predicate(draw)
        problem = Problem(bind_constraints([each.given for each in statements], SPACE))
        worlds = list(instances(statements))
        if not worlds:
            with pytest.raises(ConstraintError):
                refuse_conflicts(problem, TimeLimit(60))
            continue
        checked += 1
        refuse_conflicts(problem, TimeLimit(60))
        present = draw.choices(ROWS, k=draw.randrange(3))
        rows = [row for row in present if where.holds(row) is True]
        region = region_of(where.text, SPACE)
        for function in FUNCTIONS:
            found = computed(problem, function, region, rows)
            ends = value(found.low, function), value(found.high, function)
            assert ends == expected(function, worlds, where.holds, rows), (function, statements, where.text, rows)
            assert found.is_tight


@pytest.mark.parametrize("seed", first_quick(range(3), 1))
def test_stopping_early_gives_a_wider_range(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for two cells only, the rest of the search becomes doubtful cells: every instance stays inside the range."""
    monkeypatch.setattr("nearly.missing.programmes.problem.decompose", partial(decompose, most=2))
    draw = random.Random(100 + seed)
    looser = 0
    for _ in range(60):
        statements = [statement(draw) for _ in range(4)]
        where = predicate(draw)
        worlds = list(instances(statements))
        if not worlds:
            continue
        problem = Problem(bind_constraints([each.given for each in statements], SPACE))
        for function in FUNCTIONS:
            found = computed(problem, function, region_of(where.text, SPACE), [])
            low, high = (value(end, function) for end in (found.low, found.high))
            least, greatest = expected(function, worlds, where.holds, [])
            assert least is None or low is None or low <= least, (function, statements, where.text)
            assert greatest is None or high is None or high >= greatest, (function, statements, where.text)
            looser += (low, high) != (least, greatest)
            assert (low, high) == (least, greatest) or not found.is_tight
    assert looser > 0


def test_no_time_at_all_still_gives_a_range() -> None:
    """SUM and COUNT under a time limit that is over before it begins."""
    draw = random.Random(5)
    for _ in range(40):
        statements = [statement(draw) for _ in range(3)]
        worlds = list(instances(statements))
        problem = Problem(bind_constraints([each.given for each in statements], SPACE))
        for function in ("sum", "count") if worlds else ():
            question = RangeQuestion(region_of("TRUE", SPACE), measure(function))
            found = Ranger(problem, TimeLimit(0))(function, question, certain_part(function, []))
            least, greatest = expected(function, worlds, lambda _: True, [])
            assert found.low is None or found.low <= least
            assert found.high is None or found.high >= greatest
