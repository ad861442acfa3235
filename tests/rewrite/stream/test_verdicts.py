"""What is known of tests on values that may still move: never wrong, whatever the values in the ranges are."""

from __future__ import annotations

import itertools
import random

import duckdb
import pytest
from sqlglot import exp

from nearly.plan.expressions import Call, Column, Expression, Literal
from nearly.plan.nodes import Input, Output, Project
from nearly.plan.render import NATIVE, render
from nearly.plan.types import BOOLEAN, DOUBLE
from nearly.rewrite.stream.verdicts import UNKNOWN, Verdict, compared, verdict

OWN = (Column(DOUBLE, "a"), Column(DOUBLE, "b"))
MOVING = (Column(DOUBLE, "u"), Column(DOUBLE, "w"))
ENDS = {each.name: (Column(DOUBLE, f"low_{each.name}"), Column(DOUBLE, f"high_{each.name}")) for each in MOVING}


def leaf(test: Call) -> Verdict:
    if len(test.arguments) != 2:
        return UNKNOWN
    own, moving = test.arguments
    assert isinstance(moving, Column)
    return compared(own, test.function, *ENDS[moving.name])


def drawn(rng: random.Random, depth: int) -> Expression:
    """A random test of own values and moving ones."""
    if depth and rng.random() < 0.8:
        match rng.choice(("and", "or", "not")):
            case "not":
                return Call(BOOLEAN, "not", (drawn(rng, depth - 1),))
            case function:
                return Call(BOOLEAN, function, (drawn(rng, depth - 1), drawn(rng, depth - 1)))
    operator = rng.choice(("<", "<=", ">", ">=", "=", "<>"))
    own = rng.choice((*OWN, Literal(DOUBLE, float(rng.randrange(5)))))
    other = rng.choice((*MOVING, *MOVING, *OWN))
    return Call(BOOLEAN, operator, (own, other))


@pytest.mark.parametrize("seed", range(40))
def test_law_what_is_sure_holds_and_what_is_never_does_not(seed: int) -> None:
    """For every value in the ranges, ends included, on a grid of small numbers and nulls."""
    rng = random.Random(seed)
    test = drawn(rng, 3)
    found = verdict(test, frozenset(each.name for each in OWN), leaf)
    rows = Input("rows", (*OWN, *MOVING, *(end for ends in ENDS.values() for end in ends)))
    outputs = (Output("test", test), Output("sure", found.sure), Output("never", found.never))
    query = render(Project(rows, outputs), NATIVE, lambda _: exp.Table(this=exp.to_identifier("rows", quoted=True)))
    connection = duckdb.connect()
    connection.execute(_grid())
    told = connection.sql(f"select test, sure, never, count(*) from ({query}) group by all").fetchall()
    assert all(sure is not None and never is not None for _, sure, never, _ in told)
    assert not [row for row in told if row[1] and row[0] is not True]
    assert not [row for row in told if row[2] and row[0] is True]


def _grid() -> str:
    values = "(values (null::double), (0.0), (1.0), (2.0), (3.0))"
    inside = "select l.v as low, h.v as high, m.v as moving from n l, n h, n m where l.v <= m.v and m.v <= h.v"
    ranges = f"({inside} union all select null, null, v from n)"
    return (
        f"create table rows as with n as (select * from {values} t(v)), r as {ranges} "
        "select a.v a, b.v b, r.moving u, s.moving w, r.low low_u, r.high high_u, s.low low_w, s.high high_w from n a, n b, r, r s"
    )


def test_each_comparison_is_decided_outside_of_the_range() -> None:
    """Of a row far below and one far above the range, one is surely in or one is surely out."""
    connection = duckdb.connect()
    for operator, (place, end) in itertools.product(("<", "<=", ">", ">=", "=", "<>"), ((0.0, "below"), (9.0, "above"))):
        found = compared(OWN[0], operator, *ENDS["u"])
        rows = Input("rows", (OWN[0], *ENDS["u"]))
        plan = Project(rows, (Output("sure", found.sure), Output("never", found.never)))
        query = render(plan, NATIVE, lambda _: exp.Table(this=exp.to_identifier("rows", quoted=True)))
        connection.execute(f"create or replace table rows as select {place}::double a, 4.0::double low_u, 5.0::double high_u")
        ((sure, never),) = connection.sql(query).fetchall()
        assert sure != never, (operator, end)
