"""Changes: how many a second, how accurate the tree stays, and how long anybody has to wait while it is planned again."""

from __future__ import annotations

import threading
import time

import numpy as np

from benchmarks.report import Record
from benchmarks.synopses.accuracy import build
from benchmarks.synopses.data import DataSet
from nearly.synopsis.build.definition import TablePlace
from nearly.synopsis.build.drafting import Draft, LeafCounts, Shape, finished
from nearly.synopsis.query.estimates import answer
from nearly.synopsis.query.reading import TreeReading
from nearly.synopsis.structure.rows import Floats, Integers, Rows
from nearly.synopsis.structure.state import Changes, RowChange, TreeState, apply, concerning
from nearly.synopsis.structure.tree import Condition
from nearly.synopsis.upkeep.live import LiveTree

LEAVES = 128
RATE = 0.01
BATCH = 50_000


class Follower:
    """A tree that takes changes, with or without being planned again, and in memory the rows that it is planned from."""

    def __init__(self, rows: Rows, shape: Shape, replan: bool) -> None:
        self.start = rows
        self.log: list[Changes] = []
        self.tree = LiveTree(shape, build(rows, shape), self.recount, TablePlace(0, ""))
        self.replan = replan
        self.seconds = 0.0
        self.rows = 0

    def take(self, changes: Changes) -> None:
        """Apply changes; only this is timed. Planning happens between batches here, and beside them in `pause`."""
        self.log.append(changes)
        started = time.perf_counter()
        self.tree.apply(changes, TablePlace(len(self.log), ""))
        self.seconds += time.perf_counter() - started
        self.rows += sum(len(change.rows) for change in changes)
        if self.replan and self.tree.questionable():
            self.tree.repartition(force=False)

    def recount(self, draft: Draft, place: TablePlace) -> TreeState:
        part = LeafCounts.nothing(draft)
        part.add(draft, self.start)
        state = finished(draft, part)
        for changes in self.log[: place.version]:
            apply(state, concerning(changes, draft.scales, draft.only))
        return state


def sorted_arrivals(data: DataSet, queries: int) -> Record:
    """From a tenth of the rows, the rest arrives in order of the predicate column: all of it in the last leaf."""
    rows = data.rows(0)
    start = len(rows) // 10
    live, fixed = (Follower(rows.take(np.arange(start)), _shape(len(rows)), replan) for replan in (True, False))
    for begin in range(start, len(rows), BATCH):
        changes = (RowChange(True, rows.take(np.arange(begin, min(len(rows), begin + BATCH)))),)
        live.take(changes)
        fixed.take(changes)
    return _judged("sorted arrivals", live, fixed, rows, data.queries(queries, 21))


def concentrated_deletes(data: DataSet, queries: int) -> Record:
    """Half the rows in a tenth of the leaves are deleted, then a tenth more rows arrive, spread evenly; nine times over."""
    rng = np.random.default_rng(22)
    rows = data.rows(0).take(rng.permutation(len(data.values)))
    start = len(rows) // 10
    live, fixed = (Follower(rows.take(np.arange(start)), _shape(len(rows)), replan) for replan in (True, False))
    present = np.arange(start)
    for step in range(1, 10):
        gone = _in_some_leaves(fixed.tree.reading(), rows, present, rng)
        arriving = np.arange(start * step, min(len(rows), start * (step + 1)))
        for change in (RowChange(False, rows.take(gone)), RowChange(True, rows.take(arriving))):
            live.take((change,))
            fixed.take((change,))
        present = np.concatenate([np.setdiff1d(present, gone), arriving])
    return _judged("concentrated deletes", live, fixed, rows.take(present), data.queries(queries, 23))


def _shape(rows: int) -> Shape:
    return Shape((0,), LEAVES, round(RATE * rows))


def _in_some_leaves(reading: TreeReading, rows: Rows, present: Integers, rng: np.random.Generator) -> Integers:
    chosen = rng.random(reading.scales.tree.leaves) < 0.1
    leaf = reading.scales.tree.leaf_of(rows.coordinates[:, present])
    candidates = present[chosen[leaf]]
    return rng.permutation(candidates)[: len(candidates) // 2]


def _judged(name: str, live: Follower, fixed: Follower, rows: Rows, ranges: Floats) -> Record:
    fresh = TreeReading(build(rows, _shape(len(rows))))
    order = np.argsort(rows.coordinates[0], kind="stable")
    column, sums = rows.coordinates[0][order], np.append(0.0, np.cumsum(rows.values[order]))
    truth = sums[np.searchsorted(column, ranges[:, 1], side="right")] - sums[np.searchsorted(column, ranges[:, 0])]
    errors = {
        label: _median(reading, ranges, truth) for label, reading in
        (("re-partitioned", live.tree.reading()), ("never", fixed.tree.reading()), ("fresh", fresh))
    }  # fmt: skip
    whole = answer(live.tree.reading(), "sum", (), 0.95)
    return {
        "changes": name, "median error %": 100 * errors["re-partitioned"], "never re-partitioned %": 100 * errors["never"],
        "fresh %": 100 * errors["fresh"], "over fresh": errors["re-partitioned"] / errors["fresh"],
        "re-partitionings": len(live.tree.history),
        "longest block ms": 1e3 * max((each.pause for each in live.tree.history), default=0.0),
        "rows/s": live.rows / live.seconds, "exact": bool(abs(whole.value - sums[-1]) < 1e-6 * abs(sums[-1])),
    }  # fmt: skip


def _median(reading: TreeReading, ranges: Floats, truth: Floats) -> float:
    found = np.array([answer(reading, "sum", (Condition(0, low, high),), 0.95).value for low, high in ranges.tolist()])
    usable = truth != 0
    return float(np.median(np.abs(found[usable] / truth[usable] - 1.0)))


BETWEEN_QUESTIONS = 0.001
"""Without a moment between questions Python's lock would hardly ever go to the thread that plans."""


def pause(data: DataSet) -> float:
    """The longest time, in milliseconds, that a question took while the tree was planned again and changes came in."""
    rows = data.rows(0)
    follower = Follower(rows.take(np.arange(len(rows) // 2)), _shape(len(rows)), replan=False)
    reading = follower.tree.reading()
    answer(reading, "sum", (Condition(0, *data.queries(1, 24)[0].tolist()),), 0.95)
    done = threading.Event()
    worst = 0.0

    def plan() -> None:
        for _ in range(3):
            follower.tree.repartition()
        done.set()

    worker = threading.Thread(target=plan)
    worker.start()
    ranges, place, begin = data.queries(4096, 25).tolist(), 0, len(rows) // 2
    while not done.is_set():
        started = time.perf_counter()
        answer(follower.tree.reading(), "sum", (Condition(0, *ranges[place % 4096]),), 0.95)
        worst = max(worst, time.perf_counter() - started)
        time.sleep(BETWEEN_QUESTIONS)
        place += 1
        if place % 50 == 0 and begin + 5_000 < len(rows):
            follower.take((RowChange(True, rows.take(np.arange(begin, begin + 5_000))),))
            begin += 5_000
    worker.join()
    return 1e3 * worst
