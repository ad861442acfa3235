"""Which column of a change has all values that a stage asks a table for."""

from __future__ import annotations

import pytest

from nearly.plan.expressions import Call, Column
from nearly.plan.nodes import Field, GroupBy, Input, Join, Plan, Scan, SetOperation, passed
from nearly.plan.types import BOOLEAN, INT, LONG
from nearly.rewrite.delta.domains import domain

KEY = Column(LONG, "line_order")
LINES = Input("lines@change", (KEY, Column(LONG, "line_part")))
TABLE = Scan("orders", (Field("order_key", "key", LONG, True), Field("order_shop", "shop", LONG, True)))


def met(kind: str, test: str = "=", key: Column = KEY) -> Join:
    """Orders that meet the lines of a change."""
    return Join(TABLE, LINES, kind, Call(BOOLEAN, test, (Column(LONG, "order_key"), key)))


def traced(plan: Plan, column: str) -> tuple[str, str] | None:
    return domain("stage", column, {"stage": plan})


@pytest.mark.parametrize("kind", ["inner", "semi"])
@pytest.mark.parametrize("test", ["=", "<=>"])
def test_rows_that_meet_a_change_have_its_values(kind: str, test: str) -> None:
    assert traced(GroupBy(met(kind, test), passed(TABLE.columns), ()), "order_key") == ("lines@change", "line_order")
    assert traced(met(kind, test), "order_shop") is None


@pytest.mark.parametrize("kind", ["left", "right", "full", "anti"])
def test_rows_that_meet_nothing_have_others(kind: str) -> None:
    assert traced(met(kind), "order_key") is None


def test_a_comparison_of_another_kind_tells_nothing() -> None:
    assert traced(met("inner", "<"), "order_key") is None
    assert traced(met("inner", "=", Column(INT, "line_order")), "order_key") is None


def test_both_sides_of_a_union_must_be_among_the_same() -> None:
    keys = (Column(LONG, "key"),)

    def united(name: str) -> Plan:
        mine = GroupBy(met("semi"), passed(TABLE.columns[:1]), ())
        theirs = GroupBy(LINES, passed([Column(LONG, name)]), ())
        return SetOperation(mine, theirs, "union", True, keys)

    assert traced(united("line_order"), "key") == ("lines@change", "line_order")
    assert traced(united("line_part"), "key") is None
