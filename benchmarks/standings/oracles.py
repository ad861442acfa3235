"""Other ways to choose states: all combinations of actions, and the programme as a plain table over memory, whole or by halves."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from nearly.plan.expressions import Column
from nearly.plan.nodes import Input, Plan
from nearly.plan.types import LONG
from nearly.standing.actions import ALL, CHANGE, MET, NOTHING, Action, Allowed, Prices, Way, materialising, own_actions
from nearly.standing.operators import AGGREGATE, JOIN, ROWS, SCAN, SORT, WHOLE, Operator, WaitingRows

KINDS = ("inner", "inner", "cross", "left", "right", "full", "semi", "anti")


def random_tree(pick: random.Random, size: int, names: Iterator[int]) -> Operator:
    """An operator tree of some operators, with whole-numbered sizes."""
    plan: Plan = Input(f"op{next(names)}", (Column(LONG, "a"),) * pick.randint(1, 3))
    rows = float(pick.choice([0, 1, 5, 20, 100, 400]))
    if size <= 1:
        change = float(pick.choice([0, 0, 1, 10, 50]))
        return Operator(SCAN, plan, rows, change, rows + change, float(pick.choice([1, 2, 8])), read=rows * pick.randint(1, 20))
    inputs: tuple[Operator, ...]
    if size >= 3 and pick.random() < 0.6:
        first = pick.randint(1, size - 2)
        inputs = (random_tree(pick, first, names), random_tree(pick, size - 1 - first, names))
        kind = JOIN
    else:
        inputs = (random_tree(pick, size - 1, names),)
        kind = pick.choice([AGGREGATE, SORT, ROWS, WHOLE])
    change = float(pick.choice([1, 10, 50])) if any(each.change for each in inputs) else 0.0
    join = pick.choice(KINDS) if kind == JOIN else ""
    left, right = (_waiting(pick, each, names) if join == "inner" else None for each in (inputs[-1], inputs[0]))
    return Operator(
        kind, plan, rows, change, rows + change, float(pick.choice([1, 2, 8])), inputs,
        join=join, incremental=pick.random() < 0.7, waiting=(left, right),
    )  # fmt: skip


def _waiting(pick: random.Random, other: Operator, names: Iterator[int]) -> WaitingRows | None:
    """What may wait for a side that changes."""
    if not other.change or pick.random() < 0.5:
        return None
    plan = Input(f"op{next(names)}", (Column(LONG, "a"),))
    return WaitingRows(plan, float(pick.choice([0, 1, 5, 20])), float(pick.choice([1, 2, 8])), float(pick.choice([5, 100, 400])))


@dataclass(frozen=True)
class _Whole:
    """An action for each operator: memory and seconds of the change, of the rows that another change meets, and of all rows."""

    memory: float
    change: float
    met: float
    full: float

    def of(self, what: str) -> float:
        return {NOTHING: 0.0, CHANGE: self.change, MET: self.met, ALL: self.full}[what]


def exhaustive(op: Operator, prices: Prices, allowed: Allowed) -> list[_Whole]:
    """Every choice of actions for an operator and all below it."""
    found = []
    for below in product(*(exhaustive(each, prices, allowed) for each in op.inputs)):
        for own in own_actions(op, prices, allowed):
            inner = _applied(own, below, prices)
            found += [_applied(above, (inner,), prices) for above in materialising(op, prices, allowed)]
    return found


def _applied(action: Action, below: tuple[_Whole, ...], prices: Prices) -> _Whole:
    memory = sum(each.memory for each in below) + sum(kept.bytes for kept in action.keeps)
    sums = [
        prices.weighed(way) + sum(each.of(what) for what, each in zip(way.takes, below, strict=True))
        for way in map(action.way, (CHANGE, MET, ALL))
    ]
    return _Whole(memory, *sums)


def least(op: Operator, prices: Prices, allowed: Allowed, memory: float) -> float:
    """The least cost of all choices within some memory, which has its price.

    An input of which nothing is taken needs no memory: its states are left out.
    """
    fitting = [each for each in exhaustive(op, prices, allowed) if each.memory <= memory]
    return min(min(each.change, each.full) + prices.room * each.memory for each in fitting)


@dataclass
class Table:
    """D and F for every whole number of bytes up to a budget; with `halving` only where they change (I15)."""

    prices: Prices
    memory: int
    allowed: Allowed = field(default_factory=Allowed)
    halving: bool = False
    evaluated: int = 0
    _known: dict[tuple[Operator, str, bool], list[float]] = field(default_factory=dict)

    def function(self, op: Operator, what: str, inner: bool = False) -> list[float]:
        """The values of a function at 0, 1, ... bytes."""
        key = (op, what, inner)
        if key not in self._known:
            self._known[key] = self._halved(op, what, inner) if self.halving else self._all(op, what, inner)
        return self._known[key]

    def _all(self, op: Operator, what: str, inner: bool) -> list[float]:
        return [self._at(op, what, inner, memory) for memory in range(self.memory + 1)]

    def _halved(self, op: Operator, what: str, inner: bool) -> list[float]:
        values: list[float] = [math.nan] * (self.memory + 1)

        def fill(low: int, high: int) -> None:
            for end in (low, high):
                if math.isnan(values[end]):
                    values[end] = self._at(op, what, inner, end)
            if values[low] == values[high]:
                values[low : high + 1] = [values[low]] * (high - low + 1)
            elif high - low > 1:
                fill(low, (low + high) // 2)
                fill((low + high) // 2, high)

        fill(0, self.memory)
        return values

    def _at(self, op: Operator, what: str, inner: bool, memory: int) -> float:
        self.evaluated += 1
        actions = own_actions(op, self.prices, self.allowed) if inner else materialising(op, self.prices, self.allowed)
        ways = [(action, action.way(what)) for action in actions]
        return min(self._with(op, inner, way, memory, math.ceil(sum(k.bytes for k in action.keeps))) for action, way in ways)

    def _with(self, op: Operator, inner: bool, way: Way, memory: int, kept: int) -> float:
        own = self.prices.weighed(way) + self.prices.room * kept
        return own + self._below(op, inner, way, memory - kept) if kept <= memory else math.inf

    def _below(self, op: Operator, inner: bool, way: Way, memory: int) -> float:
        children = [(each, False) for each in op.inputs] if inner else [(op, True)]
        taken = [(what, *each) for what, each in zip(way.takes, children, strict=True) if what != NOTHING]
        values = [self.function(child, what, deep) for what, child, deep in taken]
        if len(values) < 2:
            return values[0][memory] if values else 0.0
        return min(values[0][mine] + values[1][memory - mine] for mine in range(memory + 1))
