"""Aggregates in two steps: merging the partial results of the parts gives the aggregate of the whole."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nearly.plan.binding.scope import FreshNames
from nearly.plan.nodes import Input
from nearly.rewrite.sites.split_aggregate import merged_parts, split_aggregate
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, under
from tests.rewrite.running import rows_differ, run

NAME = "sites/split_aggregate"
PARTS = 4


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_merged_parts_are_the_whole(case: QueryCase) -> None:
    whole = shop.topmost_aggregate(case.text)
    split = split_aggregate(whole, FreshNames("split"))
    if split is None:
        check(NAME, case, "None")
        return
    parts = Input("parts", split.partial.columns)
    check(NAME, case, f"{under('partial', split.partial)}\n{under('merged', split.merged(parts))}")
    rows = [run(split.partial, rows=lambda scan: shop.tables()[scan.table].slice(part * 15, 15)) for part in range(PARTS)]  # noqa: B023
    assert rows_differ(run(whole), run(split.merged(parts), {"parts": pa.concat_tables(rows)})) is None
    some = merged_parts(split.partial, parts)
    fewer = [run(some, {"parts": pa.concat_tables(rows[first : first + 2])}).select(rows[0].column_names) for first in (0, 2)]
    assert rows_differ(run(whole), run(split.merged(parts), {"parts": pa.concat_tables(fewer)})) is None
