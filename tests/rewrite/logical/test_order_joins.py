"""The order of joins: what the pass makes of some queries, and that rows stay the same."""

from __future__ import annotations

import pytest

from nearly.rewrite.logical.order_joins import order_joins
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, shown
from tests.rewrite.running import rows_differ, run

NAME = "logical/order_joins"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_the_rows_stay_the_same(case: QueryCase) -> None:
    plan = shop.planned(case.text)
    ordered = order_joins(plan, shop.schema)
    check(NAME, case, shown(ordered))
    assert rows_differ(run(plan), run(ordered), case.text) is None
