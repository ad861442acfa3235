"""Samples by tickets: the same rows wherever the test is made, and samples of two relations that correspond."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from nearly.errors import Unsupported
from nearly.plan.functions.tickets import drawn
from nearly.plan.nodes import Filter, Plan
from nearly.plan.schema import SchemaColumn, TableSchema
from nearly.plan.types import from_arrow
from nearly.rewrite.sample.push_hash import push_hash, sampled_scans
from nearly.rewrite.sample.sampling_columns import sampling_columns
from tests.fixtures.generation import TABLES, QueryGenerator, random_table
from tests.fixtures.long import first_quick
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, shown
from tests.rewrite.running import rows_differ, run

CASES = cases("sample/push_hash")
QUERIES = 25


def sampled(case: QueryCase, share: float = 0.5) -> tuple[Plan, Plan]:
    """The sample by the first column, above and pushed down."""
    plan = shop.planned(case.text)
    return Filter(plan, drawn(plan.columns[:1], share)), push_hash(plan, plan.columns[:1], share)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_golden_plans(case: QueryCase) -> None:
    check("sample/push_hash", case, shown(sampled(case)[1]))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_law_sample_is_the_same(case: QueryCase, share: float) -> None:
    above, below = sampled(case, share)
    assert rows_differ(run(above), run(below), case.text) is None


@pytest.mark.parametrize("case", cases("sample/sampling_columns"), ids=str)
def test_columns_that_save_most(case: QueryCase) -> None:
    plan = shop.planned(case.text)
    found = sampling_columns(plan, plan.columns[:-1], shop.schema, lambda _: 1.0)
    reached = sorted(scan.table for scan in sampled_scans(push_hash(plan, found, 0.5)))
    check("sample/sampling_columns", case, f"{', '.join(each.name for each in found)} reaches {', '.join(reached)}")


@pytest.mark.parametrize("seed", first_quick(range(5), 1))
def test_law_random_queries_have_the_same_sample(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(seed)
    generator = QueryGenerator(choose.choice)
    pushed = 0
    for _ in range(QUERIES):
        tables = {name: random_table(choose.choice) for name in TABLES}
        monkeypatch.setattr(shop, "tables", lambda: tables)  # noqa: B023
        monkeypatch.setattr(shop, "schema", _schema)
        text = generator.query()
        try:
            plan = shop.planned(text)
            columns = tuple(choose.sample(plan.columns, choose.randint(1, len(plan.columns))))
            share = choose.choice((0.2, 0.5, 0.8))
            expected = run(Filter(plan, drawn(columns, share)))
        except Unsupported:
            continue
        below = push_hash(plan, columns, share)
        pushed += bool(sampled_scans(below))
        assert rows_differ(expected, run(below), text) is None, (text, columns, share)
    assert pushed > QUERIES // 8


def _schema(name: str) -> TableSchema:
    table: pa.Table = shop.tables()[name]
    columns = tuple(SchemaColumn(each.name, from_arrow(each.type)) for each in table.schema)
    return TableSchema(name, columns, (), table.num_rows)
