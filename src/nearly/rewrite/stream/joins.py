"""Joins of a progressive query, by where their sides are computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from nearly.plan.nodes import Join, Plan, Scan
from nearly.plan.properties import equated
from nearly.plan.schema import FindTable
from nearly.rewrite.stream.places import DRIVER, STATIC, UNITS, At, Conflict, Lookup


class Placing(Protocol):
    """What a join needs of the pass around it."""

    ranged: bool

    @property
    def find_table(self) -> FindTable: ...

    def place(self, plan: Plan) -> At: ...

    def gathered(self, at: At) -> Plan: ...


@dataclass(frozen=True, slots=True)
class Joining:
    """One join, by where its sides are."""

    streamer: Placing
    plan: Join

    def placed(self) -> At:
        left, right = self.streamer.place(self.plan.left), self.streamer.place(self.plan.right)
        rules: dict[tuple[str, str], Callable[[At, At], At]] = {
            (STATIC, STATIC): self._local,
            (UNITS, STATIC): self._with_static,
            (STATIC, UNITS): self._static_with,
            (UNITS, UNITS): self._together,
            (UNITS, DRIVER): self._put_off,
            (DRIVER, UNITS): self._put_off_swapped,
        }
        return rules.get((left.where, right.where), self._at_driver)(left, right)

    def _local(self, left: At, right: At) -> At:
        return replace(left, plan=replace(self.plan, left=left.plan, right=right.plan), scans=left.scans | right.scans)

    def _with_static(self, left: At, right: At) -> At:
        if self.plan.kind in ("right", "full"):
            raise Conflict(left.scans)
        if self.plan.condition is not None and left.needs_driver(self.plan.condition):
            rows = self.streamer.gathered(right)
            return self._later(left, Lookup(self.plan.kind, rows, self.plan.condition), rows)
        return self._local(left, right)

    def _static_with(self, left: At, right: At) -> At:
        if self.plan.kind not in ("inner", "cross", "right"):
            raise Conflict(right.scans)
        if right.pending:
            return self._at_driver(left, right)
        return replace(right, plan=replace(self.plan, left=left.plan, right=right.plan))

    def _together(self, left: At, right: At) -> At:
        """Two streamed sides meet inside units when the join equates what both are clustered by."""
        pairs = {(a.name, b.name) for a, b in equated(self.plan) if a.type == b.type}
        meet = any((a, b) in pairs for a in left.by for b in right.by)
        if not meet or self.plan.kind == "full" or right.pending or left.pending:
            raise Conflict(self._given_up(left, right))
        self.streamer.ranged = True
        kind = self.plan.kind
        unit, by = (right.unit, right.by) if kind == "right" else (left.unit, left.by)
        if kind in ("inner", "cross"):
            by = left.by | right.by
        return At(replace(self.plan, left=left.plan, right=right.plan), UNITS, left.scans | right.scans, unit, by)

    def _given_up(self, left: At, right: At) -> frozenset[Scan]:
        """Which side is read whole instead: the one that only decides about rows of the other, else the smaller."""
        if self.plan.kind in ("left", "semi", "anti"):
            return right.scans
        if self.plan.kind in ("right", "full"):
            return left.scans
        sizes = [sum(self.streamer.find_table(scan.table).rows for scan in side.scans) for side in (left, right)]
        return left.scans if sizes[0] < sizes[1] else right.scans

    def _put_off(self, left: At, right: At) -> At:
        if self.plan.kind in ("right", "full"):
            return self._at_driver(left, right)
        return self._later(left, Lookup(self.plan.kind, right.plan, self.plan.condition), right.plan)

    def _put_off_swapped(self, left: At, right: At) -> At:
        if self.plan.kind not in ("inner", "cross"):
            return self._at_driver(left, right)
        return self._later(right, Lookup(self.plan.kind, left.plan, self.plan.condition), left.plan)

    def _later(self, rows: At, lookup: Lookup, found: Plan) -> At:
        made = frozenset() if lookup.kind in ("semi", "anti") else found.names
        return replace(rows, pending=(*rows.pending, lookup), made=rows.made | made)

    def _at_driver(self, left: At, right: At) -> At:
        sides = [self.streamer.gathered(side) for side in (left, right)]
        return At(replace(self.plan, left=sides[0], right=sides[1]), DRIVER, left.scans | right.scans)
