"""Variances and correlations as arithmetic of sums: the values of the functions themselves."""

from __future__ import annotations

import pytest

from nearly.plan.binding.scope import FreshNames
from nearly.rewrite.sites.moments import by_moments
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, shown
from tests.rewrite.running import rows_differ, run

NAME = "sites/moments"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_sums_give_the_same_values(case: QueryCase) -> None:
    whole = shop.topmost_aggregate(case.text)
    sums = by_moments(whole, FreshNames("sums"))
    check(NAME, case, "None" if sums is None else shown(sums.outer(sums.inner)))
    if sums is not None:
        assert rows_differ(run(whole), run(sums.outer(sums.inner))) is None
