"""From what is known so far to an answer: the point estimate, its replicates, and bounds for every cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearly.answer import Answer
from nearly.engine.stream.unit_state import UnitState
from nearly.engine.stream.units import GROUPS
from nearly.errors import Unsupported
from nearly.estimate.cells import Sides, assemble, floats
from nearly.estimate.evidence import Evidence, groups_in
from nearly.estimate.intervals import failure_at
from nearly.plan.expressions import Column, same
from nearly.plan.functions.casting import coerce
from nearly.plan.nodes import Apply, BoundQuery, GroupBy, Input, Join, Output, Plan, Project
from nearly.plan.types import DOUBLE, INT, is_numeric
from nearly.progressive.certain import CertainBounds
from nearly.progressive.growths import growths_of
from nearly.progressive.key_rooms import KeyRooms
from nearly.progressive.own_intervals import OwnIntervals
from nearly.progressive.reading import Replicates, UnitsRead
from nearly.progressive.row_changes import DecidedGroups, KnownKeys, rows_of
from nearly.rewrite.stream.cut import Cut, Gathered
from nearly.rewrite.stream.few_rows import ANSWER_KEYS, FEW_ROWS, few_rows
from nearly.rewrite.stream.firm_groups import firm_groups
from nearly.rewrite.weigh.weigh import replicate, weigh
from nearly.rewrite.weigh.weighted import Growths, RowSet, Weighted

REPLICATED_ROWS = 2_000_000
"""Replicates are evaluated when the state has at most so many rows, counted once per replicate."""
REPLICATED_STATES = 100_000
"""The same where Python functions merge the rows, which takes much longer."""
MANY_TIMES = 20
"""A state with so many times the rows of the answer is narrowed to those of its groups."""
FEWER_GROUPS = (GROUPS, GROUPS // 2, GROUPS // 4)
"""Of a larger state there are fewer replicates, which make longer intervals, but better ones than none."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Answers one query from its state."""

    query: BoundQuery
    cut: Cut
    state: UnitState
    confidence: float
    certain: CertainBounds
    rooms: KeyRooms
    goal: float | None = None
    """The error at which somebody stops; then intervals stay valid when that is as soon as they are narrow."""
    count_keys: Callable[[GroupBy], int | None] = lambda _: None
    """Counts the keys of an aggregate exactly, where that is worth it."""
    counts: dict[GroupBy, int] = field(default_factory=dict)

    def answer(self, reading: UnitsRead, look: int, stats: dict[str, Any]) -> Answer:
        """The estimate after the units read, with bounds."""
        growths, models = growths_of(self.cut.tail, self.cut.stages, self.state, reading)
        beside = reading.beside
        unlike = self.rooms.unlike(reading, models)
        point = weigh(self.cut.tail, self.cut.stages, reading.weight, growths, 1.0 if beside is None else beside.weight, unlike)
        found = self.state.run(point.plan)
        evolving = [place for place, column in enumerate(self.cut.tail.columns) if column.name in point.evolving]
        sides = Sides.of(found, self.query).opened(evolving, self.certain.columns(found, reading.positions))
        if evolving and found.num_rows:
            sides = self._bounded(point, found, growths, reading, look, sides, unlike).within_certain()
        failure = failure_at(self.confidence, look if self.lasting else None)
        known = KnownKeys(models, self.counts)
        rows = rows_of(point.rows, found.num_rows, known, reading, failure, self._decided(point.rows, found))
        if self.goal is not None and sides.error <= self.goal < rows.error and self._counted(point.rows):
            rows = rows_of(point.rows, found.num_rows, known, reading, failure)
        facts = stats | {"evolving": tuple(evolving), "shown_error": sides.error}
        if models:
            facts["unseen_groups"] = next(iter(models.values())).unseen
        if self.lasting:
            facts["anytime_error"] = sides.error
        return assemble(self.query, sides, rows, reading.share, self.confidence, facts)

    @property
    def lasting(self) -> bool:
        return self.goal is not None

    def _decided(self, rows: RowSet, found: pa.Table) -> DecidedGroups | None:
        """Which groups are there for good, where rows of theirs wait for a decision."""
        groups = firm_groups(self.cut.tail, self.cut.stages) if rows.undecided else None
        return None if groups is None else DecidedGroups.of(groups, found, self.state)

    def _counted(self, rows: RowSet) -> bool:
        """Have the keys counted whose number is all that keeps an answer from being good enough."""
        if rows.undecided or rows.open or len(rows.keys) != 1 or rows.keys[0] in self.counts:
            return False
        found = self.count_keys(rows.keys[0])
        if found is not None:
            self.counts[rows.keys[0]] = found
        return found is not None

    def exact_table(self) -> pa.Table:
        """The tail over all units."""
        return self.state.run(self.cut.tail)

    def _bounded(
        self, point: Weighted, found: pa.Table, growths: Growths, reading: UnitsRead, look: int, sides: Sides,
        unlike: frozenset[GroupBy],
    ) -> Sides:  # fmt: skip
        """The sides with intervals for the numbers among the evolving columns; what cannot be bounded is open."""
        behind = self._evidence(reading, look)
        columns = self.cut.tail.columns
        sides, apart = OwnIntervals(self.cut, self.state, unlike).closed(sides, found, reading, behind)
        numbers = [
            place for place in sides.evolving
            if is_numeric(columns[place].type) and columns[place].name not in point.extremes and place not in apart
        ]  # fmt: skip
        copied = self._copied(point, found, growths) if numbers else None
        groups = copied.groups(reading.groups) if copied is not None else None
        if copied is None or groups is None:
            return sides
        replicated = reading.in_groups(groups)
        copies = self._copies(point, found, numbers, copied, replicated.replicates()) if replicated.groups > 1 else None
        if copies is None:
            return sides
        jumping = point.of_picked and reading.beside is None
        halves = self._copies(point, found, numbers, copied, replicated.half_samples()) if jumping else None
        behind = self._evidence(replicated, look)
        for at, place in enumerate(numbers):
            theta = floats(found.column(place))
            interval = behind.interval(theta, _supported(theta, copies[:, :, at]), _seen_in(point, found, columns[place].name))
            sides = sides.closed(place, interval if halves is None else behind.lengthened(interval, theta, halves[:, :, at]))
        return sides

    def _evidence(self, reading: UnitsRead, look: int) -> Evidence:
        return Evidence(reading.least_share, reading.units, reading.group_rows, self.confidence, look if self.lasting else None)

    def _copied(self, point: Weighted, found: pa.Table, growths: Growths) -> _Copied:
        """What replicates are made of: of the rows of the answer's groups, where they are few of all."""
        few = few_rows(self.cut.tail, self.cut.stages)
        kept = self.state.rows if not self.cut.beside else min(self.state.rows, GROUPS**2 * found.num_rows)
        whole = _Copied(self.cut.tail, self.cut.stages, growths, kept)
        if (
            few is None
            or self.state.rows < MANY_TIMES * found.num_rows
            or any(key.name in point.evolving for key in few.aggregate.keys)
        ):
            return whole
        keys = pa.table([found.column(place) for place in few.places], [column.name for column in few.wanted.given])
        rows = self.state.run(few.rows, {ANSWER_KEYS: keys})
        narrowed = {few.narrowed if each == few.aggregate else each: growth for each, growth in growths.items()}
        tail = few.tail(self.cut.tail)
        others = {node.source for node in tail.walk() if isinstance(node, Input)} - {FEW_ROWS}
        return _Copied(
            tail, few.stages(self.cut.stages), narrowed, rows.num_rows + self.state.rows_of(others), {FEW_ROWS: rows}
        )  # fmt: skip

    def _copies(
        self, point: Weighted, found: pa.Table, numbers: list[int], copied: _Copied, replicates: Replicates
    ) -> NDArray[np.float64] | None:
        """Replicate x row x number; None when there are none to be had."""
        try:
            plan = replicate(copied.tail, copied.stages, copied.growths)
        except Unsupported:
            return None
        identity = [column for column in self.cut.tail.columns if column.name not in point.evolving]
        if plan.replicate is None or (not identity and found.num_rows > 1):
            return None
        matched = self.state.run(
            _matched(plan, identity, [self.cut.tail.columns[place] for place in numbers]),
            {**replicates.inputs, "answer_rows": _identities(found, identity), **copied.inputs},
        )
        copies = np.full((replicates.count, found.num_rows, len(numbers)), np.nan)
        replicate_, row = matched.column(0).to_numpy(), matched.column(1).to_numpy()
        for place in range(len(numbers)):
            copies[replicate_, row, place] = floats(matched.column(2 + place))
        return copies


@dataclass(frozen=True, slots=True)
class _Copied:
    """A tail to be evaluated in replicates, over some rows of stages and inputs."""

    tail: Plan
    stages: tuple[Gathered, ...]
    growths: Growths
    rows: int
    inputs: dict[str, pa.Table] = field(default_factory=dict)

    def groups(self, present: int) -> int | None:
        """How many replicates there are to be; None when even few would be too much."""
        most = REPLICATED_STATES if any(isinstance(node, Apply) for node in self.tail.walk()) else REPLICATED_ROWS
        return next((each for each in FEWER_GROUPS if self.rows * (min(present, each) + 1) <= most), None)


def _seen_in(point: Weighted, found: pa.Table, name: str) -> NDArray[np.int64]:
    """In how many unit groups there were rows that contributed to each cell of a column; in none where nothing tells it."""
    names = point.evidence.get(name, frozenset())
    masks = [np.asarray(found[mask].fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64) for mask in sorted(names)]
    return groups_in(masks) if masks else np.zeros(found.num_rows, dtype=np.int64)


def _supported(theta: Floats, copies: Floats) -> Floats:
    """Replicates without those of cells that are zero in all of them: nothing read says how far from zero they will end."""
    empty = (theta == 0) & np.all((copies == 0) | np.isnan(copies), axis=0)
    return np.where(empty, np.nan, copies)


def _identities(found: pa.Table, identity: list[Column]) -> pa.Table:
    """The rows of the answer by the columns that identify them."""
    columns = [found[column.name] for column in identity]
    names = [f"id_{place}" for place in range(len(identity))]
    return pa.Table.from_arrays([*columns, pa.array(range(found.num_rows), pa.int32())], names=[*names, "answer_row"])


def _matched(plan: Weighted, identity: list[Column], numbers: list[Column]) -> Plan:
    """Replicate, row of the answer, and the numbers as doubles."""
    assert plan.replicate is not None  # noqa: S101  checked by the caller
    types = {column.name: column.type for column in plan.plan.columns}
    given = [Column(types[column.name], f"id_{place}") for place, column in enumerate(identity)]
    row = Column(INT, "answer_row")
    rows = Input("answer_rows", (*given, row))
    condition = same([Column(other.type, column.name) for column, other in zip(identity, given, strict=True)], given)
    joined = Join(plan.plan, rows, "cross" if condition is None else "inner", condition)
    outputs = [Output("replicate_number", plan.replicate), Output("row_number", row)]
    outputs += [Output(f"number_{place}", coerce(Column(types[c.name], c.name), DOUBLE)) for place, c in enumerate(numbers)]
    return Project(joined, tuple(outputs))
