"""What is added to kept groups: of parts that nobody else reads, as long as it can be added."""

from __future__ import annotations

import pytest

from nearly.plan.nodes import GroupBy, Plan
from nearly.rewrite.delta.additions import Addition
from nearly.rewrite.delta.changed import ChangedRows, TableChange
from nearly.rewrite.delta.delta import deltas_of
from nearly.rewrite.delta.with_partials import outermost, with_partials
from tests.rewrite import shop


def told(text: str, grew: bool, *, above: bool = False) -> Addition | ChangedRows | None:
    """How the first grouping of a query is told to change; with `above`, all of the query is kept as well."""
    plan = with_partials(shop.planned(text))
    groups = [node for node in plan.walk() if isinstance(node, GroupBy)][:1]
    parts: list[Plan] = outermost([*groups, *([plan] if above else [])])
    _, found = deltas_of(parts, {"event": TableChange.of("event", grew=grew)}, {})
    return found[0]


@pytest.mark.parametrize("grew", [False, True])
def test_sums_are_added_to(grew: bool) -> None:
    found = told("select kind, sum(v) as v, count(*) as n from event group by kind", grew)
    assert isinstance(found, Addition)
    assert found.grew == grew


def test_a_least_value_only_while_rows_come() -> None:
    text = "select kind, min(v) as v from event group by kind"
    assert isinstance(told(text, grew=True), Addition)
    assert isinstance(told(text, grew=False), ChangedRows)


def test_a_part_above_must_be_told_what_changed() -> None:
    text = "select kind, n + 1 as m from (select kind, count(*) as n from event group by kind) where n > 3"
    assert isinstance(told(text, grew=True), Addition)
    assert isinstance(told(text, grew=True, above=True), ChangedRows)


def test_what_cannot_be_added_is_told() -> None:
    assert isinstance(told("select kind, sum(x) as x from event group by kind", grew=True), ChangedRows)
    assert isinstance(told("select kind, count(distinct v) as n from event group by kind", grew=True), ChangedRows)
