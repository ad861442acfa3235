"""What is known of a plan's rows holds for its rows: keys identify them, and clustering columns keep equal ones together."""

from __future__ import annotations

import pytest

from nearly.plan.properties import clustering, keys
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases
from tests.rewrite.running import run

CASES = [case for name in ("sites/distribute", "logical/order_joins") for case in cases(name)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_law_no_two_rows_are_equal_in_a_key(case: QueryCase) -> None:
    plan = shop.planned(case.text)
    rows = run(plan)
    for key in keys(plan, shop.schema):
        assert key <= plan.names
        values = [tuple(row.values()) for row in rows.select(sorted(key)).to_pylist()] if key else [()] * rows.num_rows
        assert len(set(values)) == len(values), key


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("select kind, count(*) c from event group by kind", [{"kind"}]),
        ("select kind, k, count(*) c from event group by cube(kind, k)", []),
        ("select sum(v) s from event", [set()]),
        ("select id, label from kind", [{"id"}]),
        ("select id, k from kind join visit on id = vk join event on k = vk", []),
        ("select id, c from kind left join (select kind g, count(*) c from event group by kind) t on id = g", [{"id"}]),
        ("select distinct k, kind from event", [{"k", "kind"}]),
    ],
)
def test_keys_come_through_operators(text: str, found: list[set[str]]) -> None:
    plan = shop.planned(text)
    named = [{name.rsplit("_", 1)[0] for name in key} for key in keys(plan, shop.schema)]
    assert named == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("select k, v from event where v > 3", {"k"}),
        ("select k, w from event join visit on k = vk", {"k"}),
        ("select k, sum(v) s from event group by k", {"k"}),
        ("select kind, sum(v) s from event group by kind", set()),
        ("select k from event union all select vk from visit", set()),
    ],
)
def test_clustering_comes_through_operators(text: str, found: set[str]) -> None:
    plan = shop.planned(text)
    assert {name.rsplit("_", 1)[0] for name in clustering(plan, shop.schema)} == found
