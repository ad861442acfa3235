"""Waiting rows: those of one side of a join whose partner, told by a key of the other side's table, has not arrived.

Law: a row that comes to a table that only grows has a key that was not there. So of the rows that were on the other side of a join
by that key, it meets waiting ones only. Filters of the table make no difference: a row that they drop is a partner, too.
The keys that it is given must be those of tables whose new rows were refused where their key was there; files that appear are not.
Law of renewals: rows that wait now are those that waited and met nothing that came, and those that came and meet nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from nearly.plan.expressions import Call, Column, conjunction
from nearly.plan.nodes import Field, Filter, Join, Plan, Project, Scan, SetOperation, passed
from nearly.plan.properties import equated
from nearly.plan.types import BOOLEAN, FRACTIONS
from nearly.rewrite.delta.changed import Deltas
from nearly.rewrite.delta.outer_joins import joined_now
from nearly.rewrite.logical.order_joins import is_inner

KeyOf = Callable[[str], Sequence[str]]
"""The columns that tell the rows of a table apart, by its name; none where that is not known."""
LEFT, RIGHT = 0, 1


def waiting_rows(join: Join, side: int, key_of: KeyOf) -> Join | None:
    """The rows of a side, 0 or 1, without a partner in the other side's table; None where the join is not by a key of one table.

    Null has no partner: rows with a null there wait for ever. Doubles are left out, of which unequal ones may meet.
    """
    mine, other = _sides(join)[side]
    leaf = _leaf(other)
    if join.kind != "inner" or leaf is None:
        return None
    partners: dict[str, tuple[Column, Field]] = {}
    fields = _passed_fields(other, leaf)
    for pair in equated(join):
        own, theirs = pair if side == LEFT else pair[::-1]
        field = fields.get(theirs.name)
        if field is not None and own.type == field.type and field.type not in FRACTIONS:
            partners.setdefault(field.source, (own, field))
    key = [partners.get(name) for name in key_of(leaf.table)]
    found = [each for each in key if each is not None]
    if not found or len(found) < len(key) or mine.names & {field.name for _, field in found}:
        return None
    tests = [Call(BOOLEAN, "=", (own, Column(field.type, field.name))) for own, field in found]
    return Join(mine, replace(leaf, fields=tuple(field for _, field in found)), "anti", conjunction(tests))


def stored_waiting(deltas: Deltas, plan: Plan) -> dict[tuple[Plan, Plan], Plan]:
    """Where waiting rows of the sides of inner joins lie, by the side that waits and the one that it waits for.

    Only of those joins whose other side's table did not shrink: rows that went had partners, and so had those that changed.
    """
    found = {}
    for node in _cluster(plan) if deltas.stored else ():
        for side, (mine, other) in enumerate(_sides(node)):
            rows = waiting_rows(node, side, lambda name: deltas.keys.get(name.lower(), ()))
            if rows is not None and rows in deltas.stored and _only_came(deltas, other):
                found[mine, other] = deltas.stored[rows]
    return found


@dataclass(frozen=True, slots=True)
class Renewal:
    """All rows of a part as they are now, told by those that are stored as they were."""

    plan: Plan


def renewal(deltas: Deltas, plan: Plan) -> Renewal | None:
    """The rows of an anti join that is stored, where rows only came on both sides; None where some went, or nothing changed."""
    if not isinstance(plan, Join) or plan.kind != "anti" or plan not in deltas.stored or not deltas.touches(plan):
        return None
    if not _only_came(deltas, plan.left) or not _only_came(deltas, plan.right):
        return None
    left, right = deltas.kept(plan.left), deltas.kept(plan.right)
    stay = deltas.old(plan) if right is None else Join(deltas.old(plan), right.plan, "anti", plan.condition)
    if left is None:
        return Renewal(stay)
    came = Project(joined_now(deltas, plan, left).plan, passed(plan.columns))
    return Renewal(SetOperation(Project(stay, passed(plan.columns)), came, "union", True, plan.columns))


def _cluster(plan: Plan) -> Iterator[Join]:
    """Inner joins that lie directly upon each other."""
    if isinstance(plan, Join) and is_inner(plan):
        yield plan
        yield from _cluster(plan.left)
        yield from _cluster(plan.right)


def _only_came(deltas: Deltas, plan: Plan) -> bool:
    change = deltas.kept(plan)
    return change is None or change.ones


def _sides(join: Join) -> tuple[tuple[Plan, Plan], tuple[Plan, Plan]]:
    return (join.left, join.right), (join.right, join.left)


def _leaf(plan: Plan) -> Scan | None:
    """The table whose rows, one by one, a plan has."""
    while isinstance(plan, Filter | Project):
        plan = plan.child
    return plan if isinstance(plan, Scan) else None


def _passed_fields(plan: Plan, leaf: Scan) -> dict[str, Field]:
    """The fields of a table by the names under which a plan passes them on."""
    if isinstance(plan, Project):
        below = _passed_fields(plan.child, leaf)
        columns = [(each.name, each.expression.name) for each in plan.outputs if isinstance(each.expression, Column)]
        return {name: below[passed] for name, passed in columns if passed in below}
    return _passed_fields(plan.child, leaf) if isinstance(plan, Filter) else {field.name: field for field in leaf.fields}
