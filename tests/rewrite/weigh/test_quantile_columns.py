"""Quantiles by unit: the values that the tail keeps have the quantile that it gives."""

from __future__ import annotations

import numpy as np
import pytest

from nearly.rewrite.weigh.quantile_columns import quantile_columns, values_by_unit
from tests.fixtures.queries import QueryCase
from tests.rewrite.golden_plans import cases, check, under
from tests.rewrite.running import by_units, run
from tests.rewrite.weigh.laws import cut_of

NAME = "weigh/quantile_columns"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_values_by_unit_have_the_quantile(case: QueryCase) -> None:
    cut = cut_of(case.text)
    found = quantile_columns(cut.tail)
    check(NAME, case, "\n".join(under(f"{n} is quantile {c.p}", values_by_unit(c, cut.stages)) for n, c in found.items()) or "None")
    state = by_units(cut)
    answer = run(cut.tail, state)
    for name, column in found.items():
        values = run(values_by_unit(column, cut.stages), state).to_pylist()
        for row in answer.to_pylist():
            key = {f"key_{place}": row[each] for place, each in enumerate(column.keys)}
            mine = [each["value"] for each in values if key.items() <= each.items()]
            assert row[name] == pytest.approx(np.quantile(mine, column.p))
