"""No pass without golden plans: each module of `rewrite/` has a file of them, or is part of a pass that has one."""

from __future__ import annotations

from pathlib import Path

import pytest

import nearly.rewrite
from tests.rewrite.golden_plans import GOLDEN, cases

ROOT = Path(nearly.rewrite.__file__).parent
MODULES = sorted(path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.rglob("*/[!_]*.py"))

PART_OF = {
    "delta/changed": "delta/delta",
    "delta/domains": "delta/delta",
    "delta/empty": "delta/delta",
    "delta/groups": "delta/delta",
    "delta/joins": "delta/delta",
    "delta/merge": "delta/delta",
    "delta/outer_joins": "delta/delta",
    "delta/partials": "delta/delta",
    "delta/restrict": "delta/delta",
    "delta/rows": "delta/delta",
    "delta/sets": "delta/delta",
    "delta/sharpen": "delta/delta",
    "delta/strategy/drift": "delta/delta",
    "delta/strategy/open_rows": "delta/delta",
    "delta/strategy/reasons": "delta/delta",
    "delta/strategy/strategies": "delta/delta",
    "delta/touched": "delta/delta",
    "delta/whole": "delta/delta",
    "delta/windows": "delta/delta",
    "delta/with_partials": "delta/delta",
    "logical/correlation": "logical/decorrelate",
    "logical/sizes": "logical/order_joins",
    "sample/weigh_parts": "sample/sampled_query",
    "stream/cut": "stream/cut_query",
    "stream/firm_groups": "stream/decide",
    "stream/lookups": "stream/decide",
    "stream/places": "stream/cut_query",
    "stream/unit_policy": "stream/cut_query",
    "stream/verdicts": "stream/decide",
    "views/blocks": "views/use_stored",
    "views/implied": "views/use_stored",
    "views/time_zones": "views/split_view",
    "weigh/weighted": "weigh/weigh",
}
"""Modules that hold a step or the vocabulary of a pass, which is seen in the plans that the pass makes."""


@pytest.mark.parametrize("module", MODULES)
def test_every_pass_has_golden_plans(module: str) -> None:
    found = cases(PART_OF.get(module, module))
    assert found
    assert all(case.expected for case in found)
    assert len({case.name for case in found}) == len(found)


def test_every_golden_plan_is_of_a_pass() -> None:
    files = {path.relative_to(GOLDEN).with_suffix("").as_posix() for path in GOLDEN.glob("*/*.sql")}
    assert files == set(MODULES) - PART_OF.keys()
    assert set(PART_OF) <= set(MODULES)
