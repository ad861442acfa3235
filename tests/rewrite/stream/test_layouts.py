"""Layouts of progressive queries: which one is read in some queries, and that the tail over its units is the query."""

from __future__ import annotations

import pytest

from nearly.plan.nodes import Scan
from nearly.rewrite.passes import for_units
from nearly.rewrite.stream.layouts import arrangements
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, shown_cut
from tests.rewrite.running import by_units, rows_differ, run

NAME = "stream/layouts"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_the_tail_over_all_units_is_the_plan(case: QueryCase) -> None:
    plan = shop.planned(case.text)
    scans = {node for node in plan.walk() if isinstance(node, Scan)}
    tried = [", ".join(f"{table} {layout.name}" for table, layout in each.items()) for each in arrangements(scans, shop.schema)]
    cut = for_units(plan, shop.schema)
    assert cut is not None
    check(NAME, case, "\n".join([*(f"tried: {each or 'base'}" for each in tried), shown_cut(cut)]))
    assert rows_differ(run(plan), run(cut.tail, by_units(cut)), case.text) is None
