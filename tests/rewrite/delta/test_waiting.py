"""Rows that wait for a partner: which they are, and what a change that only came reads instead of the side that waits."""

from __future__ import annotations

import pytest

from nearly.plan.nodes import Input, Join, Plan, Scan
from nearly.rewrite.delta.changed import TableChange
from nearly.rewrite.delta.delta import delta
from nearly.rewrite.delta.waiting import LEFT, RIGHT, waiting_rows
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, under

NAME = "delta/waiting"
KEYS = {"kind": ("id",), "visit": ()}
WAITING = ("key_of_a_filtered_table", "a_join_waits")


def _waiting(plan: Plan) -> list[tuple[str, Join]]:
    joins = [node for node in plan.walk() if isinstance(node, Join)]
    sides = [(name, waiting_rows(join, side, _key)) for join in joins for side, name in ((LEFT, "left"), (RIGHT, "right"))]
    return [(name, rows) for name, rows in sides if rows is not None]


def _key(name: str) -> tuple[str, ...]:
    return KEYS.get(name, ())


def _read(plan: Plan, stored: dict[Plan, Plan], *, grew: bool) -> set[str]:
    """The tables that the stages of a change of `kind` read."""
    found = delta(plan, {"kind": TableChange.of("kind", grew=grew)}, stored, keys=KEYS)
    assert found is not None
    stages = [*(stage.plan for stage in found.stages), found.result]
    return {node.table for stage in stages for node in stage.walk() if isinstance(node, Scan)}


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_what_waits(case: QueryCase) -> None:
    found = _waiting(shop.planned(case.text))
    check(NAME, case, "\n".join(under(f"waits on the {name}", rows) for name, rows in found) or "nothing waits")


@pytest.mark.parametrize("case", [case for case in cases(NAME) if case.name in WAITING], ids=str)
def test_a_key_that_comes_meets_waiting_rows_alone(case: QueryCase) -> None:
    plan = shop.planned(case.text)
    ((_, rows),) = _waiting(plan)
    stored: dict[Plan, Plan] = {rows: Input("waiting", rows.columns)}
    assert "event" in _read(plan, {}, grew=True)
    assert _read(plan, stored, grew=True) == set()
    assert "event" in _read(plan, stored, grew=False)  # what goes, or changes, met rows that did not wait
