"""Tails over weighted rows: what becomes of some of them, and what estimates and replicates are."""

from __future__ import annotations

import pytest

from nearly.rewrite.weigh.weigh import incidence, keyed_aggregates
from tests.fixtures.queries import QueryCase
from tests.rewrite.golden_plans import cases, check
from tests.rewrite.running import UNITS, by_units, run
from tests.rewrite.weigh.laws import check_estimate, check_replicates, cut_of, shown_tail

NAME = "weigh/weigh"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_over_all_units_estimates_are_exact(case: QueryCase) -> None:
    cut = cut_of(case.text)
    check(NAME, case, shown_tail(cut, {}))
    check_estimate(case.text, cut, {})


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_a_replicate_is_the_estimate_without_a_unit(case: QueryCase) -> None:
    check_replicates(cut_of(case.text), {})


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_incidence_counts_every_key_once(case: QueryCase) -> None:
    cut = cut_of(case.text)
    state = by_units(cut)
    for aggregate in keyed_aggregates(cut.tail, cut.stages):
        found = run(incidence(aggregate, cut.stages), state)
        assert sum(found["keys"].to_pylist()) == run(aggregate, state).num_rows
        assert all(1 <= seen <= UNITS for seen in found["seen_in"].to_pylist())
