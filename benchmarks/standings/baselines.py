"""Other ways to choose what is kept, as plans of this engine: nothing, everything, and a greedy cache.

Everything is what DBToaster's higher-order plans keep: all inputs and all connected subjoins. The cache is the Recycler: rows with
the greatest benefit, the cost to compute them over their size, as long as they fit, whatever will come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations

from nearly.engine.storage.layouts import Table
from nearly.plan import functions
from nearly.plan.expressions import columns_of, conjunction
from nearly.plan.nodes import GroupBy, Join, Limit, Output, Plan
from nearly.rewrite.logical.order_joins import connects, flattened, is_inner
from nearly.standing.actions import Allowed
from nearly.standing.operators import AGGREGATE, JOIN, SCAN, Operator
from nearly.standing.planner import StateBudget, StateProgramme
from nearly.standing.upkeep import Upkeep

MOST_ROWS = 20_000_000
"""A subjoin of more rows is not kept: its plan would not finish."""
ALL = StateBudget(float("inf"), float("inf"))


def everything(upkeep: Upkeep, tables: Mapping[str, Table], check: Callable[[], None]) -> list[Plan]:
    """All inputs, all connected subjoins, and the groups; `check` is called before each subjoin, and may end it."""
    root = upkeep.root(tables, {})
    found = {op.plan: None for op in root.walk() if op.kind in (SCAN, AGGREGATE, JOIN) and op.plan != upkeep.plan}
    for op in root.walk():
        if op.kind == JOIN and is_inner(op.plan) and not _is_below_join(root, op):
            for each in _subjoins(op.plan):
                check()
                if _count(upkeep, tables, each) <= MOST_ROWS:
                    found.setdefault(each)
    return list(found)


def _count(upkeep: Upkeep, tables: Mapping[str, Table], plan: Plan) -> int:
    """How many rows a subjoin has; one that has too many is not counted to its end, which would take minutes."""
    counted = GroupBy(Limit(plan, MOST_ROWS + 1), (), (Output("count", functions.aggregate("count", [])),))
    return int(upkeep.engine.at(tables.values()).native.run_here(counted)["count"][0].as_py())


def _is_below_join(root: Operator, op: Operator) -> bool:
    return any(op in each.inputs and is_inner(each.plan) for each in root.walk())


def _subjoins(plan: Plan) -> Iterator[Plan]:
    """Joins of connected subsets of what a cluster of inner joins joins."""
    relations, parts = flattened(plan)
    for count in range(2, len(relations)):
        for chosen in combinations(relations, count):
            current, waiting, left = chosen[0], list(chosen[1:]), list(parts)
            while near := [each for each in waiting if connects(current, each, left)]:
                visible = current.names | near[0].names
                now = [part for part in left if columns_of(part) <= visible]
                left = [part for part in left if part not in now]
                current = Join(current, near[0], "inner", conjunction(now))
                waiting.remove(near[0])
            if not waiting:
                yield current


def greedy(upkeep: Upkeep, tables: Mapping[str, Table], memory: float) -> list[Plan]:
    """The Recycler's choice within some memory."""
    root = upkeep.root(tables, {})
    programme = StateProgramme(upkeep.prices(), ALL, Allowed(), only=())
    worth = {op.plan: (programme.functions(op).full[0].seconds / max(op.bytes, 1.0), op.bytes) for op in root.walk()}
    chosen, spent = [], 0.0
    for plan, (_, bytes_) in sorted(worth.items(), key=lambda each: -each[1][0]):
        if plan != upkeep.plan and spent + bytes_ <= memory:
            chosen.append(plan)
            spent += bytes_
    return chosen
