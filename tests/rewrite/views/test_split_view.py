"""A query in two: what a view stores, read, is the query."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nearly.plan.binding.query import bind
from nearly.plan.reading import STORED
from nearly.plan.stored_form import restored, stored
from nearly.plan.syntax.parse import parse_query
from nearly.rewrite.passes import rewrite
from nearly.rewrite.views.split_view import StoredView, split_view
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, under
from tests.rewrite.running import rows_differ, run

NAME = "views/split_view"


def split(text: str) -> StoredView:
    query = bind(parse_query(text), shop.schema)
    return split_view(rewrite(query.plan), query.names, shop.schema)


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_what_is_stored_is_read_as_the_query(case: QueryCase) -> None:
    plan, view = shop.planned(case.text), split(case.text)
    told = f"columns: {', '.join(view.columns)}\nkey: {', '.join(view.key)}"
    read = "as it is" if view.reading is None else under("read", view.reading.plan)
    check(NAME, case, f"{told}\n{under('stored', view.maintained)}\n{read}")
    rows = run(view.maintained)
    assert len(set(view.columns)) == len(view.columns) == rows.num_columns
    if view.key:
        keys = [view.columns.index(name) for name in view.key]
        assert len(set(zip(*(rows.column(place).to_pylist() for place in keys), strict=True))) == rows.num_rows
    if view.reading is None:
        assert rows_differ(run(plan), rows.rename_columns(run(plan).column_names)) is None
        return
    shown = run(view.reading.plan, {STORED: rows})
    expected = run(plan)
    if "limit" in case.name or "first" in case.name:  # which rows is open; all of them are rows of the query without LIMIT
        assert shown.num_rows == expected.num_rows
    else:
        assert rows_differ(expected, pa.table(shown.columns, expected.column_names)) is None


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_a_stored_plan_is_restored(case: QueryCase) -> None:
    view = split(case.text)
    for plan in (view.maintained, view.reading and view.reading.plan, shop.planned(case.text)):
        assert restored(stored(plan)) == plan
