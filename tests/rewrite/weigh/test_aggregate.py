"""Aggregates over weighted rows: keys that were seen in few units count for less, and their rows stand for more."""

from __future__ import annotations

import pytest

from nearly.rewrite.weigh.weigh import keyed_aggregates, weigh
from nearly.rewrite.weigh.weighted import Growths
from tests.fixtures.queries import QueryCase
from tests.rewrite.golden_plans import cases, check
from tests.rewrite.running import by_units, run
from tests.rewrite.weigh.laws import check_replicates, cut_of, shown_tail

NAME = "weigh/aggregate"
TOTALS = "select sum(c) t from (select x, count(*) c from event group by x) t"


def growth_of(case: QueryCase) -> tuple[float, ...]:
    return tuple(float(each) for each in case.notes["growth"].split())


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_replicates_grow_as_the_estimate_does(case: QueryCase) -> None:
    cut = cut_of(case.text)
    growths: Growths = dict.fromkeys(keyed_aggregates(cut.tail, cut.stages), growth_of(case))
    check(NAME, case, shown_tail(cut, growths))
    check_replicates(cut, growths)


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_totals_do_not_depend_on_growth(case: QueryCase) -> None:
    cut = cut_of(TOTALS)
    growths: Growths = dict.fromkeys(keyed_aggregates(cut.tail, cut.stages), growth_of(case))
    state = by_units(cut)
    plain, grown = (run(weigh(cut.tail, cut.stages, 2.0, each).plan, state).column(0).to_pylist() for each in ({}, growths))
    assert growths
    assert grown == pytest.approx(plain)
