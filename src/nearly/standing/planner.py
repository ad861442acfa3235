"""Which states to keep for the next delta: the dynamic programme of DISS over (operator, memory, change or all rows).

D(m) and F(m) are the least cost at which an operator and all below it give their change, or all their rows, with states of m
bytes; between them, their change and the rows that another change meets. All fall in steps, so they are lists of steps: the least
memory (and disk) for each cost. Two inputs share memory in every possible way: their lists are added by (min, +), and what another
step beats in everything is dropped. That is exact for any budget, where a table over m would have to be as fine as the sizes, as
long as no list has more than `MOST_STEPS`; longer ones are thinned, and the choice may then miss the best one a little.

Law: until then no choice of one action for each operator within the budget is cheaper (the tests compare it with all of them).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nearly.plan.nodes import Plan
from nearly.standing.actions import (
    ALL,
    CHANGE,
    DISK,
    MEMORY,
    MET,
    NOTHING,
    Action,
    Allowed,
    Kept,
    Prices,
    Way,
    materialising,
    own_actions,
)
from nearly.standing.operators import Operator

MOST_STEPS = 128
"""A list of more steps keeps the best of each so-and-so-many-th part of the memory, as the paper's units do (I14)."""


@dataclass(frozen=True, slots=True)
class StateBudget:
    """Bytes that states may have in memory and on disk."""

    memory: float
    disk: float = 0.0

    def holds(self, memory: float, disk: float) -> bool:
        return memory <= self.memory and disk <= self.disk


class BudgetStep(NamedTuple):
    """From this much memory and disk on, it costs so much, by these choices, whose work takes `seconds` in all.

    Tens of thousands are made for a plan of eight tables, which a tuple is quicker at than a class of its own.
    """

    memory: float
    disk: float
    cost: float
    seconds: float = 0.0
    chosen: tuple[Chosen, ...] = ()

    def and_also(self, other: BudgetStep) -> BudgetStep:
        memory, disk, cost, seconds, chosen = other
        return BudgetStep(self[0] + memory, self[1] + disk, self[2] + cost, self[3] + seconds, self[4] + chosen)


@dataclass(frozen=True, slots=True)
class Chosen:
    """An action at an operator."""

    operator: Operator
    action: Action


Steps = tuple[BudgetStep, ...]
"""None of them needs as much memory and disk, and costs as much, as another."""
FREE: Steps = (BudgetStep(0.0, 0.0, 0.0),)


@dataclass(frozen=True, slots=True)
class DeltaAndFull:
    """D and F of an operator, and what is between."""

    change: Steps
    met: Steps
    full: Steps

    def of(self, what: str) -> Steps:
        return {NOTHING: FREE, CHANGE: self.change, MET: self.met, ALL: self.full}[what]


@dataclass(frozen=True, slots=True)
class Planned:
    """The choice: what is kept, the seconds that all work of the next delta is expected to take, and what each operator does.

    `cost` is what was least: seconds, of which those after the answer count less, and the price of memory.
    """

    keeps: tuple[Kept, ...]
    seconds: float
    chosen: tuple[Chosen, ...]
    cost: float = 0.0

    @property
    def memory(self) -> float:
        return sum(each.bytes for each in self.keeps if each.place == MEMORY)

    @property
    def disk(self) -> float:
        return sum(each.bytes for each in self.keeps if each.place == DISK)


@dataclass(slots=True)
class StateProgramme:
    """One run of the programme; with `only`, no rows but those of some plans are kept."""

    prices: Prices
    budget: StateBudget
    allowed: Allowed = field(default_factory=Allowed)
    only: Collection[Plan] | None = None
    _known: dict[Operator, DeltaAndFull] = field(default_factory=dict)

    def functions(self, op: Operator) -> DeltaAndFull:
        """D and F of an operator with a Materialize above it."""
        if op not in self._known:
            below = [self.functions(each) for each in op.inputs]
            inner = self._least(op, own_actions(op, self.prices, self.allowed), below)
            self._known[op] = self._least(op, materialising(op, self.prices, self.allowed), [inner])
        return self._known[op]

    def _least(self, op: Operator, actions: Iterable[Action], below: Sequence[DeltaAndFull]) -> DeltaAndFull:
        steps: dict[str, list[BudgetStep]] = {CHANGE: [], MET: [], ALL: []}
        taken = _Taken(below, self.budget)
        for action in actions:
            if self.only is not None and any(kept.plan not in self.only for kept in action.keeps):
                continue
            for what in steps:
                way = action.way(what)
                own, below_it = self._own(op, action, way), taken.of(way.takes)
                steps[what] += below_it if own == FREE[0] else within(map(own.and_also, below_it), self.budget)
        return DeltaAndFull(*(pruned(found) for found in steps.values()))

    def _own(self, op: Operator, action: Action, way: Way) -> BudgetStep:
        """What an operator adds by itself. What a byte must save is part of what it costs: a step that saves less is none."""
        memory, disk = (sum(kept.bytes for kept in action.keeps if kept.place == place) for place in (MEMORY, DISK))
        cost = self.prices.weighed(way) + self.prices.room * memory
        return BudgetStep(memory, disk, cost, way.seconds, (Chosen(op, action),) if action.keeps else ())


@dataclass(slots=True)
class _Taken:
    """What the actions of an operator take from its inputs: many take the same, for which the budget is divided once."""

    below: Sequence[DeltaAndFull]
    budget: StateBudget
    _known: dict[tuple[str, ...], Steps] = field(default_factory=dict)

    def of(self, takes: tuple[str, ...]) -> Steps:
        if takes not in self._known:
            steps = FREE
            for what, functions in zip(takes, self.below, strict=True):
                steps = added(steps, functions.of(what), self.budget)
            self._known[takes] = steps
        return self._known[takes]


def added(first: Steps, second: Steps, budget: StateBudget) -> Steps:
    """All ways to divide a budget between two."""
    if first is FREE or second is FREE:
        return second if first is FREE else first
    return pruned(within((a.and_also(b) for a in first for b in second), budget))


def within(steps: Iterable[BudgetStep], budget: StateBudget) -> Iterator[BudgetStep]:
    return (each for each in steps if budget.holds(each.memory, each.disk))


def pruned(steps: Iterable[BudgetStep]) -> Steps:
    """Only the steps that no other one beats.

    Of those with less memory, `disks` and `costs` hold the ones that are not beaten in both, by disk: costs fall.
    """
    found: list[BudgetStep] = []
    disks, costs = list[float](), list[float]()
    for step in sorted(steps, key=lambda each: (each.memory, each.disk, each.cost)):
        place = bisect_right(disks, step.disk)
        if place and costs[place - 1] <= step.cost:
            continue
        found.append(step)
        start = end = bisect_left(disks, step.disk)
        while end < len(disks) and costs[end] >= step.cost:
            end += 1
        disks[start:end], costs[start:end] = [step.disk], [step.cost]
    return tuple(found) if len(found) <= MOST_STEPS else _thinned(found)


def _thinned(steps: Sequence[BudgetStep]) -> Steps:
    """Fewer steps: the cheapest of each part of the range of memory, and the cheapest of all."""
    unit = (steps[-1].memory - steps[0].memory) / (MOST_STEPS / 2) or 1.0
    best: dict[int, BudgetStep] = {}
    for step in steps:
        part = math.ceil((step.memory - steps[0].memory) / unit)
        if part not in best or step.cost < best[part].cost:
            best[part] = step
    return tuple(best.values())


def choose(
    root: Operator, prices: Prices, budget: StateBudget, allowed: Allowed | None = None, *, whole: bool = False,
    only: Collection[Plan] | None = None,
) -> Planned:  # fmt: skip
    """The cheapest choice within a budget: to give the change of the root or all its rows, with `whole` the latter.

    Where memory has a price, it counts.
    """
    functions = StateProgramme(prices, budget, allowed or Allowed(), only).functions(root)
    steps = functions.full if whole else (*functions.change, *functions.full)
    best = min(steps, key=lambda each: (each.cost, each.memory, each.disk))
    keeps: dict[tuple[object, str], Kept] = {}
    for chosen in best.chosen:
        for kept in chosen.action.keeps:
            before = keeps.get((kept.plan, kept.place))
            keeps[kept.plan, kept.place] = kept if before is None or before.join is None else before
    return Planned(tuple(keeps.values()), best.seconds, best.chosen, best.cost)
