"""Only rows with certain keys: a semi join with the keys, as far down as it can go, to both sides of joins that equate them.

Law: the rows of the result are those of the plan whose values are among the keys, null being equal to null. Restricting inputs by
what their rows must be equal to drops only rows that the result would not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import Call, Column, Expression, WindowCall, columns_of, conjunction, substitute
from nearly.plan.nodes import Filter, GroupBy, Input, Join, Output, Plan, Project, Scan, SetOperation, Sort, Window
from nearly.plan.properties import equated
from nearly.plan.types import BOOLEAN


@dataclass(frozen=True, slots=True)
class Match:
    """An expression over a plan's columns, and the column of the keys that it must be equal to."""

    value: Expression
    key: Column


@dataclass(frozen=True, slots=True)
class Keys:
    """Rows of a stage whose columns are the keys."""

    rows: Plan
    fresh: FreshNames


def restrict(plan: Plan, matches: Sequence[Match], rows: Plan, fresh: FreshNames) -> Plan:
    """The plan's rows for which some row of the keys is equal in all matches; the plan itself when there is nothing to match."""
    if not matches:
        return plan
    return _restricted(plan, tuple(matches), Keys(rows, fresh))


def _restricted(plan: Plan, matches: tuple[Match, ...], keys: Keys) -> Plan:
    """Exactly the rows that match."""
    reduced, done = _below(plan, matches, keys)
    return reduced if done else _semi(reduced, matches, keys)


def _semi(plan: Plan, matches: tuple[Match, ...], keys: Keys) -> Plan:
    """The semi join itself; the keys get names of their own, since they may be used several times in a plan."""
    used = list(dict.fromkeys(match.key for match in matches))
    named = {column: Output(keys.fresh("key"), column) for column in used}
    test = conjunction(tuple(Call(BOOLEAN, "<=>", (match.value, named[match.key].column)) for match in matches))
    return plan if test is None else Join(plan, Project(keys.rows, tuple(named.values())), "semi", test)


def _below(plan: Plan, matches: tuple[Match, ...], keys: Keys) -> tuple[Plan, bool]:
    """The plan over fewer rows, and whether these are exactly those that match."""
    match plan:
        case Project():
            values = {output.name: output.expression for output in plan.outputs}
            return replace(plan, child=_restricted(plan.child, _substituted(matches, values), keys)), True
        case Filter() | Sort():
            return replace(plan, child=_restricted(plan.child, matches, keys)), True
        case GroupBy(sets=None):
            return _below_groups(plan, matches, keys)
        case Window():
            return _below_window(plan, matches, keys)
        case Join():
            return _below_join(plan, matches, keys)
        case SetOperation():
            sides = [_restricted(side, _by_place(plan, side, matches), keys) for side in (plan.left, plan.right)]
            return replace(plan, left=sides[0], right=sides[1]), True
    return plan, False


def _substituted(matches: Sequence[Match], values: dict[str, Expression]) -> tuple[Match, ...]:
    return tuple(replace(each, value=substitute(each.value, values)) for each in matches)


def _by_place(plan: SetOperation, side: Plan, matches: tuple[Match, ...]) -> tuple[Match, ...]:
    return _substituted(matches, {a.name: b for a, b in zip(plan.given, side.columns, strict=True)})


def _below_groups(plan: GroupBy, matches: tuple[Match, ...], keys: Keys) -> tuple[Plan, bool]:
    """Keys decide on whole groups; a match with an aggregate waits until it is there."""
    values = {key.name: key.expression for key in plan.keys}
    early = tuple(each for each in matches if columns_of(each.value) and columns_of(each.value) <= set(values))
    if not early:
        return plan, False
    return replace(plan, child=_restricted(plan.child, _substituted(early, values), keys)), len(early) == len(matches)


def common_partition(plan: Window) -> tuple[Expression, ...]:
    """What all windows are partitioned by."""
    parts = [output.expression.partition for output in plan.outputs if isinstance(output.expression, WindowCall)]
    return tuple(each for each in dict.fromkeys(parts[0]) if all(each in other for other in parts[1:])) if parts else ()


def _below_window(plan: Window, matches: tuple[Match, ...], keys: Keys) -> tuple[Plan, bool]:
    """Whole partitions can be left out."""
    parts = common_partition(plan)
    early = tuple(each for each in matches if each.value in parts)
    if not early:
        return plan, False
    return replace(plan, child=_restricted(plan.child, early, keys)), len(early) == len(matches)


_DECIDED_BY = {"inner": (True, True), "cross": (True, True), "left": (True, False), "right": (False, True),
               "semi": (True, False), "anti": (True, False), "full": (False, False)}  # fmt: skip
"""For each kind of join, whether leaving out rows of its left and right side leaves out exactly their rows of the result."""


def _below_join(plan: Join, matches: tuple[Match, ...], keys: Keys) -> tuple[Plan, bool]:
    """A side that decides takes its matches, and the other those with what is equated to them."""
    sides, exact = [], False
    for side, other, decides in zip((plan.left, plan.right), (plan.right, plan.left), _DECIDED_BY[plan.kind], strict=True):
        mine = tuple(each for each in matches if columns_of(each.value) and columns_of(each.value) <= side.names) if decides else ()
        exact = exact or len(mine) == len(matches)
        if plan.kind != "full" and len(mine) < len(matches):
            mine = (*mine, *_through_equality(plan, side, [each for each in matches if each not in mine], other))
        sides.append(_restricted(side, mine, keys) if mine else side)
    return replace(plan, left=sides[0], right=sides[1]), exact


def _through_equality(plan: Join, side: Plan, matches: Sequence[Match], other: Plan) -> list[Match]:
    """Matches of the other side's columns, for the columns of this side that must be equal to them.

    The other side must be the one whose rows are kept: only then rows of this side without a match there do not show.
    """
    decided = _DECIDED_BY[plan.kind][0 if other is plan.left else 1]
    if not decided:
        return []
    pairs = [(a, b) if side is plan.left else (b, a) for a, b in equated(plan, ("=", "<=>"))]
    return [Match(mine, each.key) for each in matches for mine, theirs in pairs if each.value == theirs]


def is_simple(plan: Plan) -> bool:
    """Whether a plan only reads rows of one table or stage: then a join with few rows reads it quickly by itself."""
    while isinstance(plan, Filter | Project):
        plan = plan.child
    return isinstance(plan, Scan | Input)


def equal_pairs(mine: Plan, theirs: Plan, parts: Sequence[Expression]) -> list[tuple[Expression, Expression]]:
    """Expressions over one plan, and those over another that conditions make equal to them."""
    found: list[tuple[Expression, Expression]] = []
    for part in parts:
        if isinstance(part, Call) and part.function in ("=", "<=>"):
            for first, second in (part.arguments, part.arguments[::-1]):
                reads = columns_of(first), columns_of(second)
                if all(reads) and reads[0] <= mine.names and reads[1] <= theirs.names:
                    found.append((first, second))
    return found
