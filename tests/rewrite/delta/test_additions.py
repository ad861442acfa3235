"""What is added to kept groups: of parts that nobody else reads, as long as it can be added."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from nearly.plan.nodes import GroupBy, Plan
from nearly.rewrite.delta.additions import Addition
from nearly.rewrite.delta.changed import ChangedRows, TableChange
from nearly.rewrite.delta.delta import deltas_of
from nearly.rewrite.delta.partials import EXTREMES, calls_of
from nearly.rewrite.delta.with_partials import outermost, with_partials
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.delta.test_delta import change_of, rows_at
from tests.rewrite.golden_plans import cases, check, under
from tests.rewrite.running import run

NAME = "delta/additions"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_what_is_kept_and_what_is_added_are_the_groups_now(case: QueryCase) -> None:
    grew = "grew" in case.notes
    found = told(case.text, grew)
    assert isinstance(found, Addition)
    check(NAME, case, under("added", found.plan))
    old, new = (run(found.partials.plan, rows=lambda scan: rows_at(place, {"event"}, grew)[scan.table]) for place in (0, 1))  # noqa: B023
    added = run(found.plan, {"event@change": change_of("event", grew)})
    assert merged(found, old, added) == merged(found, new)


def merged(found: Addition, *parts: pa.Table) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Partial results of all parts by key; a sum of no values is null, and a group without rows is gone."""
    plan, groups = found.partials.plan, dict[tuple[Any, ...], dict[str, Any]]()
    best = {output.name: EXTREMES.get(call.function) for output, call in calls_of(plan)}
    for row in (row for part in parts for row in part.to_pylist()):
        group = groups.setdefault(tuple(row[key.name] for key in plan.keys), {})
        for name, kind in best.items():
            values = [each for each in (group.get(name), row[name]) if each is not None]
            group[name] = {"min": min, "max": max, None: sum}[kind](values) if values else None
    for group in groups.values():
        group |= {name: None for name, count in found.partials.values.items() if not group[count.name]}
    return {key: group for key, group in groups.items() if not plan.keys or group[found.partials.alive.name]}


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
