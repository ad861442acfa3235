"""One query that stands while its tables arrive: how long each delta takes, what is kept, and whether answers are right."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any

import duckdb
import pyarrow as pa

import nearly
from benchmarks.standings.arriving import Tables
from benchmarks.standings.baselines import everything, greedy
from benchmarks.standings.limited import LimitedStates, TooLong
from nearly.engine.costs import Costs
from nearly.engine.engine import Engine
from nearly.engine.storage.layouts import Table
from nearly.standing.actions import Allowed
from nearly.standing.arrivals import Prediction
from nearly.standing.course import changed_between
from nearly.standing.maintained import maintained
from nearly.standing.planner import StateBudget
from nearly.standing.refresh import advance, begin
from nearly.standing.upkeep import CHANGE, WHOLE, Upkeep

OURS, RECOMPUTE, KEEP_ALL, GREEDY = "ours", "recompute", "keep all", "greedy"
UNLIMITED = StateBudget(float("inf"))


@dataclass(slots=True)
class Run:
    """What one query took under one strategy: the first answer, each delta, the bytes kept, planning, and wrong answers.

    A delta ends with its answer; what is kept for the next one is brought up to date `after` it. With `gave_up` it did not end
    within so many seconds, and nothing else is known.
    """

    first: float
    deltas: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    plan_ms: list[float] = field(default_factory=list)
    strategies: list[str] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    fitting: list[bool] = field(default_factory=list)
    gave_up: float | None = None

    @classmethod
    def middle(cls, runs: Sequence[Run]) -> Run:
        """Each delta as the median of several runs; one that did not end tells nothing of the others."""
        ended = [each for each in runs if each.gave_up is None]
        if not ended:
            return runs[0]
        return cls(
            statistics.median(each.first for each in ended),
            [statistics.median(some) for some in zip(*(each.deltas for each in ended), strict=True)],
            [statistics.median(some) for some in zip(*(each.after for each in ended), strict=True)],
            [max(some) for some in zip(*(each.bytes for each in ended), strict=True)],
            [statistics.median(some) for some in zip(*(each.plan_ms for each in ended), strict=True)],
            [strategy for each in ended for strategy in each.strategies],
            [right for each in ended for right in each.right],
            [fits for each in ended for fits in each.fitting],
        )

    def one_by_one(self) -> Iterator[Run]:
        """Each delta as a run of its own."""
        several = (self.deltas, self.after, self.bytes, self.plan_ms, self.strategies, self.right, self.fitting)
        for delta, after, bytes_, plan_ms, strategy, right, fits in zip(*several, strict=True):
            yield Run(self.first, [delta], [after], [bytes_], [plan_ms], [strategy], [right], [fits])

    @property
    def mean(self) -> float:
        return sum(self.deltas) / max(1, len(self.deltas))

    @property
    def mean_after(self) -> float:
        """What is done after an answer, for the next one."""
        return sum(self.after) / max(1, len(self.after))

    @property
    def memory(self) -> float:
        return float(max(self.bytes, default=0))


@dataclass(frozen=True, slots=True)
class Patience:
    """How often runs are made to be compared: so many rounds, of which none begins after some seconds; and when one is given up."""

    rounds: int = 3
    seconds: float = 20.0
    limit: float = 60.0


@dataclass(slots=True)
class Courses:
    """Runs of queries over versions of the tables; answers are compared with those of recomputation."""

    db: nearly.Session
    store: LimitedStates
    costs: Costs
    _expected: dict[tuple[str, tuple[int, ...]], pa.Table] = field(default_factory=dict)

    @property
    def engine(self) -> Engine:
        return self.db._engine

    def rounds(self, text: str, versions: Sequence[Tables], strategies: Sequence[str], patience: Patience) -> dict[str, Run]:
        """Strategies by turns, several times, so that whatever else goes on meets all of them; as long as there is time."""
        found: dict[str, list[Run]] = {strategy: [] for strategy in strategies}
        began = time.perf_counter()
        for done in range(patience.rounds):
            if done and time.perf_counter() - began > patience.seconds:
                break
            for strategy, runs in found.items():
                if not runs or runs[-1].gave_up is None:
                    runs.append(self.limited(text, versions, strategy, patience.limit if strategy == KEEP_ALL else None))
        return {strategy: Run.middle(runs) for strategy, runs in found.items()}

    def limited(self, text: str, versions: Sequence[Tables], strategy: str, limit: float | None) -> Run:
        """A run that is given up when it takes too long."""
        try:
            with self.store.within(limit):
                return self.run(text, versions, strategy)
        except TooLong:
            return Run(0.0, gave_up=limit)

    def run(
        self, text: str, versions: Sequence[Tables], strategy: str = OURS, budget: StateBudget = UNLIMITED,
        allowed: Allowed | None = None, predicted: Sequence[Prediction] | None = None,
    ) -> Run:  # fmt: skip
        """One query from the first of some versions to the last; what is predicted is what comes, unless told otherwise."""
        query = maintained(self.engine, text)
        upkeep = Upkeep(self.engine, self.store, query, f"{strategy} {text}", budget, self.costs, allowed or Allowed())
        own = [{name: tables[name] for name in map(str.lower, query.tables)} for tables in versions]
        said = list(predicted or (changed_between(self.engine, *pair) for pair in pairwise(own)))
        upkeep.forced = {RECOMPUTE: WHOLE, KEEP_ALL: CHANGE, GREEDY: CHANGE}.get(strategy)
        if strategy == KEEP_ALL:
            upkeep.fixed = everything(upkeep, own[0], self.store.check)
        elif strategy == GREEDY:
            upkeep.fixed = greedy(upkeep, own[0], budget.memory)
        try:
            began = time.perf_counter()
            begin(upkeep, own[0], said[0])
            found = Run(time.perf_counter() - began)
            for place, tables in enumerate(own[1:]):
                found.bytes.append(upkeep.bytes())
                found.plan_ms.append(upkeep.plan_seconds * 1000)
                following = said[place + 1] if place + 1 < len(said) else {}
                (refresh,) = advance([upkeep], tables, [following if strategy == OURS else None])
                found.deltas.append(refresh.seconds)
                found.after.append(upkeep.made_seconds)
                found.strategies.append(refresh.strategy)
                found.right.append(self._is_right(upkeep, tables))
                found.fitting.append(upkeep.bytes() <= budget.memory)
        finally:
            upkeep.release()
        return found

    def _is_right(self, upkeep: Upkeep, tables: Mapping[str, Table]) -> bool:
        key = (upkeep.query.text, tuple(table.version for _, table in sorted(tables.items())))
        if key not in self._expected:
            pinned = self.engine.at(tables.values())
            self._expected[key] = self.engine.run(self.engine.planner.over(pinned.catalog).prepare(upkeep.query.text)).table
        return upkeep.answer is not None and _bag(upkeep.answer) == _bag(self._expected[key])

    def duckdb_seconds(self, text: str, tables: Tables, cores: int) -> float:
        """DuckDB alone, over the same files in the page cache; the quicker of two runs."""
        with duckdb.connect() as connection:
            connection.execute(f"SET threads = {cores}")
            for name, table in tables.items():
                paths = ", ".join(f"'{path}'" for path in table.base.manifest.paths)
                connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{paths}])")
            spelled = self.engine.plan(text)
            sql, statics = self.engine.at(tables.values()).native.whole(spelled.query.plan) if spelled.query else (text, ())
            for static, body in statics:
                connection.execute(f'CREATE TABLE "{static}" AS {body}')
            times = []
            for _ in range(2):
                began = time.perf_counter()
                connection.execute(sql).to_arrow_table()
                times.append(time.perf_counter() - began)
        return min(times)


def _bag(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """Rows as a bag; doubles to ten digits."""
    return Counter(tuple(_rounded(value) for value in row.values()) for row in table.to_pylist())


def _rounded(value: Any) -> Any:
    return float(f"{value:.9e}") if isinstance(value, float) else value.normalize() if isinstance(value, Decimal) else value
