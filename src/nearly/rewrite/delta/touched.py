"""The keys that occur in a change, and plans restricted to their groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearly.plan.expressions import TRUE, Column, Expression
from nearly.plan.nodes import GroupBy, Join, Limit, Output, Plan, Project
from nearly.rewrite.delta.changed import ChangedRows, Deltas
from nearly.rewrite.delta.restrict import Match, restrict


@dataclass(frozen=True, slots=True)
class Touched:
    """The touched keys, as rows; with no keys, the change itself, which only must not be empty."""

    rows: Plan
    keys: tuple[Column, ...]

    def of(self, deltas: Deltas, plan: Plan, values: Sequence[Expression]) -> Plan:
        """The rows of a plan whose values are touched."""
        if not self.keys:
            return Join(plan, Limit(Project(self.rows, ()), 1), "semi", TRUE)
        matches = [Match(value, key) for value, key in zip(values, self.keys, strict=True)]
        return restrict(plan, matches, self.rows, deltas.fresh)


def touched_keys(deltas: Deltas, change: ChangedRows, values: Sequence[Expression]) -> Touched:
    """What some expressions are in the rows of a change, each combination once."""
    if not values:
        return Touched(change.plan, ())
    keys = tuple(Output(deltas.fresh("touched"), value) for value in values)
    rows = deltas.stage("touched", GroupBy(change.plan, keys, ()))
    return Touched(rows, tuple(key.column for key in keys))
