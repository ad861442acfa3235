"""The course of one query through a refresh from changes: what it keeps is brought up to date, and tells the answer.

Law: what is added to groups, and what is renewed, reads what is kept as it was, in whichever course that is brought up to date;
what is changed row by row reads none of it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from nearly.engine.deltas.several import Moving, PartAddition, PartChange, PartRenewal, moving
from nearly.engine.engine import Engine
from nearly.engine.results import finished
from nearly.engine.storage.layouts import Table
from nearly.plan.nodes import Input, Join, Plan
from nearly.rewrite.delta.with_partials import outermost, over_stored
from nearly.standing.arrivals import Expected, Prediction
from nearly.standing.keeping import keep_within, key_of
from nearly.standing.maintained import versions
from nearly.standing.operators import tables_of
from nearly.standing.states import RowsAnew, StateRows, StateStore
from nearly.standing.upkeep import CHANGE, SAME, WHOLE, StandingRefresh, Upkeep

logger = logging.getLogger(__name__)

FEW = 500_000
"""So few rows that wait are written anew, without those that found their partner: these need not be looked for one by one."""


@dataclass(slots=True)
class StateMove:
    """How a state is brought up to date by a statement that may read others, and the state itself, as they were."""

    moving: Moving
    state: StateRows
    change: PartAddition | PartRenewal
    query: str = ""
    is_aside: bool = False

    @property
    def table(self) -> str:
        return self.state.table

    @property
    def reads(self) -> frozenset[str]:
        return frozenset() if self.is_aside else self.change.reads

    def ask(self) -> None:
        """Have its query: keys may be looked up for it, which fills tables."""
        self.query = self.change.query if isinstance(self.change, PartAddition) else self.change.query()

    def set_aside(self) -> None:
        """Have what it reads now, so that others may change it."""
        self.query, self.is_aside = self.moving.aside(f"told of {self.table}", self.query), True

    def run(self, store: StateStore) -> None:
        if isinstance(self.change, PartAddition):
            store.add(self.moving, self.state, replace(self.change, query=self.query))
        else:
            store.renew(self.moving, RowsAnew(self.state, self.query, self.change.columns))


def due(moves: Collection[StateMove], wanted: Collection[str]) -> list[StateMove]:
    """The moves that bring states that are wanted, and those that read what these bring: they must not wait longer than that.

    Of a state that several courses know one move is enough; what is added to groups is less than all of them.
    """
    first: dict[str, StateMove] = {}
    for move in sorted(moves, key=lambda each: isinstance(each.change, PartRenewal)):
        first.setdefault(move.table, move)
    found, moved = dict[str, StateMove](), set(wanted)
    while more := {t: each for t, each in first.items() if t not in found and (t in moved or not each.reads.isdisjoint(moved))}:
        found |= more
        moved |= more.keys()
    return list(found.values())


def in_order(moves: Collection[StateMove]) -> list[StateMove]:
    """Each before those that bring what it reads as it was; those that read each other have that set aside first."""
    left, found = list(moves), list[StateMove]()
    while left:
        free = next((each for each in left if not any(each.table in other.reads for other in left if other is not each)), None)
        if free is None:
            for each in left:
                each.set_aside()
            continue
        left.remove(free)
        found.append(free)
    return found


@dataclass(slots=True)
class StandingCourse:
    """One query's part of a refresh from changes."""

    upkeep: Upkeep
    tables: dict[str, Table]
    prediction: Prediction | None
    changed: Mapping[str, Expected]
    is_whole: bool
    reason: str
    expected: float | None
    began: float
    _moving: Moving | None = None
    _took: float = 0.0

    @classmethod
    def of(cls, upkeep: Upkeep, tables: dict[str, Table], prediction: Prediction | None) -> StandingCourse | StandingRefresh:
        began = time.perf_counter()
        is_other = upkeep.bind(tables)
        if not is_other and not upkeep.query.ages and all(tables[each].content == upkeep.tables[each].content for each in tables):
            return StandingRefresh(SAME, "no table changed", 0.0, {}, versions(tables))
        changed = changed_between(upkeep.engine, upkeep.tables, tables)
        if upkeep.query.plan is None:
            return cls(upkeep, tables, prediction, changed, True, upkeep.query.reason or "", None, began)
        if is_other:
            told = "a table has other columns, or Spark other settings"
            return cls(upkeep, tables, prediction, changed, True, told, None, began)
        if upkeep.forced is not None:
            return cls(upkeep, tables, prediction, changed, upkeep.forced == WHOLE, "asked for", None, began)
        if not upkeep.held:
            return cls(upkeep, tables, prediction, changed, True, "nothing is kept", None, began)
        pays, expected = upkeep.pays(tables, changed)
        told = f"expected to take {expected:.3f} s"
        return cls(upkeep, tables, prediction, changed, not pays, told, expected, began)

    @property
    def seconds(self) -> float:
        """What it is expected to take, as far as is known."""
        return self.upkeep.whole_seconds if self.is_whole else self.expected or 0.0

    def opened(self) -> ExitStack:
        stack, upkeep = ExitStack(), self.upkeep
        parts = outermost(list(upkeep.held))
        few = [plan for plan, state in upkeep.held.items() if is_soon_written(plan, state.rows, self.tables)]
        self._moving = stack.enter_context(
            moving(upkeep.store.engine, upkeep.plan, parts, upkeep.tables, self.tables, upkeep.stored(), few)
        )
        return stack

    @property
    def moving(self) -> Moving:
        if self._moving is None:
            raise AssertionError("a course is opened before it is run")
        return self._moving

    def told(self) -> Iterator[StateMove]:
        """How states move that are added to, or of which all rows are told."""
        for plan, state in self.upkeep.held.items():
            change = self.moving.changes[plan]
            if isinstance(change, PartAddition | PartRenewal):
                yield StateMove(self.moving, state, change)

    def bring_rows(self, brought: set[str], wanted: Collection[str]) -> None:
        """Change kept rows as their parts changed; what does not fit is made again."""
        upkeep = self.upkeep
        done: dict[Plan, Plan] = {}
        for plan in outermost(list(upkeep.held)):
            state, change = upkeep.held[plan], self.moving.changes[plan]
            if state.table not in wanted:
                continue
            if state.table in brought or not isinstance(change, PartChange) or upkeep.store.apply(self.moving, state, change):
                brought.add(state.table)
            else:
                logger.info("the rows kept of %s did not fit their change; they are made again", state.table)
                made = upkeep.store.make(
                    self.moving,
                    plan,
                    over_stored(plan, done),
                    state.place,
                    [plan.columns[p] for p in state.order],
                    key_of(upkeep, plan),
                )
                upkeep.replace(self.moving, plan, made)
                state = made
                brought.add(made.table)
            upkeep.store.note(state, plan, self.tables, upkeep.user)
            done[plan] = state.over(plan)

    @property
    def _shown(self) -> Plan:
        """The answer, over what is kept."""
        return over_stored(self.upkeep.plan, self.upkeep.stored())

    @property
    def read_by_answer(self) -> set[str]:
        """The states that the answer is told by."""
        return {node.source for node in self._shown.walk() if isinstance(node, Input)}

    def answered(self) -> StandingRefresh:
        """The answer, from what is kept."""
        upkeep = self.upkeep
        answer = finished(self.moving.rows_of(self._shown), upkeep.query.query)
        self._took = time.perf_counter() - self.began
        stages = len(self._stages)
        refresh = StandingRefresh(CHANGE, self.reason, self._took, self.changed, versions(self.tables), stages, self.expected)
        return upkeep.answer_with(answer, "native", self.tables, refresh)

    @property
    def _stages(self) -> list[float]:
        """The seconds of the stages that had rows."""
        return [run.seconds for run in self.moving.stages if run.rows]

    def keep(self, after: float) -> None:
        """What is to be kept for the next delta; what is kept now took some seconds after the answer to be brought up to date."""
        upkeep, began = self.upkeep, time.perf_counter()
        for state in upkeep.held.values():
            upkeep.store.tidy(self.moving, state)
        if self.expected is not None:
            stages = self._stages
            took = self._took + after + time.perf_counter() - began
            upkeep.observe(took, len(stages) * min(stages, default=0.0))
        keep_within(upkeep, self.moving, self.prediction)


def is_soon_written(plan: Plan, rows: int, tables: Mapping[str, Table]) -> bool:
    """Whether so many rows that wait are written anew: they are few, or fewer than those among which partners are looked for."""
    partners = tables_of(plan.right) if isinstance(plan, Join) else ()
    return rows <= max(FEW, sum(tables[name].rows for name in partners))


def changed_between(engine: Engine, before: Mapping[str, Table], after: Mapping[str, Table]) -> dict[str, Expected]:
    """Rows that came and went between versions, by table, as far as files tell; a row that changed did both."""
    found = {}
    for name, now in after.items():
        if before[name].content != now.content:
            parts = engine.catalog.difference(before[name], now)
            came, went = (sum(part.most_rows for part in parts if part.weight == sign) for sign in (1, -1))
            found[name] = Expected(float(came), float(went))
    return found
