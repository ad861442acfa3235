"""LIMITs that may keep other rows each time they are read, where that shows, and windows that hang on which row comes first."""

from __future__ import annotations

import pytest

from nearly.plan.expressions import Column, SortKey, WindowCall
from nearly.plan.nodes import Window
from nearly.rewrite.delta.strategy.open_rows import has_open_limit, has_open_ties, settle_ties
from tests.rewrite import shop
from tests.rewrite.running import rows_differ, run

CASES = {
    "select k from event limit 3": False,
    "select kind, count(*) c from (select kind from event limit 3) group by kind": True,
    "select kind, count(*) c from (select kind, v from event order by kind limit 3) group by kind": False,
    "select kind, max(v) m from (select kind, v from event order by kind limit 3) group by kind": True,
    "select kind, max(v) m from (select kind, v from event order by kind, v limit 3) group by kind": False,
    "select kind, count(*) c from (select kind from event limit 0) group by kind": False,
    "select count(*) c from (select kind, v from event limit 3)": False,
    "select k from event where exists (select 1 from visit limit 1)": False,
    "select distinct v from (select v from event union all (select vk from visit limit 2))": True,
}


@pytest.mark.parametrize("text", CASES)
def test_open_limits(text: str) -> None:
    assert has_open_limit(shop.planned(text), shop.schema) == CASES[text]


ORDERED = {
    "select k, row_number() over (partition by kind order by v) n from event": ["v", "k"],
    "select kind, v, row_number() over (order by v) n from (select distinct kind, v from event)": ["v", "kind"],
    "select v, lag(v) over (partition by kind order by v desc) n from event": ["v"],
    "select vk, ntile(2) over (order by vk) n from (select vk from visit)": ["vk"],
    "select k, sum(v) over (partition by kind order by v rows between 1 preceding and current row) n from event": ["v", "k"],
    "select k, row_number() over (partition by kind order by k) n from event": ["k"],
    "select k, rank() over (partition by kind order by v) n from event": ["v"],
    "select k, sum(v) over (partition by kind order by v) n from event": ["v"],
    "select k, first_value(k) over (partition by kind order by v) n from event": ["v"],
}
TIED = {
    "select k, first_value(k) over (partition by kind order by v) n from event",
    "select k, last_value(k) over (partition by kind order by v) n from event",
}


@pytest.mark.parametrize("text", ORDERED)
def test_an_order_that_tells_rows_apart(text: str) -> None:
    plan = settle_ties(shop.planned(text), shop.schema)
    (window,) = (node for node in plan.walk() if isinstance(node, Window))
    (call,) = (each.expression for each in window.outputs if isinstance(each.expression, WindowCall))
    assert [_shown(key) for key in call.order] == ORDERED[text]
    assert has_open_ties(window, shop.schema) == (text in TIED)
    assert settle_ties(plan, shop.schema) == plan


def _shown(key: SortKey) -> str:
    assert isinstance(key.expression, Column)
    return key.expression.name.rsplit("_", 1)[0]


@pytest.mark.parametrize("text", sorted(TIED))
def test_first_and_last_rows_of_ties_stay_open(text: str) -> None:
    (window,) = (node for node in shop.planned(text).walk() if isinstance(node, Window))
    assert has_open_ties(window, shop.schema)


@pytest.mark.parametrize(
    "text", [text for text in ORDERED if "rank()" in text or "sum(v) over (partition by kind order by v)" in text]
)
def test_law_what_does_not_hang_on_ties_is_the_same(text: str) -> None:
    plan = shop.planned(text)
    assert rows_differ(run(plan), run(settle_ties(plan, shop.schema))) is None
