"""Aggregates over distinct values: the aggregate over the distinct values of each group is that of the rows."""

from __future__ import annotations

import pytest

from nearly.plan.binding.scope import FreshNames
from nearly.rewrite.sites.split_distinct import split_distinct
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, shown
from tests.rewrite.running import rows_differ, run

NAME = "sites/split_distinct"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_aggregates_of_distinct_values(case: QueryCase) -> None:
    whole = shop.topmost_aggregate(case.text)
    split = split_distinct(whole, FreshNames("split"))
    check(NAME, case, "None" if split is None else shown(split.merged(split.partial)))
    if split is not None:
        assert rows_differ(run(whole), run(split.merged(split.partial))) is None
