"""The question a query asks of the missing rows, in parts that can be solved one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from nearly.algebra.boxes import EVERYWHERE, Region, meet
from nearly.missing.programmes.allocation import AllocationBlock, Independent
from nearly.missing.programmes.cells import Cell, Decomposition, TimeLimit, decompose
from nearly.missing.programmes.disjoint import DisjointIndex
from nearly.missing.programmes.effects import AMOUNTS, Effect, Question, SpanOf, in_units
from nearly.missing.programmes.programme import Programme
from nearly.missing.statements.bound_set import BoundConstraint, BoundSet


@dataclass(frozen=True, slots=True)
class Component:
    """Cells that are bounded together; `constraints` are the positions in the set that the cells' members refer to."""

    block: AllocationBlock
    cells: tuple[Cell, ...]
    constraints: tuple[int, ...]

    @property
    def is_exact(self) -> bool:
        return not any(cell.doubtful for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Stake:
    """A part, and what the rows of each of its cells can do to the aggregate at hand; amounts are multiples of `unit`."""

    part: Component
    effects: Sequence[Effect]
    unit: Fraction = Fraction(1)


@dataclass(slots=True)
class Problem:
    """A bound set, made ready for many questions: what does not depend on the question is computed once."""

    bound: BoundSet
    _index: DisjointIndex | None = None
    _alone: Component | None = None
    _cells: dict[tuple[int, ...], Decomposition] = field(default_factory=dict)

    def stakes(self, question: Question, span_of: SpanOf, kind: str, deadline: TimeLimit, *, reuse: bool = False) -> list[Stake]:
        """The parts that the question touches. With `reuse`, cells are computed for all questions rather than for this one."""
        found = []
        alone = self.alone
        if alone.cells:
            found.append(Stake(alone, *self.index.effects(question, span_of, kind)))
        space = self.bound.rows.everything
        for component in self.bound.components:
            if len(component) > 1 and any(meet(self._constraint(each).predicate, question.region) for each in component):
                part = self.part(component, question.region, deadline, reuse=reuse)
                effects = [question.effect(cell.region, space, span_of) for cell in part.cells]
                found.append(Stake(part, *in_units(effects)) if kind == AMOUNTS else Stake(part, effects))
        return found

    @property
    def index(self) -> DisjointIndex:
        if self._index is None:
            self._index = DisjointIndex.over([self._constraint(each) for each in self.alone.constraints], self.bound.rows)
        return self._index

    @property
    def alone(self) -> Component:
        """The constraints that touch no other one, each a cell of its own."""
        if self._alone is None:
            places = tuple(component[0] for component in self.bound.components if len(component) == 1)
            members = [self._constraint(place) for place in places]
            high = tuple(member.high if member.allowed else 0 for member in members)
            cells = tuple(Cell((local,), member.allowed) for local, member in enumerate(members))
            self._alone = Component(Independent(tuple(member.low for member in members), high), cells, places)
        return self._alone

    def part(self, component: tuple[int, ...], region: Region, deadline: TimeLimit, *, reuse: bool = False) -> Component:
        """The cells of constraints that overlap.

        The query's region is pushed down into the decomposition where no constraint asks for a least number of rows: rows outside
        the query then do nothing. Otherwise they matter, because they can satisfy a lower bound in place of rows inside.
        """
        constraints = [self._constraint(each) for each in component]
        floored = any(constraint.low for constraint in constraints)
        if floored or reuse or component in self._cells:
            decomposition = self._decomposed(component, constraints, deadline)
        else:
            decomposition = decompose(constraints, region, self.bound.rows.everything, deadline)
        low, high = tuple(each.low for each in constraints), tuple(each.high for each in constraints)
        cells = tuple(decomposition.cells)
        return Component(Programme(cells, low, high, deadline), cells, component)

    def _decomposed(self, component: tuple[int, ...], constraints: Sequence[BoundConstraint], deadline: TimeLimit) -> Decomposition:
        if component not in self._cells:
            found = decompose(constraints, EVERYWHERE, self.bound.rows.everything, deadline)
            if not found.is_complete:
                return found
            self._cells[component] = found
        return self._cells[component]

    def _constraint(self, place: int) -> BoundConstraint:
        return self.bound.constraints[place]


@dataclass(frozen=True, slots=True)
class End:
    """One end of a range: the value (None for no limit), whether an instance reaches it, and that instance.

    `counts` has the rows of every cell of every stake, `takes` whether those rows count (with their value at `side`) or are
    silent. `exists` is False where no instance gives the aggregate a value. `gains` is what one more row of each cell would add
    to the value (in `units`), `certain` the number of certain rows behind an average.
    """

    value: Any
    proven: bool
    stakes: Sequence[Stake]
    counts: Sequence[tuple[int, ...]]
    takes: Sequence[Sequence[bool]]
    side: str
    exists: bool = True
    gains: Sequence[Sequence[int | None]] = ()
    units: Sequence[Fraction] = ()
    certain: int = 0
