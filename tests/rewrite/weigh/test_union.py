"""Unions of weighted rows: what becomes of some of them, and that their estimates and replicates are those of their sides."""

from __future__ import annotations

import pytest

from tests.fixtures.queries import QueryCase
from tests.rewrite.golden_plans import cases, check
from tests.rewrite.weigh.laws import check_estimate, check_replicates, cut_of, shown_tail

NAME = "weigh/union"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_a_union_of_estimates_is_the_estimate_of_the_union(case: QueryCase) -> None:
    cut = cut_of(case.text)
    check(NAME, case, shown_tail(cut, {}))
    check_estimate(case.text, cut, {})
    check_replicates(cut, {})
