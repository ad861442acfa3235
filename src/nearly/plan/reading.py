"""How a stored table is read whose rows are not what users see: the plan from its rows to theirs.

A view keeps partial sums, groups that a HAVING hides, and keys that nobody selects; its reading makes the view of them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import Column, Expression, SortKey, transform
from nearly.plan.nodes import Field, Input, Output, Plan, Project, Scan

STORED = "stored"
"""The name of the input that stands for the stored rows."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A plan over one input, the stored rows with all their columns in order, and the names that its columns have for users."""

    plan: Plan
    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The stored columns, under their names in the plan."""
        return next(node for node in self.plan.walk() if isinstance(node, Input) and node.source == STORED).given

    @property
    def is_plain(self) -> bool:
        """Whether every stored row is shown, by some of its columns as they are."""
        match self.plan:
            case Input():
                return True
            case Project(child=Input(), outputs=outputs):
                return all(isinstance(output.expression, Column) for output in outputs)
        return False

    def over(self, rows: Scan, fresh: FreshNames) -> Plan:
        """The plan over a scan of the stored table; every name in it is new."""
        taken = {column.name: field.name for column, field in zip(self.columns, rows.fields, strict=True)}
        return renamed(self.plan, taken, fresh).transform(lambda node: _replaced(node, rows))


def _replaced(node: Plan, rows: Scan) -> Plan:
    return rows if isinstance(node, Input) and node.source == STORED else node


def renamed(plan: Plan, names: dict[str, str], fresh: FreshNames) -> Plan:
    """The plan with new names for all its columns; those of some may be given. Law: it computes the same rows."""
    known = dict(names)
    for node in plan.walk():
        for column in node.columns:
            known.setdefault(column.name, fresh(column.name.rsplit("_", 1)[0]))

    def changed(value: Any) -> Any:
        match value:
            case Plan():
                return replace(value, **{field.name: changed(getattr(value, field.name)) for field in fields(value)})
            case Output():
                return Output(known[value.name], changed(value.expression))
            case Field():
                return replace(value, name=known[value.name])
            case Expression():
                return transform(value, spelled)
            case SortKey():
                return replace(value, expression=changed(value.expression))
            case tuple():
                return tuple(map(changed, value))
        return value

    def spelled(each: Expression) -> Expression:
        return replace(each, name=known.get(each.name, each.name)) if isinstance(each, Column) else each

    found: Plan = changed(plan)
    return found
