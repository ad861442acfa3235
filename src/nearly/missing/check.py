"""Constraints tested on rows of the past: did they hold?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nearly.engine.history import Check, Limits, example, measure
from nearly.missing.statements.bound_set import BoundConstraint, BoundSet
from nearly.missing.statements.constraint import Constraint


@dataclass(frozen=True, slots=True)
class Violation:
    """A constraint that the history breaks (None: rows that no constraint covers), and how.

    `kind` is `rows` (their number is out of bounds), `values` (some are out of their ranges) or `closure`.
    """

    constraint: Constraint | None
    kind: str
    found: int
    example: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        what = {
            "rows": f"{self.found} rows, outside {None if self.constraint is None else self.constraint.rows}",
            "values": f"{self.found} rows with values out of range, for example {self.example}",
            "closure": f"{self.found} rows that no constraint covers, for example {self.example}",
        }[self.kind]
        return what if self.constraint is None else f"{self.constraint.label}: {what}"


def check(frame: Any, bound: BoundSet) -> list[Violation]:
    """All violations of the constraints by the rows of a Spark frame, counted by Spark."""
    checks = [_check(each) for each in bound.constraints]
    measured = measure(frame, checks)
    found = []
    for constraint, test, counts in zip(bound.constraints, checks, measured.counts, strict=True):
        if counts.matching < constraint.low or (constraint.high is not None and counts.matching > constraint.high):
            found.append(Violation(constraint.given, "rows", counts.matching))
        if counts.violating:
            found.append(Violation(constraint.given, "values", counts.violating, example(frame, test)))
    if measured.uncovered:
        found.append(Violation(None, "closure", measured.uncovered, example(frame, None, checks)))
    return found


def _check(constraint: BoundConstraint) -> Check:
    """The constraint in the terms of the engine: its predicate as SQL, its ranges as limits on columns."""
    limits = []
    for name, given in constraint.given.values.items():
        limits.append(Limits(name, given.low, given.high, given.nullable))
    return Check(constraint.given.predicate, tuple(limits))
