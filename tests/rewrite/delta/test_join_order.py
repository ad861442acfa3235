"""The terms of a join take tables in an order in which rows do not multiply: by keys first, by shared values last."""

from __future__ import annotations

from nearly.plan.expressions import Call, Column
from nearly.plan.nodes import Field, Input, Join, Plan, Scan
from nearly.plan.types import BOOLEAN, LONG
from nearly.rewrite.delta.changed import TableChange
from nearly.rewrite.delta.delta import deltas_of

KEYS = {"items": ("item",), "orders": ("order",), "people": ("person",), "shops": ("shop",)}


def table(name: str, *columns: str) -> Scan:
    return Scan(name, tuple(Field(f"{name}_{each}", each, LONG, False) for each in columns))


def same(left: str, right: str) -> Call:
    return Call(BOOLEAN, "=", (Column(LONG, left), Column(LONG, right)))


def both(*tests: Call) -> Call:
    first, *others = tests
    for each in others:
        first = Call(BOOLEAN, "and", (first, each))
    return first


def bought_near() -> Plan:
    """What people bought in shops of their own country."""
    people, shops = table("people", "person", "country"), table("shops", "shop", "country")
    orders, items = table("orders", "order", "person"), table("items", "item", "order", "shop")
    near = Join(people, shops, "inner", same("people_country", "shops_country"))
    found = Join(near, orders, "inner", same("orders_person", "people_person"))
    return Join(found, items, "inner", both(same("items_order", "orders_order"), same("items_shop", "shops_shop")))


def joined_first(changed: str) -> str:
    """The table that the change of another one meets first."""
    stages, _ = deltas_of([bought_near()], {changed: TableChange.of(changed)}, {}, (), KEYS)
    for stage in stages:
        for node in reversed(list(stage.plan.walk())):
            if isinstance(node, Join) and isinstance(node.left, Input) and isinstance(node.right, Scan):
                return node.right.table.removesuffix("@before")
    raise AssertionError("no stage joins the change with a table")


def test_by_a_key_first() -> None:
    assert joined_first("items") in ("orders", "shops")


def test_what_only_a_row_itself_finds_before_shared_values() -> None:
    assert joined_first("people") == "orders"
    assert joined_first("shops") == "items"
