"""Where the rows of every subplan are: the one walk over a plan whose rows come in parts, be they sites or units of a sample.

A subplan's rows are `everywhere` (every part has them all), `apart` (each row in one part) or `together` (where the parts met).
A node stays apart where it commutes with the sum of the parts, f(a + b) = f(a) + f(b): filters, projections, UNION ALL, functions
over pieces, joins with rows that are everywhere. So does one whose rows that belong together are in one part: groupings, windows
and joins by the columns in `by`. For any other, parts must meet, and how they do is what a `Policy` decides: several sites send
rows, a progressive query gathers or puts off. Changes of tables fit as well: what did not change is everywhere, a change is apart.

Laws: the rows apart, of all parts together, are the subplan's. Rows equal in a column list of `by` are in the same part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from itertools import product
from typing import Any, ClassVar, Generic, Self, TypeVar

from nearly.errors import Unsupported
from nearly.plan.expressions import Column, WindowCall
from nearly.plan.nodes import Apply, Filter, GroupBy, Join, Limit, Output, Plan, Project, Scan, SetOperation, Sort, Values, Window
from nearly.plan.properties import after_join, equated

KEEPS_LEFT = frozenset({"left", "semi", "anti", "full"})
KEEPS_RIGHT = frozenset({"right", "full"})
"""Joins in which every row of that side comes out, or is decided on, exactly once."""

By = frozenset[tuple[str, ...]]
NOTHING: By = frozenset()


class Place(Enum):
    """Where the rows of a subplan are."""

    EVERYWHERE = auto()
    APART = auto()
    TOGETHER = auto()


@dataclass(frozen=True, slots=True)
class Placed:
    """A subplan that was placed; a policy adds what it must know of it."""

    plan: Plan
    place: Place
    by: By = NOTHING

    @property
    def apart(self) -> bool:
        return self.place is Place.APART

    @property
    def ready(self) -> bool:
        """Whether the rows are there as they are to be; a policy may put off some of what makes them."""
        return True

    def holds(self, names: frozenset[str]) -> bool:
        """Whether rows equal in these columns are in one part."""
        return self.ready and any(set(each) <= names for each in self.by)

    def over(self, plan: Plan) -> Self:
        """A node on top, in the same place; only columns that it still has can tell what is in one part."""
        return replace(self, plan=plan, by=frozenset(names for names in self.by if set(names) <= plan.names))


P = TypeVar("P", bound=Placed)


class Policy(ABC, Generic[P]):
    """What is known at the leaves, and what is done where parts must meet."""

    purpose: ClassVar[str]

    @abstractmethod
    def scan(self, plan: Scan) -> P:
        """A table: everywhere, or apart."""

    @abstractmethod
    def constant(self, plan: Plan, rows: int) -> P:
        """Constant rows, which are everywhere."""

    @abstractmethod
    def met(self, child: P) -> P:
        """All rows in one place."""

    def once(self, placed: P) -> P:
        """A node whose result is open (any ten rows, ties in any order) must not come out differently in each part."""
        return placed

    def rely(self) -> None:
        """From here on the plan is right only if rows equal in `by` are in one part."""

    def on(self, plan: Plan, child: P) -> P:
        """A node on top of rows, where they are."""
        return child.over(plan.map_children(lambda _: child.plan))

    def filter(self, plan: Filter, child: P) -> P:
        return self.on(plan, child)

    def project(self, plan: Project, child: P) -> P:
        """`child.by` is in the names of the projection already."""
        return replace(child, plan=replace(plan, child=child.plan))

    def window_apart(self, plan: Window, child: P) -> P:
        """Partitions that cross parts."""
        return self.on(plan, self.met(child))

    @abstractmethod
    def group(self, plan: GroupBy, child: P) -> P:
        """Groups that do not cross parts; `child.by` is in the names of the keys already."""

    @abstractmethod
    def group_apart(self, plan: GroupBy, child: P) -> P:
        """Groups that cross parts."""

    @abstractmethod
    def union_apart(self, plan: SetOperation, left: P, right: P) -> P:
        """UNION ALL of rows that are apart on both sides."""

    @abstractmethod
    def set_operation(self, plan: SetOperation, left: P, right: P) -> P:
        """Any other set operation."""

    def meet(self, plan: Join, left: P, right: P) -> bool:
        """Whether rows that a join equates, both apart, are in the same part."""
        pairs = {(a.name, b.name) for a, b in equated(plan) if a.type == b.type}
        matches = ((one, other) for one, other in product(left.by, right.by) if len(one) == len(other))
        return any(pairs.issuperset(zip(one, other, strict=True)) for one, other in matches)

    @abstractmethod
    def join(self, plan: Join, left: P, right: P) -> P:
        """A join where its rows are: both sides everywhere, or apart and meeting, or one apart and the other everywhere."""

    @abstractmethod
    def join_apart(self, plan: Join, left: P, right: P) -> P:
        """Any other join."""


@dataclass(frozen=True, slots=True)
class Placement(Generic[P]):
    """The walk: each subplan is placed once, from the leaves up."""

    policy: Policy[P]
    known: dict[Plan, P] = field(default_factory=dict)

    def place(self, plan: Plan) -> P:
        if plan not in self.known:
            rule = RULES.get(type(plan))
            if rule is None:
                raise Unsupported(f"{type(plan).__name__} has no rule for {self.policy.purpose}")
            self.known[plan] = rule(self, plan)
        return self.known[plan]

    def project(self, plan: Project) -> P:
        child = self.place(plan.child)
        return self.policy.project(plan, replace(child, by=renamed(child.by, plan.outputs)))

    def group(self, plan: GroupBy) -> P:
        child = self.place(plan.child)
        by = renamed(child.by, plan.keys) if plan.sets is None and child.ready else NOTHING
        if child.apart and not by:
            return self.policy.group_apart(plan, child)
        if by:
            self.policy.rely()
        return self.policy.group(plan, replace(child, by=by))

    def window(self, plan: Window) -> P:
        child = self.place(plan.child)
        if not child.apart:
            return self.policy.once(self.policy.on(plan, child))
        if not all(child.holds(names) for names in partitions(plan)):
            return self.policy.window_apart(plan, child)
        self.policy.rely()
        return self.policy.on(plan, child)

    def set_operation(self, plan: SetOperation) -> P:
        left, right = self.place(plan.left), self.place(plan.right)
        if plan.kind == "union" and plan.every and all(side.apart and side.ready for side in (left, right)):
            return self.policy.union_apart(plan, left, right)
        return self.policy.set_operation(plan, left, right)

    def sort(self, plan: Sort) -> P:
        child = self.place(plan.child)
        return self.policy.on(plan, self.policy.met(child) if child.apart else child)

    def limit(self, plan: Limit) -> P:
        """No part hands over more rows than the limit can take; the sort that decides which is repeated where they meet."""
        ordered = plan.child if isinstance(plan.child, Sort) else None
        child = self.place(ordered.child if ordered else plan.child)

        def first(limit: Limit, rows: P) -> P:
            return self.policy.on(limit, self.policy.on(ordered, rows) if ordered else rows)

        if not child.apart:
            return self.policy.once(first(plan, child))
        if child.ready and plan.count is not None:
            child = first(Limit(plan.child, plan.count + plan.offset), child)
        return first(plan, self.policy.met(child))

    def apply(self, plan: Apply) -> P:
        """A function that takes rows in pieces is given those of a part; any other needs all of them in one place."""
        child = self.place(plan.child)
        if child.apart and (plan.keys is not None or not child.ready):
            return self.policy.on(plan, self.policy.met(child))
        if child.by:
            self.policy.rely()
        return self.policy.once(self.policy.on(plan, child))

    def join(self, plan: Join) -> P:
        left, right = self.place(plan.left), self.place(plan.right)
        match left.place, right.place:
            case (Place.APART, Place.APART):
                local = left.ready and right.ready and self.policy.meet(plan, left, right)
                if local:
                    self.policy.rely()
            case (Place.APART, Place.EVERYWHERE):
                local = plan.kind not in KEEPS_RIGHT
            case (Place.EVERYWHERE, Place.APART):
                local = plan.kind not in KEEPS_LEFT
            case _:
                local = left.place is right.place is Place.EVERYWHERE
        return self.policy.join(plan, left, right) if local else self.policy.join_apart(plan, left, right)


RULES: dict[type[Plan], Callable[..., Any]] = {
    Scan: lambda walk, plan: walk.policy.scan(plan),
    Values: lambda walk, plan: walk.policy.constant(plan, len(plan.rows)),
    Filter: lambda walk, plan: walk.policy.filter(plan, walk.place(plan.child)),
    Project: Placement.project,
    Join: Placement.join,
    GroupBy: Placement.group,
    Window: Placement.window,
    SetOperation: Placement.set_operation,
    Sort: Placement.sort,
    Limit: Placement.limit,
    Apply: Placement.apply,
}


def renamed(by: By, outputs: tuple[Output, ...]) -> By:
    """Column lists in the names under which they come out; those that lose a column are gone."""
    names: dict[str, list[str]] = {}
    for output in outputs:
        if isinstance(output.expression, Column):
            names.setdefault(output.expression.name, []).append(output.name)
    return frozenset(each for old in by for each in product(*(names.get(name, ()) for name in old)))


def joined_by(plan: Join, left: By, right: By) -> By:
    """What is in one part after a join: a row with nulls for a side is where the other side's row is."""
    return after_join(plan, left, right)


def partitions(plan: Window) -> list[frozenset[str]]:
    """The columns that each window call is partitioned by."""
    calls = [output.expression for output in plan.outputs if isinstance(output.expression, WindowCall)]
    return [frozenset(each.name for each in call.partition if isinstance(each, Column)) for call in calls]
