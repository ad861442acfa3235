"""No pass without golden plans: each module of `rewrite/` has a file of them, or is part of a pass that has one."""

from __future__ import annotations

from pathlib import Path

import pytest

import nearly.rewrite
from tests.rewrite.golden_plans import GOLDEN, cases

ROOT = Path(nearly.rewrite.__file__).parent
MODULES = sorted(path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.glob("*/[!_]*.py"))

PART_OF = {
    "logical/correlation": "logical/decorrelate",
    "logical/sizes": "logical/order_joins",
    "stream/cut": "stream/cut_query",
    "stream/places": "stream/cut_query",
    "stream/unit_policy": "stream/cut_query",
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
