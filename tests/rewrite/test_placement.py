"""The walk over plans whose rows come in parts serves a policy that knows neither sites nor units: rows added to a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
import pytest

from nearly.errors import Unsupported
from nearly.plan.expressions import TRUE, Column
from nearly.plan.nodes import GroupBy, Join, Output, Plan, Scan, SetOperation
from nearly.plan.types import LONG
from nearly.rewrite.placement import Place, Placed, Placement, Policy, joined_by, renamed
from tests.rewrite import shop
from tests.rewrite.running import rows_differ, run

ADDED = 40
"""Rows of `event` from here on are added."""


@dataclass(frozen=True)
class Additions(Policy[Placed]):
    """What is apart is the difference that new rows of a table make; nothing is kept that other differences could be made of."""

    purpose: ClassVar[str] = "added rows"

    def scan(self, plan: Scan) -> Placed:
        return Placed(plan, Place.APART if plan.table == "event" else Place.EVERYWHERE)

    def constant(self, plan: Plan, rows: int) -> Placed:  # noqa: ARG002
        return Placed(plan, Place.EVERYWHERE)

    def refused(self, *_: object) -> Placed:
        raise Unsupported("needs the rows of before")

    met = group_apart = set_operation = join_apart = refused

    def group(self, plan: GroupBy, child: Placed) -> Placed:
        return child.over(replace(plan, child=child.plan))

    def union_apart(self, plan: SetOperation, left: Placed, right: Placed) -> Placed:
        return Placed(replace(plan, left=left.plan, right=right.plan), Place.APART)

    def join(self, plan: Join, left: Placed, right: Placed) -> Placed:
        place = Place.APART if left.apart or right.apart else Place.EVERYWHERE
        return Placed(replace(plan, left=left.plan, right=right.plan), place)


def rows_of(table: str, first: int, end: int) -> pa.Table:
    found = shop.tables()[table]
    return found.slice(first, end - first) if table == "event" else found


@pytest.mark.parametrize(
    "text",
    [
        "select k, v + 1 as more from event where v > 3",
        "select label, v from event join kind on event.kind = id",
        "select k, w from event left join visit on k = vk and w > 2",
        "select k from event where not exists (select 1 from visit where vk = k)",
        "select k a from event where v > 5 union all select kind from event",
        "select k, m from event join (select max(w) m, min(w) l from visit) t on k < m",
    ],
)
def test_law_the_new_rows_are_the_old_and_the_difference(text: str) -> None:
    plan = shop.planned(text)
    placed = Placement(Additions()).place(plan)
    assert placed.apart
    old = run(plan, rows=lambda scan: rows_of(scan.table, 0, ADDED))
    difference = run(placed.plan, rows=lambda scan: rows_of(scan.table, ADDED, 60))
    assert rows_differ(run(plan), pa.concat_tables([old, difference])) is None


@pytest.mark.parametrize(
    "text",
    [
        "select kind, count(*) c from event group by kind",
        "select k from event order by v",
        "select k from event limit 3",
        "select k, rank() over (order by v) r from event",
        "select label from kind left join event on event.kind = id",
        "select a.k from event a join event b on a.k = b.k",
        "select k a from event union select vk from visit",
    ],
)
def test_what_does_not_commute_is_left_to_the_policy(text: str) -> None:
    with pytest.raises(Unsupported, match="needs"):
        Placement(Additions()).place(shop.planned(text))


def test_a_column_list_has_every_name_under_which_it_comes_out() -> None:
    a, b = Column(LONG, "a"), Column(LONG, "b")
    outputs = (Output("x", a), Output("y", a), Output("z", b))
    assert renamed(frozenset({("a", "b"), ("c",)}), outputs) == {("x", "z"), ("y", "z")}


def test_unmatched_rows_are_where_their_own_side_is() -> None:
    left, right = (Scan(name, ()) for name in ("event", "visit"))
    sides = frozenset({("a",)}), frozenset({("b",)})
    found = {kind: joined_by(Join(left, right, kind, TRUE), *sides) for kind in ("inner", "left", "right", "full", "semi")}
    assert found == {"inner": sides[0] | sides[1], "left": sides[0], "right": sides[1], "full": frozenset(), "semi": sides[0]}
