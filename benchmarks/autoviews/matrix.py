"""What is measured for real: every query alone, every view that could be made, and every query over every view that serves it.

    plain[q]       seconds of a query in a session without automatic views
    base[q]        the same where they are on, and none serves it
    pair[q][v]     seconds of a query over a view
    making[v], bytes[v]     of a view, its files included
    preparing[v]            what making it takes longer for the first time: it is prepared for that
    planning[q], mining[q]  what is done once for a text: its plan, and what could be kept of it
    beginning[q][v]         what it takes longer when a query reads a view for the first time: both are prepared for it, and an
                            experiment with them
    matching[q]    comparing a query with a view that it was not compared with before; looking[q]: with one that it was
    expected ...   what the optimiser thinks of it

Queries are asked as a session asks them, in the state of a long session: all have been asked before, each over its view, and they
come in turn, so that none finds what it has just left behind. The median of some rounds counts. All answers over views are compared
with those without.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeVar

import numpy as np
import pyarrow as pa

import nearly
from benchmarks.agreement import difference
from benchmarks.autoviews.workloads import Workload
from nearly.autoview.autoview import AutoView
from nearly.autoview.candidates import RESULT, Candidate
from nearly.autoview.course import QueryCourse, question_of
from nearly.autoview.keeping import Keeping
from nearly.autoview.making import Intention
from nearly.autoview.options import Holding, Option
from nearly.autoview.rewriter import Rewriting
from nearly.autoview.store import MadeView
from nearly.engine.native.running import Running
from nearly.engine.planner import Prepared
from nearly.errors import NearlyError

Found = TypeVar("Found")
ROUNDS = 5
MAKING_ROUNDS = 3
FIRST_ROUNDS = 3
SURE, USED, UNUSED = 1e-6, 0.9, 1.0
"""Shares of a query's time that a view is said to leave, so that it is used, just used, or not."""


@dataclass(slots=True)
class Matrix:
    """Measurements of one workload; queries are numbers, views have names."""

    texts: list[str] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    base: list[float] = field(default_factory=list)
    expected_base: list[float] = field(default_factory=list)
    pair: list[dict[str, float]] = field(default_factory=list)
    beginning: list[dict[str, float]] = field(default_factory=list)
    planning: list[float] = field(default_factory=list)
    mining: list[float] = field(default_factory=list)
    matching: list[float] = field(default_factory=list)
    looking: list[float] = field(default_factory=list)
    options: list[list[Option]] = field(default_factory=list)
    """Views that a query can make; others may serve it, too."""
    expected_gain: list[dict[str, float]] = field(default_factory=list)
    """What each view is expected to save a query that it serves."""
    making: dict[str, float] = field(default_factory=dict)
    preparing: dict[str, float] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    counted: dict[str, float] = field(default_factory=dict)
    """Bytes that are expected of results when their queries have been answered once: then their rows are known."""
    mismatches: list[str] = field(default_factory=list)

    def gain(self, query: int, view: str) -> float:
        return self.base[query] - self.pair[query].get(view, self.base[query])

    def creation(self, query: int, view: str) -> float:
        """What making a view costs the query that makes it."""
        return max(0.0, self.making[view] + self.pair[query].get(view, self.base[query]) - self.base[query])

    def without_views(self, queries: Sequence[int]) -> float:
        """Seconds of a workload in a session without automatic views."""
        return sum(self.plain[query] for query in queries) + sum(self.planning[query] for query in set(queries))


def measured(db: nearly.Session, workload: Workload, most_options: int, most_views: int) -> Matrix:
    """Measure a workload; its session has automatic views with room for all, and makes none by itself."""
    auto = db.autoview()
    keeping = auto.keeping
    found = Matrix()
    prepared: list[Prepared] = []
    candidates: dict[str, Candidate] = {}
    db._engine.prepare(f"{workload.queries[0]} -- so that no query is the first of all")
    for text in workload.queries:
        ready = _planned(db, text, found)
        if ready is None:
            continue
        took, mined = _timed(lambda ready=ready: keeping.mining.mine(ready))  # type: ignore[misc]
        worth = [each for each in mined.options if each.gain > 0][:most_options]
        candidates |= {each.id: mined.candidates[each.id] for each in worth}
        prepared.append(ready)
        found.mining.append(took)
        found.options.append(list(mined.options))
        found.expected_gain.append({})
        _tell(f"{workload.name}: {len(prepared)} queries, {len(candidates)} views")
    _keep_most_wanted(found, candidates, most_views)
    made = _made(keeping, prepared, candidates, found)
    _tell(f"{workload.name}: {len(made)} views made")
    _measure_asked(db, auto, prepared, _serving(auto.course, prepared, made, found), found)
    found.options = [[each for each in options if each.id in found.bytes and each.id in found.pair[number]]
                     for number, options in enumerate(found.options)]  # fmt: skip
    return found


def _tell(line: str) -> None:
    print(f"{line:<100}", end="\r", file=sys.stderr, flush=True)


def _timed(work: Callable[[], Found]) -> tuple[float, Found]:
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def _keep_most_wanted(found: Matrix, candidates: dict[str, Candidate], most: int) -> None:
    """Leave out views beyond a number: of each query those that save it least, of these the ones that save least in all."""
    worth: dict[str, float] = {}
    place: dict[str, int] = {}
    for options in found.options:
        for number, each in enumerate(sorted(options, key=lambda option: -option.gain)):
            worth[each.id] = worth.get(each.id, 0.0) + each.gain
            place[each.id] = min(place.get(each.id, number), number)
    for id_ in sorted(candidates, key=lambda id_: (place[id_], -worth[id_]))[most:]:
        del candidates[id_]


def _planned(db: nearly.Session, text: str, found: Matrix) -> Prepared | None:
    """A query that is planned for the first time; None where Spark must answer it."""
    try:
        took, ready = _timed(lambda: db._engine.prepare(text))
        if ready.query is None or not is_native(db, ready):
            return None
    except NearlyError:
        return None
    found.texts.append(text)
    found.planning.append(took)
    found.expected_base.append(db.autoview().keeping.estimates.seconds(ready.query.plan, ready.snapshot))
    found.pair.append({})
    found.beginning.append({})
    return ready


def is_native(db: nearly.Session, prepared: Prepared) -> bool:
    """Whether a query is answered without Spark, which is not started for it."""
    if prepared.query is None or prepared.kernel != "native":
        return False
    with db._engine.reading(prepared.snapshot):
        return db._engine.at(prepared.snapshot).native_rows(prepared.query.plan) is not None


def _made(
    keeping: Keeping, prepared: Sequence[Prepared], candidates: Mapping[str, Candidate], found: Matrix
) -> dict[str, MadeView]:
    """All views, each made some times, by turns as if for the first time and again; the last ones stay."""
    made: dict[str, MadeView] = {}
    first: dict[str, list[float]] = {id_: [] for id_ in candidates}
    again: dict[str, list[float]] = {id_: [] for id_ in candidates}
    for _, (id_, candidate), seconds in product(range(MAKING_ROUNDS), candidates.items(), (first, again)):
        owner = next(number for number, options in enumerate(found.options) if any(each.id == id_ for each in options))
        keeping.store.remove(id_)
        if seconds is first:
            keeping.engine.native._rendered.forget_if(lambda _: True)
        took, kept = _timed(lambda owner=owner, candidate=candidate: _make(keeping, prepared[owner], candidate))  # type: ignore[misc]
        if kept is not None:
            made[id_] = kept
            seconds[id_].append(took)
    for id_, kept in made.items():
        found.making[id_] = statistics.median(again[id_])
        found.preparing[id_] = max(0.0, statistics.median(first[id_]) - found.making[id_])
        found.bytes[id_] = kept.holding.bytes
        found.tables[id_] = kept.candidate.shape.tables
        if kept.candidate.kind == RESULT:
            found.counted[id_] = keeping.estimates.bytes(kept.candidate.stored.maintained, kept.table.rows)
    return made


def _make(keeping: Keeping, prepared: Prepared, candidate: Candidate) -> MadeView | None:
    """A view, made from the tables; how a query would make it is found out as well, since it takes its time."""
    option = Option(candidate.id, candidate.shape, 0.0, 0.0, 0.0, 0.0)
    keeping.making.intention(prepared, candidate, option, ())
    source = Rewriting(candidate.stored.maintained, (), 0.0)
    rows = keeping.making.made(prepared, Intention(candidate, option, source, source.plan, 1.0, 0.0), None, Running())
    if rows is None:
        return None
    tables = {table.name.lower(): table for table in prepared.snapshot}
    versions = {name: (tables[name].version, tables[name].content) for name in candidate.tables}
    return keeping.store.add(candidate, rows, versions, Holding(option, rows.bytes, 0.0, 0), keeping.engine.cluster.time_zone)


def _serving(course: QueryCourse, prepared: Sequence[Prepared], made: Mapping[str, MadeView], found: Matrix) -> list[list[str]]:
    """The views that serve each query; on the way it is measured how long it takes to find that out."""
    served: list[list[str]] = []
    keeping = course.keeping
    count = max(1, len(made))
    for number, ready in enumerate(prepared):
        question = question_of(ready)
        first, _ = _timed(lambda ready=ready: course.best(ready))  # type: ignore[misc]
        keeping.lookups.forget(question)
        again, _ = _timed(lambda ready=ready: course.best(ready))  # type: ignore[misc]
        found.matching.append(max(0.0, first - again) / count)
        found.looking.append(again / count)
        plan = ready.query.plan if ready.query is not None else None
        serving = [] if plan is None else keeping.rewriter.serving(ready, plan, made.values())
        served.append([each.views[0].id for each in serving])
        found.expected_gain[number] = {each.views[0].id: found.expected_base[number] - each.seconds for each in serving}
    return served


def _measure_asked(
    db: nearly.Session, auto: AutoView, prepared: Sequence[Prepared], serving: Sequence[Sequence[str]], found: Matrix
) -> None:
    """Ask all queries without automatic views, with them but over none, and over every view that serves them."""
    asking = _Asking(db, auto.keeping, prepared, found)
    for number, views in enumerate(serving):
        asking.serve(number, views, None, SURE)
    found.plain, found.base = asking.without_views(auto)
    for turn in range(max(map(len, serving), default=0)):
        _tell(f"queries over their view {turn + 1} of {max(map(len, serving))}")
        chosen = {number: views[turn] for number, views in enumerate(serving) if turn < len(views)}
        for number, seconds in asking.rounds(chosen, serving).items():
            found.pair[number][chosen[number]] = seconds
            first = asking.first[number] - len(found.bytes) * found.looking[number]
            found.beginning[number][chosen[number]] = max(0.0, first - seconds)


@dataclass(slots=True)
class _Asking:
    """Asks the queries of a workload in turn."""

    db: nearly.Session
    keeping: Keeping
    prepared: Sequence[Prepared]
    found: Matrix
    first: dict[int, float] = field(default_factory=dict)
    """Seconds of a query when it was last given another view."""
    _answers: dict[int, pa.Table] = field(default_factory=dict)
    _random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(3))

    def serve(self, number: int, views: Sequence[str], chosen: str | None, share: float) -> None:
        """Say that a view leaves this share of a query's time, the others all of it; nothing of it is left to experiments."""
        question = question_of(self.prepared[number])
        for each in views:
            self.keeping.shares[question, each] = share if each == chosen else UNUSED
            self.keeping.gains[question, each] = 0.0
        self.keeping.lookups.forget(question)

    def without_views(self, auto: AutoView) -> tuple[list[float], list[float]]:
        """Medians of all queries in a session without automatic views, and where they are on but none serves; in turns."""
        seconds: dict[bool, list[list[float]]] = {is_on: [[] for _ in self.prepared] for is_on in (False, True)}
        for _ in range(ROUNDS + 1):
            for number in self._random.permutation(len(self.prepared)).tolist():
                for auto.is_on in self._random.permutation([False, True]).tolist():
                    took, answer = self._asked(number)
                    seconds[auto.is_on][number].append(took)
                    self._check(number, answer.table)
        auto.is_on = True
        plain, base = ([statistics.median(each[1:]) for each in seconds[is_on]] for is_on in (False, True))
        return plain, base

    def rounds(self, chosen: Mapping[int, str], serving: Sequence[Sequence[str]]) -> dict[int, float]:
        """Medians of some rounds, after one in which answers are compared, over the views that are chosen."""
        going = {}
        for number, view in chosen.items():
            if self._comes_from(number, serving[number], view):
                going[number] = list[float]()
        for turn in range(ROUNDS + 1):
            for number in self._random.permutation(list(going)).tolist():
                seconds, answer = self._asked(number)
                if turn:
                    going[number].append(seconds)
                else:
                    self._check(number, answer.table)
        return {number: statistics.median(seconds) for number, seconds in going.items()}

    def _comes_from(self, number: int, views: Sequence[str], view: str) -> bool:
        """Have a query answered from a view, by a share that is about the true one; whether that is so."""
        name = self.keeping.store.kept[view].name
        firsts = []
        for _ in range(FIRST_ROUNDS):
            self.serve(number, views, view, SURE)
            self.keeping.gains.pop((question_of(self.prepared[number]), view), None)
            self.db._engine.native._rendered.forget_if(lambda _: True)
            seconds, answer = self._asked(number)
            if answer.source != name:
                return False
            firsts.append(seconds)
        self.first[number] = statistics.median(firsts)
        self.serve(number, views, view, min(USED, seconds / self.found.base[number]))
        if self._asked(number)[1].source != name:  # with that share another view is worth using as well
            self.serve(number, views, view, SURE)
        return True

    def _asked(self, number: int) -> tuple[float, nearly.Answer]:
        return _timed(lambda: self.db.sql(self.found.texts[number]).exact())

    def _check(self, number: int, table: pa.Table) -> None:
        expected = self._answers.setdefault(number, table)
        problem = difference(expected, table, self.found.texts[number])
        if problem:
            self.found.mismatches.append(f"{problem}: {self.found.texts[number][:80]}")
