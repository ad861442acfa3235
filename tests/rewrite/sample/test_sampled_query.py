"""Queries over a view in parts: golden plans, and the law that weights of 1 give the query."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nearly.errors import Unsupported
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import Literal
from nearly.plan.nodes import Output, Plan, Project, Scan, passed
from nearly.plan.types import INT
from nearly.rewrite.passes import rewrite
from nearly.rewrite.sample.sampled_query import ROWS, UNIT, core_parts, sampled_query
from nearly.rewrite.sample.weigh_parts import CELL, PARTS, weigh_parts
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, under
from tests.rewrite.running import run

CASES = cases("sample/sampled_query")


def with_units(scan: Scan) -> Plan:
    return Project(scan, (*passed(scan.columns), Output(UNIT.name, Literal(INT, 0))))


def in_words(text: str) -> str:
    try:
        query = sampled_query(shop.planned(text), "event")
        parts = core_parts(query.core, FreshNames("core"))
    except Unsupported as refusal:
        return f"refused: {refusal}"
    given = (CELL, UNIT, *(output.column for output in parts.steps.partial.aggregates))
    others = [f"{type(each).__name__} {each.name}" for each in (*parts.extremes, *parts.quantiles, *parts.distinct)]
    words = [under("parts", parts.partial(query.rows(with_units(query.scan)))), under("weighed", weigh_parts(parts, given))]
    return "\n".join([*words, *others])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_golden_plans(case: QueryCase) -> None:
    check("sample/sampled_query", case, in_words(case.text))


def test_law_rows_that_weigh_one_give_the_query() -> None:
    text = "select sum(x) as s, avg(x) as a, count(v) as n, stddev(x) as d from event where kind > 0"
    plan = shop.planned(text)
    query = sampled_query(plan, "event")
    parts = core_parts(query.core, FreshNames("core"))
    found = run(rewrite(parts.partial(query.rows(with_units(query.scan)))))
    numbered = found.add_column(0, CELL.name, pa.array([0] * found.num_rows, pa.int32()))
    given = (CELL, UNIT, *(output.column for output in parts.steps.partial.aggregates))
    weights = pa.table({
        "replicate": pa.array([0, 1], pa.int32()), "unit_group": pa.array([0, 0], pa.int32()), "unit_weight": [1.0, 3.0],
    })  # fmt: skip
    weighed = {row["replicate"]: row for row in run(weigh_parts(parts, given), {PARTS: numbered, "weights": weights}).to_pylist()}
    (exact,) = run(plan).to_pylist()
    names = [output.name for output in query.core.aggregates]
    for name, value in zip(names, exact.values(), strict=True):
        assert weighed[0][name] == pytest.approx(float(value))
    assert weighed[1][ROWS] == 3 * weighed[0][ROWS]
    assert weighed[1][names[1]] == pytest.approx(weighed[0][names[1]])
