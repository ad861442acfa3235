"""LIMITs that may keep other rows each time they are read, where that shows."""

from __future__ import annotations

import pytest

from nearly.rewrite.delta.open_limits import has_open_limit
from tests.rewrite import shop

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
