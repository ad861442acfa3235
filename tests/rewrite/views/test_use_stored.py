"""Queries over what a view stores: the same rows, or no answer."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nearly.plan.nodes import Field, Plan, Scan
from nearly.rewrite.views.use_stored import StoredPlan, use_stored
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, shown
from tests.rewrite.running import rows_differ, run
from tests.rewrite.views.test_split_view import split

NAME = "views/use_stored"
VIEW = "the view"


def used(plan: Plan, view: str, name: str = VIEW) -> Plan | None:
    found = split(view)
    pairs = zip(found.columns, found.maintained.columns, strict=True)
    fields = tuple(Field(f"{name}_stored", name, column.type) for name, column in pairs)
    return use_stored(plan, StoredPlan(shop.planned(view), found.maintained, found.reading, Scan(name, fields)))


def stored(view: str) -> pa.Table:
    """The rows that a view stores."""
    found = split(view)
    return run(found.maintained).rename_columns(list(found.columns))


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_the_rows_are_the_same(case: QueryCase) -> None:
    plan = used(shop.planned(case.text), case.notes["view"])
    check(NAME, case, "None" if plan is None else shown(plan))
    if plan is not None:
        rows = run(plan, rows=lambda scan: stored(case.notes["view"]) if scan.table == VIEW else shop.tables()[scan.table])
        expected = run(shop.planned(case.text))
        assert rows_differ(expected, rows.rename_columns(expected.column_names)) is None


def test_a_query_over_two_views() -> None:
    """Names that the first use made up are not made up again."""
    views = {"one": "select k, v from event where v > 1", "other": "select vk, w from visit where w < 9"}
    planned = shop.planned("select v, w from event join visit on k = vk where v > 1 and w < 9")
    plan: Plan | None = planned
    for name, view in views.items():
        assert plan is not None
        plan = used(plan, view, name)
    assert plan is not None
    assert {node.table for node in plan.walk() if isinstance(node, Scan)} == set(views)
    expected = run(planned)
    rows = run(plan, rows=lambda scan: stored(views[scan.table]))
    assert rows_differ(expected, rows.rename_columns(expected.column_names)) is None
