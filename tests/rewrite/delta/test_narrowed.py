"""Columns that only a filter reads are not given to joins, and the rows are the same."""

from __future__ import annotations

import pytest

from nearly.plan.nodes import Filter, Join, Project
from nearly.rewrite.delta.narrowed import narrowed
from tests.engine.deltas.judging import bag
from tests.rewrite import shop
from tests.rewrite.running import run

FILTERED = "select e.k, sum(v.w) as w from event e join visit v on e.k = v.vk where e.v > 1 and v.w < 9 group by e.k"


@pytest.mark.parametrize(
    "text",
    [
        FILTERED,
        "select e.v, v.w from event e join visit v on e.k = v.vk where e.v > 1",
        "select k from event where v > 1 and kind in (select id from kind where label <> 'one')",
        "select e.k from event e left join visit v on e.k = v.vk and v.w > 3 where e.x < 50",
        "select v from event where v > 1",
    ],
)
def test_law_the_same_rows(text: str) -> None:
    plan = shop.planned(text)
    found = narrowed(plan)
    assert found.columns == plan.columns
    assert bag(run(found)) == bag(run(plan))


def test_what_only_the_filter_reads_ends_there() -> None:
    sides = [side for node in narrowed(shop.planned(FILTERED)).walk() if isinstance(node, Join) for side in node.children]
    (events,) = [side for side in sides if "k" in {name.split("_")[0] for name in side.names}]
    assert isinstance(events, Project)
    assert isinstance(events.child, Filter)
    assert len(events.columns) == 1
