"""The cut of progressive queries: what is computed per unit in some queries, and that the tail over all units is the query."""

from __future__ import annotations

import pytest

from nearly.rewrite.passes import for_units
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, shown_cut
from tests.rewrite.running import by_units, rows_differ, run

NAME = "stream/cut_query"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_the_tail_over_all_units_is_the_plan(case: QueryCase) -> None:
    plan = shop.planned(case.text)
    streamed = frozenset({case.notes["streamed"]}) if "streamed" in case.notes else None
    cut = for_units(plan, shop.schema, streamed)
    assert cut is not None
    check(NAME, case, shown_cut(cut))
    found = run(cut.tail, by_units(cut))
    assert rows_differ(run(plan), found, case.text) is None
