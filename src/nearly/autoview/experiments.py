"""Counterfactual experiments: what a query would have taken without a view that it used.

Every use of a view queues one, unless it was run before. When nobody asks anything, the query is run with and without the view in
turns, and the difference of the medians is what it gains. One that a user's query interrupts is queued again.
"""

from __future__ import annotations

import logging
import statistics
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from nearly.engine.engine import Engine
from nearly.engine.native.running import Running
from nearly.engine.storage.layouts import Table
from nearly.plan.depth import deep_recursion
from nearly.plan.nodes import Plan

logger = logging.getLogger(__name__)

PAIRS = 2
"""How often each side is run; both are run once before, so that neither reads from a cold disk alone."""
QUEUED = 256


@dataclass(frozen=True, slots=True)
class Side:
    """A plan and the tables it reads, those of views included."""

    plan: Plan
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A question with a view and without it."""

    question: str
    view: str
    used: Side
    unused: Side
    reads: frozenset[str] = frozenset()
    """The views that one of the sides reads."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds of both sides."""

    experiment: Experiment
    used: float
    unused: float

    @property
    def gain(self) -> float:
        return self.unused - self.used


class Experiments:
    """The queue of experiments: queries fill it and flush it, and the worker takes from it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._queue: OrderedDict[tuple[str, str], Experiment] = OrderedDict()

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, experiment: Experiment, urgent: bool = True) -> None:
        """Queue an experiment; of one question and view there is one, which an urgent one replaces."""
        key = (experiment.question, experiment.view)
        with self._lock:
            if urgent or key not in self._queue:
                self._queue[key] = experiment
            while len(self._queue) > QUEUED:
                self._queue.popitem(last=False)

    def flush(self, view: str) -> None:
        """Forget the experiments with a view that is gone or has other rows now."""
        with self._lock:
            for key in [key for key, each in self._queue.items() if view in each.reads]:
                del self._queue[key]

    def next(self) -> Experiment | None:
        with self._lock:
            return self._queue.popitem(last=False)[1] if self._queue else None

    @deep_recursion()
    def run(self, experiment: Experiment, running: Running) -> Outcome | None:
        """Run one; None where somebody's query broke it off, and it is queued again, and where a side is for Spark to judge."""
        found: tuple[list[float], list[float]] = ([], [])
        try:
            for turn in range(PAIRS + 1):
                for place, side in enumerate((experiment.used, experiment.unused)):
                    seconds = timed(self._engine, side.plan, side.tables, running)
                    if turn:
                        found[place].append(seconds)
        except duckdb.InterruptException:
            self.add(experiment)
            return None
        except duckdb.Error as trouble:
            logger.info("an experiment with %s was given up: %s", experiment.view, trouble)
            return None
        return Outcome(experiment, statistics.median(found[0]), statistics.median(found[1]))


def timed(engine: Engine, plan: Plan, tables: Sequence[Table], running: Running) -> float:
    """Seconds that a plan takes in the driver's engine, where both sides of an experiment are run."""
    pinned = engine.at(tables)
    with engine.reading(tables):
        began = time.perf_counter()
        sql, statics = pinned.native.whole(plan)
        engine.native.local.configure(engine.native.settings)
        with engine.native.local.loaded(statics, running):
            engine.native.local.run(sql, (), {}, running)
        return time.perf_counter() - began
