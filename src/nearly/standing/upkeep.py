"""What is known and kept of one standing query between its refreshes, and which plan of states suits the next delta."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from nearly.engine.costs import Costs
from nearly.engine.deltas.several import Moving
from nearly.engine.engine import Engine
from nearly.engine.storage.layouts import Table
from nearly.plan.nodes import Plan
from nearly.standing.actions import MEMORY, Allowed, Kept, Prices
from nearly.standing.arrivals import Expected, Prediction
from nearly.standing.maintained import Maintained, basis, is_settled, maintained
from nearly.standing.operators import Operator, Sizes, operators, tables_of
from nearly.standing.planner import Planned, StateBudget, choose
from nearly.standing.states import StateRows, StateStore

FIRST, CHANGE, WHOLE, SAME, EARLY = "first", "change", "whole", "same", "early"
"""How an answer came about: the first one; from changes; computed as a whole; nothing had changed; or an estimate before it."""
HORIZON = 10.0
"""A state is made if it pays within so many refreshes like the next: it is made when the answer is there, and nobody waits."""
VALUE, WORTH = 8.0, 0.25
"""Bytes of a value, about, and what keeping it must save, at least, as a share of what writing it would take: its room is wanted by
others, too."""
SURE = 1.0
"""Changes are taken where they are expected to cost at most this share of computing all."""
UNFORESEEN = 0.5
"""The same where what came was not foreseen: what is kept was not chosen for it, and nobody has measured what it asks for."""
SLOWEST = 8.0
"""The planner is taken to be wrong by this factor at most."""
FREE = StateBudget(float("inf"), float("inf"))


@dataclass(frozen=True, slots=True)
class Observed:
    """The last refresh from changes: the seconds that the planner said, those of all its work, and those that any change takes."""

    said: float
    took: float
    fixed: float

    def expected(self, said: float) -> float:
        """What another refresh takes of which the planner says so many seconds."""
        return self.fixed + (self.took - self.fixed) * said / self.said


@dataclass(frozen=True, slots=True)
class StandingRefresh:
    """One refresh: how and why so, what it took, how many rows had changed by table, and which versions the answer is of."""

    strategy: str
    reason: str
    seconds: float
    changed: Mapping[str, Expected]
    versions: Mapping[str, int]
    stages: int = 0
    expected: float | None = None


@dataclass(slots=True)
class Upkeep:
    """One standing query: its last answer, the versions that it is of, and the states it keeps.

    `whole_seconds` is how long computing all took last, `slower` how many times what the planner says that was, and `observed` what
    the last refresh from changes took. `made_seconds` is what it took to have what the next one needs, when the answer was there.
    `rows` and `widths` were measured of parts of the plan; of others, `shares` tells their rows relative to those of their tables.
    `basis` is what the plan is right for, beside all rows that its tables may have.
    `fixed` are the plans whose rows must be kept instead of those the planner chooses; `forced` is how each answer is computed.
    """

    engine: Engine
    store: StateStore
    query: Maintained
    user: str
    budget: StateBudget
    costs: Costs
    allowed: Allowed = field(default_factory=Allowed)
    fixed: Collection[Plan] | None = None
    forced: str | None = None
    early: Callable[[dict[str, Table]], None] | None = None
    """Is called before a refresh that takes long, with the tables that it will be of."""
    answered: Callable[[StandingRefresh], None] | None = None
    """Is called when a refresh has its answer, before what the next one needs is kept."""
    tables: dict[str, Table] = field(default_factory=dict)
    basis: Hashable = None
    answer: pa.Table | None = None
    held: dict[Plan, StateRows] = field(default_factory=dict)
    planned: Planned | None = None
    planned_for: Prediction = field(default_factory=dict)
    plan_seconds: float = 0.0
    made_seconds: float = 0.0
    whole_seconds: float = 0.0
    slower: float = 1.0
    observed: Observed | None = None
    said: float = 0.0
    """The planner's seconds of the refresh at hand, if it is one from changes."""
    source: str = "native"
    rows: dict[Plan, float] = field(default_factory=dict)
    shares: dict[Plan, float] = field(default_factory=dict)
    widths: dict[Plan, float] = field(default_factory=dict)
    _settled: dict[Plan, bool] = field(default_factory=dict)

    def may_keep(self, plan: Plan, tables: Mapping[str, Table]) -> bool:
        """Whether the rows of a part can be kept: SQL leaves none of them open."""
        if plan not in self._settled:
            self._settled[plan] = is_settled(plan, lambda name: tables[name.lower()].schema)
        return self._settled[plan]

    def answer_with(
        self, answer: pa.Table | None, source: str, tables: dict[str, Table], refresh: StandingRefresh
    ) -> StandingRefresh:
        """Have the answer of a refresh, and tell it at once: what fails after it must not make it one that nobody heard of.

        One whose telling was broken off is not there: it is computed again.
        """
        before = self.tables
        self.answer, self.source, self.tables = answer, source, tables
        try:
            if self.answered is not None:
                self.answered(refresh)
        except BaseException:
            self.tables = before
            raise
        return refresh

    def bytes(self, place: str = MEMORY) -> int:
        """Bytes of what it keeps; equal parts of its plan are one state."""
        states = {state.table: state for state in list(self.held.values())}  # a refresh may change them meanwhile
        return sum(state.bytes for state in states.values() if state.place == place)

    @property
    def plan(self) -> Plan:
        return self.query.query.plan

    def stored(self) -> dict[Plan, Plan]:
        """Where the rows of parts of the plan lie."""
        return {plan: state.over(plan) for plan, state in self.held.items()}

    def replace(self, found: Moving, plan: Plan, state: StateRows | None) -> None:
        """Keep the rows of a part in another state, or no more; one that other parts are in as well stays."""
        before = self.held.pop(plan, None)
        if state is not None:
            self.held[plan] = state
        if before is not None and not any(each is before for each in self.held.values()):
            self.store.release(found, before, self.user)

    def release(self) -> None:
        """Keep nothing any more."""
        with self.store.lock:
            self.store.forget(self.held.values(), self.user)
            self.held.clear()

    def release_soon(self) -> None:
        """The same, when a refresh that goes on is done; nobody waits for that."""
        if not self.store.lock.acquire(blocking=False):
            threading.Thread(target=self._release_later, name="nearly-standing-lets-go", daemon=True).start()
            return
        try:
            self.release()
        finally:
            self.store.lock.release()

    def _release_later(self) -> None:
        """Keep nothing any more, unless the session ended meanwhile, and all is gone."""
        with self.store.lock:
            if not self.engine.life.is_over:
                self.release()

    def bind(self, tables: Mapping[str, Table]) -> bool:
        """Have a plan that is right for these tables; whether it is another one, and nothing that was kept is of use."""
        found = basis(self.engine, tables)
        if found == self.basis:
            return False
        if self.basis is not None:
            self.release()
            self.query = maintained(self.engine, self.query.text, tables.values())
            self.planned, self.observed, self.rows, self.shares, self.widths = None, None, {}, {}, {}
            self._settled.clear()
        self.basis = found
        return True

    def root(self, tables: Mapping[str, Table], expected: Mapping[str, Expected]) -> Operator:
        """The operators of the plan, as far as their sizes are known."""
        known = dict(self.rows)
        for plan, share in self.shares.items():
            known[plan] = share * sum(tables[name].rows for name in tables_of(plan))
        known |= {plan: float(state.rows) for plan, state in self.held.items()}
        coming = {name: each.rows for name, each in expected.items()}
        shrink = {name: each.deleted for name, each in expected.items() if each.deleted}
        return operators(self.plan, Sizes(lambda name: tables[name.lower()].schema, coming, known, self.widths, shrink))

    def prices(self) -> Prices:
        cores, constants = self.engine.cluster.sites.cores, self.costs.constants
        room = WORTH * constants.write / VALUE / HORIZON
        return Prices(constants, cores, HORIZON, frozenset(self.held), disk=self.budget.disk > 0, room=room)

    def choose(self, tables: Mapping[str, Table], prediction: Prediction) -> Planned:
        """What to keep for the next delta; where nothing will change, nothing need be."""
        began = time.perf_counter()
        found = self._chosen(tables, prediction)
        self.plan_seconds, self.planned_for = time.perf_counter() - began, prediction
        return found

    def _chosen(self, tables: Mapping[str, Table], prediction: Prediction) -> Planned:
        if not prediction and self.fixed is None:
            return Planned((), 0.0, ())
        root = self.root(tables, prediction)
        found = choose(root, self.prices(), self.budget, self.allowed, whole=True, only=self._settled_of(root, tables))
        if self.fixed is not None:
            return Planned(tuple(Kept(plan, 0.0) for plan in self.fixed), found.seconds, ())
        if self.forced is None and self.whole_seconds and self.expected(found.seconds) > self.whole_seconds:
            return Planned((), self.whole_seconds, ())
        return found

    def _settled_of(self, root: Operator, tables: Mapping[str, Table]) -> frozenset[Plan] | None:
        """The plans whose rows can be kept; None where all can."""
        waiting = (rows.plan for each in root.walk() for rows in each.waiting if rows is not None)
        offered = {*(each.plan for each in root.walk()), *waiting}
        settled = frozenset(plan for plan in offered if self.may_keep(plan, tables))
        return None if len(settled) == len(offered) else settled

    def _work(self, root: Operator, kept: Collection[Plan]) -> float:
        """The seconds of a delta with these states, those after the answer included: all of them must be worth it."""
        prices = replace(self.prices(), later=1.0, room=0.0)
        return choose(root, prices, FREE, self.allowed, whole=True, only=frozenset(kept)).seconds

    def expected(self, seconds: float) -> float:
        """What a refresh from changes will take, where the planner says so many seconds: told by the last one, if there was one.

        Else by what computing all took: what makes the one slower than the planner says, as others who use the machine, does so
        with the other.
        """
        if self.observed is not None:
            return self.observed.expected(seconds)
        return self.costs.corrected(f"standing {CHANGE}", self.slower * seconds)

    def computed(self, tables: Mapping[str, Table], took: float) -> None:
        """Learn from computing all."""
        said = choose(self.root(tables, {}), self.prices(), FREE, self.allowed, whole=True, only=()).seconds
        self.whole_seconds, self.slower = took, min(max(took / max(said, 1e-6), 1.0), SLOWEST)

    def observe(self, took: float, fixed: float) -> None:
        """Learn from a refresh from changes: all its work counts, that after the answer included, as in what was said of it."""
        if self.said > 0:
            self.costs.observe(f"standing {CHANGE}", self.costs.corrected(f"standing {CHANGE}", self.slower * self.said), took)
            self.observed = Observed(self.said, took, min(took, fixed))

    def pays(self, tables: Mapping[str, Table], changed: Mapping[str, Expected]) -> tuple[bool, float]:
        """Whether changes are taken from what is kept, or all is computed again; and the seconds this is expected to take."""
        foreseen = all(name in self.planned_for and each.rows <= 2 * self.planned_for[name].rows for name, each in changed.items())
        if foreseen and self.planned is not None and self.held:
            self.said = self.planned.seconds
            expected = self.expected(self.said)
            if expected <= SURE * self.whole_seconds:
                return True, expected
        root = self.root(tables, changed)
        self.said = self._work(root, self.held)
        change, all_ = self.expected(self.said), self.whole_seconds or self._work(root, ())
        return change <= (SURE if foreseen else UNFORESEEN) * all_, min(change, all_)
