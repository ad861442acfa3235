"""Where a subplan of a progressive query is computed, and what of it is put off until the driver has a value."""

from __future__ import annotations

from dataclasses import dataclass

from nearly.plan.expressions import Column, Expression, columns_of
from nearly.plan.nodes import Filter, Join, Output, Plan, Project, Scan
from nearly.rewrite.stream.cut import passed

STATIC, UNITS, DRIVER = "static", "units", "driver"


class Conflict(Exception):
    """These scans cannot be streamed together with the rest."""

    def __init__(self, scans: frozenset[Scan]) -> None:
        super().__init__("scans cannot be streamed together")
        self.scans = scans


@dataclass(frozen=True, slots=True)
class Lookup:
    """A join with rows of the driver, put off."""

    kind: str
    right: Plan
    condition: Expression | None


@dataclass(frozen=True, slots=True)
class Test:
    """A filter that needs a value of the driver, put off."""

    predicate: Expression


@dataclass(frozen=True, slots=True)
class Extend:
    """Columns that need a value of the driver, put off."""

    outputs: tuple[Output, ...]


Pending = Lookup | Test | Extend


def apply(pending: tuple[Pending, ...], plan: Plan) -> Plan:
    """What was put off, done."""
    for step in pending:
        match step:
            case Lookup():
                plan = Join(plan, step.right, step.kind, step.condition)
            case Test():
                plan = Filter(plan, step.predicate)
            case Extend():
                plan = Project(plan, (*passed(plan.columns), *step.outputs))
    return plan


@dataclass(frozen=True, slots=True)
class At:
    """A subplan and where it is computed. `pending` applies to rows of units only; `made` are the columns it will make."""

    plan: Plan
    where: str
    scans: frozenset[Scan] = frozenset()
    unit: Column | None = None
    by: frozenset[str] = frozenset()
    pending: tuple[Pending, ...] = ()
    made: frozenset[str] = frozenset()

    def needs_driver(self, expression: Expression) -> bool:
        return bool(columns_of(expression) & self.made)


def reads_of(pending: tuple[Pending, ...]) -> frozenset[str]:
    """Columns that the steps read."""
    names: set[str] = set()
    for step in pending:
        match step:
            case Lookup():
                names |= columns_of(step.condition) if step.condition is not None else set()
            case Test():
                names |= columns_of(step.predicate)
            case Extend():
                names |= {name for output in step.outputs for name in columns_of(output.expression)}
    return frozenset(names)
