"""Columns that only a filter reads are not given to joins, and the rows are the same."""

from __future__ import annotations

import pytest

from nearly.plan.nodes import Filter, Join, Project
from nearly.rewrite.delta.narrowed import narrowed
from tests.engine.deltas.judging import bag
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, shown
from tests.rewrite.running import run

NAME = "delta/narrowed"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_the_same_rows(case: QueryCase) -> None:
    plan = shop.planned(case.text)
    found = narrowed(plan)
    check(NAME, case, shown(found))
    assert found.columns == plan.columns
    assert bag(run(found)) == bag(run(plan))


def test_what_only_the_filter_reads_ends_there() -> None:
    sides = [
        side for node in narrowed(shop.planned(cases(NAME)[0].text)).walk() if isinstance(node, Join) for side in node.children
    ]
    (events,) = [side for side in sides if "k" in {name.split("_")[0] for name in side.names}]
    assert isinstance(events, Project)
    assert isinstance(events.child, Filter)
    assert len(events.columns) == 1
