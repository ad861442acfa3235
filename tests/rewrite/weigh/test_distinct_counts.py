"""Counted keys: what the tail keeps of them by unit gives the count, and the average of what they sum up."""

from __future__ import annotations

from collections import defaultdict

import pytest

from nearly.rewrite.weigh.distinct_counts import distinct_counts, keys_by_unit, totals_by_unit
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, under
from tests.rewrite.running import by_units, run
from tests.rewrite.weigh.laws import cut_of

NAME = "weigh/distinct_counts"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_keys_by_unit_make_the_count(case: QueryCase) -> None:
    cut = cut_of(case.text)
    found = distinct_counts(cut.tail)
    texts = []
    for name, counted in found.items():
        texts.append(under(f"{name} counts by [{', '.join(counted.by)}]", keys_by_unit(counted, cut.stages)))
        if counted.total is not None:
            texts.append(under("totals", totals_by_unit(counted, counted.total, cut.stages)))
    check(NAME, case, "\n".join(texts) or "None")
    state = by_units(cut)
    exact = run(shop.planned(case.text))
    for name, counted in found.items():
        keys: dict[tuple[object, ...], float] = defaultdict(float)
        for row in run(keys_by_unit(counted, cut.stages), state).to_pylist():
            keys[tuple(row[f"key_{place}"] for place in range(len(counted.by)))] += row["keys"] / row["seen_in"]
        if counted.total is not None:
            totals = run(totals_by_unit(counted, counted.total, cut.stages), state)["total"].to_pylist()
            keys = {key: sum(each for each in totals if each is not None) / count for key, count in keys.items()}
        shown_keys = zip(*(exact[each].to_pylist() for each in counted.shown), strict=True) if counted.shown else [()]
        for key, value in zip(shown_keys, exact[name].to_pylist(), strict=True):
            assert keys[key] == pytest.approx(float(value))
