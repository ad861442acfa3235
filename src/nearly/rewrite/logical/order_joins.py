"""Inner joins in an order that keeps the largest table in place and joins what filters it most first.

The order matters when rows move between sites: a plan in the order of the FROM clause may cross two tables that only a third one
connects. On one site the native engine orders joins itself.
Law: inner joins commute and associate, so the rows stay the same; a projection restores the order of the columns.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from nearly.plan.expressions import Call, Expression, columns_of, conjunction, conjuncts
from nearly.plan.nodes import Join, Plan, Project, passed
from nearly.plan.schema import FindTable
from nearly.rewrite.logical.sizes import Size, size


def order_joins(plan: Plan, find_table: FindTable) -> Plan:
    """The plan with every cluster of three or more inner joins put in order."""

    def change(node: Plan) -> Plan:
        if not is_inner(node):
            return node.map_children(change)
        found, parts = flattened(node)
        relations = [change(relation) for relation in found]
        if len(relations) < 3:
            return node.map_children(change)
        joined = _Ordering(tuple(parts), {relation: size(relation, find_table) for relation in relations}).joined()
        return Project(joined, passed(node.columns))

    return change(plan)


def is_inner(node: Plan) -> bool:
    """Whether a node is a join that treats both sides alike."""
    return isinstance(node, Join) and node.kind in ("inner", "cross")


def flattened(node: Plan, whole: Container[Plan] = ()) -> tuple[list[Plan], list[Expression]]:
    """What a cluster of inner joins joins, and the conditions that all of them ask for; joins below it may be left `whole`."""
    relations: list[Plan] = []
    parts: list[Expression] = []
    _flatten(node, relations, parts, whole)
    return relations, parts


def _flatten(node: Plan, relations: list[Plan], parts: list[Expression], whole: Container[Plan]) -> None:
    if not isinstance(node, Join) or not is_inner(node):
        relations.append(node)
        return
    for side in (node.left, node.right):
        if side in whole:
            relations.append(side)
        else:
            _flatten(side, relations, parts, whole)
    parts.extend(conjuncts(node.condition))


@dataclass(frozen=True, slots=True)
class _Ordering:
    parts: tuple[Expression, ...]
    sizes: dict[Plan, Size]

    def joined(self) -> Plan:
        """Greedy: start with the largest relation, then always join the connected one that keeps the smallest share of its rows.

        One that an equality connects comes before one that only another test does: without a key, all pairs of rows are compared.
        """
        current = max(self.sizes, key=lambda relation: self.sizes[relation].rows)
        waiting = [relation for relation in self.sizes if relation is not current]
        parts = list(self.parts)
        while waiting:
            connected = [each for each in waiting if connects(current, each, parts)]
            equated = [each for each in connected if connects(current, each, [part for part in parts if is_equality(part)])]
            chosen = min(equated or connected or waiting, key=self._urgency)
            waiting = [relation for relation in waiting if relation is not chosen]
            visible = current.names | chosen.names
            now = [part for part in parts if columns_of(part) <= visible]
            parts = [part for part in parts if part not in now]
            condition = conjunction(now)
            current = Join(current, chosen, "cross" if condition is None else "inner", condition)
        return current

    def _urgency(self, relation: Plan) -> tuple[float, float]:
        found = self.sizes[relation]
        return found.rows / max(found.base, 1.0), found.rows


def connects(current: Plan, other: Plan, parts: Sequence[Expression]) -> bool:
    """Whether a condition needs both plans, and nothing else."""
    visible = current.names | other.names
    return any(
        columns_of(part) <= visible and columns_of(part) & current.names and columns_of(part) & other.names for part in parts
    )


def is_equality(part: Expression) -> bool:
    """Whether rows that satisfy it are found by a key."""
    return isinstance(part, Call) and part.function in ("=", "<=>")
