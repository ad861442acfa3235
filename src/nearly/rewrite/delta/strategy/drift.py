"""Sums of doubles, whose last digits hang on the order of addition: computed again, an old row need not be the row that is stored.

That does no harm to rows that are found by a key. It does where such a value itself says which rows there are, or belong together:
as a key of groups, as part of a row of a set, in an equality, as the greatest of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache

from nearly.plan.expressions import AggregateCall, Call, Column, Expression, WindowCall, columns_of, walk
from nearly.plan.nodes import Filter, GroupBy, Join, Limit, Output, Plan, Project, SetOperation, Window
from nearly.plan.types import FRACTIONS
from nearly.rewrite.delta.partials import EXTREMES, is_mergeable
from nearly.rewrite.delta.with_partials import order_of

ADDED_UP, COUNTS = frozenset({"sum", "avg"}), frozenset({"count", "count_if"})
STATISTICS = frozenset({"stddev", "stddev_pop", "variance", "var_pop", "corr", "covar_samp", "covar_pop"})
EQUALITIES, ORDERS = frozenset({"=", "<>", "<=>", "in"}), frozenset({"<", "<=", ">", ">="})


def decides_by_drift(plan: Plan) -> bool:
    """Whether an operator's rows hang on the last digits of sums of doubles below it."""
    drifting = frozenset[str]().union(*(drifts(child) for child in plan.children))
    return bool(drifting) and any(columns_of(each) & drifting for each in _decisive(plan, drifting))


def hangs_on_drift(plan: Plan) -> bool:
    """The same, where it also counts whether a sum just reaches a threshold, and which of two that are all but equal is first.

    What is added to for ever must not hang on that: a row that is taken away, as it is computed again, need not be the one added.
    """
    drifting = frozenset[str]().union(*(drifts(child) for child in plan.children))
    return bool(drifting) and (decides_by_drift(plan) or any(columns_of(each) & drifting for each in _compared(plan)))


def _compared(plan: Plan) -> Iterator[Expression]:
    """What tells which rows an operator has, which come first, and what is added to groups; sums of doubles are not added to."""
    match plan:
        case Filter() | Join():
            yield from plan.expressions()
        case GroupBy():
            added = (each.expression for each in plan.aggregates if is_mergeable(each))
            yield from (call for call in added if not _counts_values(call))
        case Window():
            calls = (each.expression for each in plan.outputs)
            yield from (key.expression for call in calls if isinstance(call, WindowCall) for key in call.order)
        case Limit():
            keys = order_of(plan.child)
            yield from plan.child.columns if keys is None else (key.expression for key in keys)


def _counts_values(call: Expression) -> bool:
    """Whether a value counts whatever it is: none of them becomes null."""
    return isinstance(call, AggregateCall) and call.function == "count" and all(isinstance(each, Column) for each in call.arguments)


@lru_cache(maxsize=4096)
def drifts(plan: Plan) -> frozenset[str]:
    """The columns of a plan whose last digits may be others each time."""
    below = frozenset[str]().union(*(drifts(child) for child in plan.children))
    match plan:
        case Project():
            return _made(plan.outputs, below)
        case GroupBy():
            return _made((*plan.keys, *plan.aggregates), below)
        case Window():
            return below | _made(plan.outputs, below)
        case SetOperation():
            sides = zip(plan.given, plan.left.columns, plan.right.columns, strict=True)
            return frozenset(mine.name for mine, *theirs in sides if any(each.name in below for each in theirs))
    return below & plan.names


def _made(outputs: Iterable[Output], below: AbstractSet[str]) -> frozenset[str]:
    return frozenset(each.name for each in outputs if _is_drifting(each.expression, below))


def _is_drifting(expression: Expression, below: AbstractSet[str]) -> bool:
    """Whether a value is made of drifting ones, or drifts itself; how many values there are does not."""
    if isinstance(expression, AggregateCall) and expression.function in COUNTS:
        return False
    added = (each for each in walk(expression) if isinstance(each, AggregateCall))
    return any(map(_adds_doubles, added)) or bool(columns_of(expression) & below)


def _adds_doubles(call: AggregateCall) -> bool:
    return call.function in STATISTICS or (call.function in ADDED_UP and call.arguments[0].type in FRACTIONS)


def _decisive(plan: Plan, drifting: AbstractSet[str]) -> Iterator[Expression]:
    """What decides on the rows of an operator by more than about how large it is."""
    match plan:
        case GroupBy():
            yield from (key.expression for key in plan.keys)
            yield from (each.expression for each in plan.aggregates if _is_extreme(each.expression))
        case Window():
            yield from (
                part for each in plan.outputs if isinstance(each.expression, WindowCall) for part in each.expression.partition
            )
        case SetOperation() if plan.kind != "union" or not plan.every:
            yield from (*plan.left.columns, *plan.right.columns)
    for part in (part for top in plan.expressions() for part in walk(top)):
        if isinstance(part, Call) and _is_close(part, drifting):
            yield from part.arguments


def _is_close(test: Call, drifting: AbstractSet[str]) -> bool:
    """Whether the last digits matter to a comparison: of equality, or of two drifting values."""
    return test.function in EQUALITIES or (test.function in ORDERS and all(columns_of(each) & drifting for each in test.arguments))


def _is_extreme(expression: Expression) -> bool:
    return isinstance(expression, AggregateCall) and expression.function in EXTREMES
