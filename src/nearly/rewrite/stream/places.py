"""Where a subplan of a progressive query is computed, and what of it is put off until the driver has a value."""

from __future__ import annotations

from dataclasses import dataclass

from nearly.errors import Unsupported
from nearly.plan.expressions import Column, Expression, columns_of
from nearly.plan.nodes import Filter, Join, Output, Plan, Project, Scan, passed
from nearly.rewrite.placement import Placed


class CannotMeet(Exception):
    """These scans cannot be streamed together with the rest."""

    def __init__(self, scans: frozenset[Scan]) -> None:
        super().__init__("scans cannot be streamed together")
        self.scans = scans


@dataclass(frozen=True, slots=True)
class PendingJoin:
    """A join with rows of the driver, put off."""

    kind: str
    right: Plan
    condition: Expression | None


@dataclass(frozen=True, slots=True)
class PendingFilter:
    """A filter that needs a value of the driver, put off."""

    predicate: Expression


@dataclass(frozen=True, slots=True)
class PendingColumns:
    """Columns that need a value of the driver, put off."""

    outputs: tuple[Output, ...]


Pending = PendingJoin | PendingFilter | PendingColumns


def apply(pending: tuple[Pending, ...], plan: Plan) -> Plan:
    """What was put off, done."""
    for step in pending:
        match step:
            case PendingJoin():
                plan = Join(plan, step.right, step.kind, step.condition)
            case PendingFilter():
                plan = Filter(plan, step.predicate)
            case PendingColumns():
                plan = Project(plan, (*passed(plan.columns), *step.outputs))
    return plan


@dataclass(frozen=True, slots=True)
class Streamed(Placed):
    """A subplan whose rows come from streamed `scans`, and know their `unit` where they are apart.

    `pending` applies to rows of units only; `made` are the columns it will make.
    """

    scans: frozenset[Scan] = frozenset()
    unit: Column | None = None
    pending: tuple[Pending, ...] = ()
    made: frozenset[str] = frozenset()

    @property
    def ready(self) -> bool:
        return not self.pending

    @property
    def own_unit(self) -> Column:
        if self.unit is None:
            raise Unsupported("rows that belong to no unit cannot be grouped by it")
        return self.unit

    def needs_driver(self, expression: Expression | None) -> bool:
        return expression is not None and bool(columns_of(expression) & self.made)


def reads_of(pending: tuple[Pending, ...]) -> frozenset[str]:
    """Columns that the steps read."""
    names: set[str] = set()
    for step in pending:
        match step:
            case PendingJoin():
                names |= columns_of(step.condition) if step.condition is not None else set()
            case PendingFilter():
                names |= columns_of(step.predicate)
            case PendingColumns():
                names |= {name for output in step.outputs for name in columns_of(output.expression)}
    return frozenset(names)
