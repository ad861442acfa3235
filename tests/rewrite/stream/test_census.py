"""Keys counted exactly: a census gives the number of rows that the aggregate has once every unit is read."""

from __future__ import annotations

import pytest

from nearly.plan.nodes import GroupBy
from nearly.rewrite.passes import for_units
from nearly.rewrite.stream.census import KEYS, census
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, shown
from tests.rewrite.running import by_units, run

NAME = "stream/census"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_a_census_counts_the_rows_of_the_aggregate(case: QueryCase) -> None:
    cut = for_units(shop.planned(case.text), shop.schema)
    assert cut is not None
    merge = next(node for node in cut.tail.walk() if isinstance(node, GroupBy))
    counting = census(merge, cut.stages)
    assert counting is not None
    check(NAME, case, shown(counting))
    assert run(counting)[KEYS].to_pylist() == [run(merge, by_units(cut)).num_rows]
