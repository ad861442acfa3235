"""Quantiles from few rows: every step-th is taken, and with a step of one the quantiles are exact."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from nearly.plan.binding.query import bind
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import Column, Literal
from nearly.plan.functions import call
from nearly.plan.nodes import GroupBy, Output, Plan, Project, passed
from nearly.plan.syntax.parse import parse_query
from nearly.plan.types import LONG
from nearly.rewrite.stream.thin import Quantiles, quantiles_apart
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, under
from tests.rewrite.running import rows_differ, run

NAME = "stream/thin"
UNITS = 4


def parts_of(case: QueryCase) -> tuple[GroupBy, Quantiles | None, Column]:
    """The aggregate, its parts, and the column that stands for the unit."""
    plan = bind(parse_query(case.text), shop.schema).plan
    whole = next(node for node in plan.walk() if isinstance(node, GroupBy))
    key = next(column for column in whole.child.columns if column.name.startswith("k_"))
    unit = Output("unit", call("%", (key, Literal(LONG, UNITS))))
    whole = replace(whole, child=Project(whole.child, (*passed(whole.child.columns), unit)))
    return whole, quantiles_apart(whole, FreshNames("thin")), unit.column


def together(apart: Quantiles, unit: Column, step: int) -> Plan:
    quantiles = apart.quantiles_of(apart.thinned(unit, step, FreshNames("rows")))
    return quantiles if apart.others is None else apart.together(quantiles, apart.others, FreshNames("both"))


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_every_step_th_row_is_taken(case: QueryCase) -> None:
    whole, apart, unit = parts_of(case)
    if apart is None:
        check(NAME, case, "None")
        return
    step = int(case.notes["step"])
    check(NAME, case, under("quantiles and others", together(apart, unit, step)))
    assert rows_differ(run(whole), run(together(apart, unit, 1))) is None
    rows, taken = (Counter(run(apart.thinned(unit, each, FreshNames("rows")))[unit.name].to_pylist()) for each in (1, step))
    for each, count in rows.items():
        assert count // step <= taken[each] <= -(-count // step)
