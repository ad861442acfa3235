"""Expressions over estimates: with doubles for whole numbers and decimals they have the same values, unrounded."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nearly.errors import Unsupported
from nearly.plan.expressions import Column
from nearly.plan.nodes import Input, Output, Project
from nearly.plan.types import DOUBLE
from nearly.rewrite.weigh.relax import relaxed
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, shown
from tests.rewrite.running import rows_differ, run

NAME = "weigh/relax"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_whole_values_keep_their_value(case: QueryCase) -> None:
    plan = shop.planned(case.text)
    assert isinstance(plan, Project)
    below = plan.child
    doubles = frozenset(column.name for column in below.columns)
    rows = Input("rows", tuple(Column(DOUBLE, column.name) for column in below.columns))
    try:
        found = Project(rows, tuple(Output(each.name, relaxed(each.expression, doubles)) for each in plan.outputs))
    except Unsupported as reason:
        check(NAME, case, str(reason))
        return
    check(NAME, case, shown(found))
    values = run(below)
    given = pa.table([values[name].cast(pa.float64()) for name in values.column_names], values.column_names)
    assert rows_differ(run(plan), run(found, {"rows": given}), numbers=True) is None
