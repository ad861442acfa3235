"""Queries that are run for real, end to end: a part of a simulated workload, and a session with automatic views and without."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import nearly
from benchmarks.agreement import difference
from benchmarks.autoviews.matrix import Matrix, is_native
from benchmarks.autoviews.optimum import best_views
from benchmarks.autoviews.simulation import Fixed, Rules, Simulation
from benchmarks.autoviews.workloads import Workload, sequence, workload


def replayed(chosen: Workload, matrix: Matrix, capacity: float, length: int, catalog: str) -> tuple[float, list[str]]:
    """How far the simulated seconds of a sequence are from those of a real run, by the views that are best for it."""
    queries = sequence("rzipf", matrix.base, length, 1)
    views = best_views(matrix, queries, capacity)
    problems: list[str] = []
    with nearly.connect(lazy=True, path=Path(catalog) / "replay") as db:
        for table, path in chosen.tables.items():
            db.register(table, str(path))
        expected = {query: db.sql(matrix.texts[query], kernel="native").exact().table for query in set(queries)}
        auto = db.autoview(str(int(capacity)), policy="off", slowdown=10)
        auto._worker.stop()
        keeping = auto.keeping
        for query in dict.fromkeys(queries):
            keeping.mining.mine(db._engine.prepare(matrix.texts[query]))
        keeping.policy = Fixed(views)
        for query in dict.fromkeys(queries):
            db.sql(matrix.texts[query]).exact()
        auto.settle()
        for query in dict.fromkeys(queries):  # what was measured is not the first time either
            db.sql(matrix.texts[query]).exact()
        real = 0.0
        served: list[int] = []
        for query in queries:
            began = time.perf_counter()
            answer = db.sql(matrix.texts[query]).exact()
            real += time.perf_counter() - began
            served.append(query)
            problem = difference(expected[query], answer.table, matrix.texts[query])
            if problem:
                problems.append(f"{problem}: {matrix.texts[query][:80]}")
        kept = list(keeping.store.kept)
        auto.off()
    simulation = Simulation(matrix, Fixed(()), Rules(capacity))
    told = 0.0
    for query in queries:
        simulation.kept = dict.fromkeys(kept)  # type: ignore[assignment]
        used = simulation._best(query)
        told += matrix.base[query] if used is None else matrix.pair[query][used]
    return abs(told - real) / real, problems


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
