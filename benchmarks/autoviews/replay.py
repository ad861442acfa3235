"""Queries that are run for real, end to end: a part of a simulated workload, and a session with automatic views and without."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import nearly
from benchmarks.agreement import difference
from benchmarks.autoviews.matrix import Matrix, is_native
from benchmarks.autoviews.optimum import best_views
from benchmarks.autoviews.simulation import DELAY, MAKING, PLAIN, REUSE, UPKEEP, Fixed, Rules, Simulated, Simulation
from benchmarks.autoviews.workloads import Workload, sequence, workload
from benchmarks.report import Record
from nearly.autoview.autoview import AutoView
from nearly.autoview.options import Occasion, Option
from nearly.autoview.policies.learned import Learned
from nearly.autoview.policies.policy import ViewPolicy

TOTAL = "all"
RUNS = 3
"""Real sessions, of which the middle one counts."""
LOST_EVERY = 50
"""Queries after which the views of some table are lost."""


@dataclass(slots=True)
class Replayed:
    """Seconds that were simulated and that passed, in all and by what queries do; and answers that differ."""

    rows: list[Record] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def note(self, policy: str, simulated: Simulated, runs: Sequence[Simulated]) -> None:
        """What was simulated, and the run of some that took neither least nor most: a machine is not always as quick."""
        real = sorted(runs, key=lambda each: each.total)[len(runs) // 2]
        others = ", ".join(f"{each.total:.2f}" for each in runs)
        for part in (TOTAL, PLAIN, REUSE, MAKING, UPKEEP):
            told, passed = (each.seconds if part == TOTAL else each.of_part(part) for each in (simulated, real))
            if told or passed:
                expected, took = sum(told), sum(passed)
                self.rows.append({
                    "policy": policy, "part": part, "queries simulated": len(told), "queries run": len(passed),
                    "simulated s": expected, "run s": took, "error": abs(expected - took) / took if took else None,
                    "all runs s": others if part == TOTAL else None,
                })  # fmt: skip

    def error(self, policy: str) -> float:
        """Of all queries together."""
        return max(float(row["error"] or 0.0) for row in self.rows if (row["policy"], row["part"]) == (policy, TOTAL))


def replayed(chosen: Workload, matrix: Matrix, capacity: float, length: int, catalog: str) -> Replayed:
    """A sequence simulated and run, from the first query on: with the views that are best for it, and with the learner."""
    queries = sequence("rzipf", matrix.base, length, 1)
    views = best_views(matrix, queries, capacity)
    found = Replayed()
    policies: Mapping[str, Callable[[], ViewPolicy]] = {"ilp": lambda: Fixed(views), "learned": lambda: Learned(1)}
    rules = Rules(capacity, maintained=LOST_EVERY, seed=1, mined=True)
    for name, policy in policies.items():
        simulated = Simulation(matrix, policy(), rules).run(queries)
        places = [Path(catalog) / f"{name}-{run}" for run in range(RUNS)]
        found.note(name, simulated, [_run(chosen, matrix, queries, policy(), rules, place, found.problems) for place in places])
    return found


def _run(
    chosen: Workload,
    matrix: Matrix,
    queries: Sequence[int],
    policy: ViewPolicy,
    rules: Rules,
    catalog: Path,
    problems: list[str],
) -> Simulated:
    """The seconds of a real session, which is let rest as often as the simulation takes it to be."""
    found = Simulated()
    with nearly.connect(lazy=True, path=catalog) as db:
        for table, path in chosen.tables.items():
            db.register(table, str(path))
        expected = {query: db.sql(matrix.texts[query], kernel="native").exact().table for query in set(queries)}
        auto = db.autoview(str(int(rules.capacity)), policy="off", slowdown=10)
        auto._worker.stop()
        for query in set(queries):
            auto.keeping.mining.mine(db._engine.prepare(matrix.texts[query]))
        for memory in (db._engine.planner._known, db._engine.native._rendered):  # a text is planned when it is asked first
            memory.forget_if(lambda _: True)
        auto.keeping.policy = Known(policy, frozenset(matrix.bytes))
        random, lost = np.random.default_rng(rules.seed), set[str]()
        tables = sorted({table for tables in matrix.tables.values() for table in tables})
        for step, query in enumerate(queries, 1):
            before = (auto.keeping.tally.made, set(auto.keeping.store.kept))
            began = time.perf_counter()
            answer = db.sql(matrix.texts[query]).exact()
            found.seconds.append(time.perf_counter() - began)
            found.parts.append(_part(auto, before, lost, answer.source))
            problem = difference(expected[query], answer.table, matrix.texts[query])
            if problem:
                problems.append(f"{problem}: {matrix.texts[query][:80]}")
            if step % rules.maintained == 0:
                lost |= _lose(auto, str(random.choice(tables)))
            if step % DELAY == 0:
                auto.settle()
        auto.off()
    return found


def _part(auto: AutoView, before: tuple[int, set[str]], lost: set[str], source: str) -> str:
    """What a query did."""
    made, kept = before
    if auto.keeping.tally.made > made:
        return UPKEEP if lost & (set(auto.keeping.store.kept) - kept) else MAKING
    return REUSE if source.startswith("autoview") else PLAIN


def _lose(auto: AutoView, table: str) -> set[str]:
    """Lose the views of a table, as if it had changed."""
    gone = {view.id for view in auto.keeping.store.kept.values() if table in view.candidate.shape.tables}
    for view in gone:
        auto.keeping.evict(view, lost=True)
    return gone


class Known(ViewPolicy):
    """A policy that sees those views alone that were measured."""

    def __init__(self, policy: ViewPolicy, views: frozenset[str]) -> None:
        self._views = views
        self._ranked = policy.ranked
        for name in vars(ViewPolicy):
            if not name.startswith("_") and name != "ranked":
                setattr(self, name, getattr(policy, name))

    def ranked(self, moment: Occasion) -> Sequence[Option]:
        return self._ranked(replace(moment, options=[each for each in moment.options if each.id in self._views]))


@dataclass(frozen=True, slots=True)
class Session:
    """Seconds of a session from its first query to its last, those that processors worked for it, and its answers."""

    seconds: float
    worked: float
    answers: Mapping[str, object]


def compared_sessions(length: int, scale: str, name: str, tiny: bool) -> tuple[Session, Session, list[str]]:
    """A session of mixed queries with automatic views, learning included, and one without; and which answers differ."""
    chosen = workload(name, scale, 4 if tiny else 30)
    texts = _native(chosen)
    random = np.random.default_rng(5)
    shares = 1.0 / np.arange(1, len(texts) + 1)
    queries = [texts[place] for place in random.choice(len(texts), length, p=shares / shares.sum())]
    plain, mine = _session(chosen, queries, None), _session(chosen, queries, "200MB")
    problems = [difference(expected, mine.answers[text], text) for text, expected in plain.answers.items()]
    return mine, plain, [each for each in problems if each is not None]


def _native(chosen: Workload) -> list[str]:
    """The queries that need no Spark."""
    with tempfile.TemporaryDirectory(prefix="nearly-bench-") as catalog, nearly.connect(lazy=True, path=catalog) as db:
        for table, path in chosen.tables.items():
            db.register(table, str(path))
        return [text for text in chosen.queries if is_native(db, db._engine.plan(text))]


def _session(chosen: Workload, queries: Sequence[str], storage: str | None) -> Session:
    with tempfile.TemporaryDirectory(prefix="nearly-bench-") as catalog, nearly.connect(lazy=True, path=catalog) as db:
        for table, path in chosen.tables.items():
            db.register(table, str(path))
        if storage is not None:
            db.autoview(storage)
        found = {}
        began, worked = time.perf_counter(), time.process_time()
        for text in queries:
            found[text] = db.sql(text).exact().table
        return Session(time.perf_counter() - began, time.process_time() - worked, found)
