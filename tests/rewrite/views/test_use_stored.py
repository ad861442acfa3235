"""Queries over what a view stores: the same rows, or no answer."""

from __future__ import annotations

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


def used(text: str, view: str) -> Plan | None:
    found = split(view)
    pairs = zip(found.columns, found.maintained.columns, strict=True)
    fields = tuple(Field(f"{name}_stored", name, column.type) for name, column in pairs)
    return use_stored(shop.planned(text), StoredPlan(shop.planned(view), found.maintained, found.reading, Scan(VIEW, fields)))


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_the_rows_are_the_same(case: QueryCase) -> None:
    plan = used(case.text, case.notes["view"])
    check(NAME, case, "None" if plan is None else shown(plan))
    if plan is not None:
        view = split(case.notes["view"])
        stored = run(view.maintained).rename_columns(list(view.columns))
        rows = run(plan, rows=lambda scan: stored if scan.table == VIEW else shop.tables()[scan.table])
        expected = run(shop.planned(case.text))
        assert rows_differ(expected, rows.rename_columns(expected.column_names)) is None
