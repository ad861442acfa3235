"""One tree at work: changes move it, queries read it, and it is planned again in the background when it no longer suits.

A new tree is built beside the old one from the table in the version that the old one is at; changes that come meanwhile go to the
old tree and are kept aside. When the new tree is ready it takes the kept changes, all but the last few without holding anybody up,
and replaces the old one in one short blocking step (JanusAQP, section 3.4.3, with the last two steps exchanged: the old tree goes
on answering until the new one has caught up). When that is called for, and for which part of the tree, is section 3.5.4. A part is
read alone, and takes the place of its leaves in the old tree, whose other leaves have been kept up all the while.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from nearly.synopsis.build.definition import TablePlace
from nearly.synopsis.build.drafting import Draft, Shape, draft_for, plan_tree
from nearly.synopsis.query.reading import TreeReading
from nearly.synopsis.structure.rows import Floats
from nearly.synopsis.structure.state import Changes, TreeState, apply, concerning, grafted, of_measure, size
from nearly.synopsis.structure.statistics import ROWS, scales_for
from nearly.synopsis.structure.tree import Graft, Tree, among

logger = logging.getLogger(__name__)

BETA = 2.0
"""By how much a variance may change before the tree is questioned, and by how much a new tree must be better."""
FEWEST_SAMPLES = 8
FEW_ROWS = 50_000
"""Kept changes of no more rows than this are applied in the blocking step."""
CHECK_SHARE = 0.05
"""The tree is questioned after changes of this share of its rows."""


Recount = Callable[[Draft, TablePlace], TreeState]
"""The state of a new tree, or of the part of it that is drafted, from the rows of its table at some place in its history."""


def drift(reading: TreeReading, built: Floats) -> str | None:
    """Why leaves call for another partitioning: too few samples, or a variance far from what it was when the tree was built."""
    starved = (reading.sample.sizes < FEWEST_SAMPLES) & (reading.rest_statistics[:, ROWS] > 4 * FEWEST_SAMPLES)
    if starved.any():
        return f"{int(starved.sum())} leaves have fewer than {FEWEST_SAMPLES} samples"
    now = reading.leaf_variances
    reference = np.maximum(built, now.max(initial=0.0) * 1e-9)
    grown, fallen = (now > BETA * np.maximum(reference, np.median(built))).sum(), (BETA * now < built).sum()
    return f"the variance of {grown} leaves grew, and of {fallen} fell, by more than {BETA:g}" if grown or fallen else None


@dataclass(frozen=True, slots=True)
class Proposal:
    """Another tree: what it replaces (a node of the old tree, 0 for all of it) and the worst variances before and after.

    Without a graft all leaves are others, or what they count.
    """

    tree: Tree
    node: int
    graft: Graft | None
    before: float
    after: float

    def worthwhile(self) -> bool:
        return self.after < self.before / BETA


def propose(reading: TreeReading, shape: Shape, node: int = 0) -> Proposal:
    """Plan the part below a node again, with as many leaves as it has."""
    tree, sample = reading.scales.tree, reading.sample
    below = tree.leaves_below(node)
    inside = among(sample.leaf, below)
    smaller = replace(shape, leaves=below.stop - below.start)
    planned = plan_tree(smaller, sample.rows.take(inside), reading.weights[inside])
    replanned = tree.replaced(node, planned)
    keeps = node > 0 and replanned.split_dimensions == tree.split_dimensions
    graft = Graft(below, replanned.leaves_below(node)) if keeps else None
    before, after = (float(each.max(initial=0.0)) for each in (reading.leaf_variances, reading.variances_under(replanned)))
    return Proposal(replanned, node, graft, before, after)


def ancestor(tree: Tree, leaf: int, levels: int) -> int:
    """The node so many levels above a leaf, or the root."""
    node = int(tree.leaf_nodes[leaf])
    for _ in range(levels):
        if node == 0:
            break
        node = int(tree.parent[node])
    return node


def propose_around(reading: TreeReading, shape: Shape, leaf: int, levels: int | None = None) -> Proposal:
    """Plan the surroundings of a leaf again: `levels` above it, or as few as give a worthwhile tree (found by bisection)."""
    tree = reading.scales.tree
    if levels is not None:
        return propose(reading, shape, ancestor(tree, leaf, levels))
    low, high = 1, int(tree.depth[tree.leaf_nodes[leaf]])
    best = propose(reading, shape, 0)
    while low < high:
        middle = (low + high) // 2
        found = propose(reading, shape, ancestor(tree, leaf, middle))
        if found.worthwhile() and found.after <= BETA * max(best.after, 1e-300):
            best, high = found, middle
        else:
            low = middle + 1
    return best


@dataclass(frozen=True, slots=True)
class Repartitioned:
    """What a re-partitioning did: which node was planned again, worst variances, how long it took and how long it blocked."""

    node: int
    before: float
    after: float
    seconds: float
    pause: float


class LiveTree:
    """A state that one thread at a time may change; queries look at readings of it.

    Trees of one synopsis share a lock, so that all have taken a version of the table or none; `place` is the one that this has.
    """

    def __init__(
        self, shape: Shape, state: TreeState, recount: Recount, place: TablePlace, lock: threading.RLock | None = None
    ) -> None:
        self.shape = shape
        self.place = place
        self.history: list[Repartitioned] = []
        self._state = state
        self._recount = recount
        self._lock = lock or threading.RLock()
        self._planning = threading.Lock()
        self._kept: list[Changes] | None = None
        self._since_check = 0
        self._reading: TreeReading | None = None
        if not state.built_variance.size:
            self._state = replace(state, built_variance=self.reading().leaf_variances)

    @property
    def state(self) -> TreeState:
        return self._state

    def reading(self) -> TreeReading:
        """The present state as queries read it; computed once after each change."""
        found = self._reading
        if found is None:
            with self._lock:
                found = self._reading = self._reading or TreeReading(self._state)
        return found

    def apply(self, changes: Changes, place: TablePlace) -> None:
        """Take the changes that lead to a place, all of them before any later query."""
        changes = of_measure(changes, self.shape.measure)
        with self._lock:
            apply(self._state, changes)
            if self._kept is not None:
                self._kept.append(changes)
            self.place = place
            self._since_check += size(changes)
            self._reading = None

    @contextmanager
    def unplanned(self) -> Iterator[None]:
        """While nobody plans the tree again; whoever does is waited for."""
        with self._planning:
            yield

    def restart(self, state: TreeState, place: TablePlace) -> None:
        """Begin anew with a state, while the tree is `unplanned`."""
        with self._lock:
            self._state, self.place, self._reading, self._since_check = state, place, None, 0
            self._judge_by(self.reading().leaf_variances)

    def questionable(self) -> str | None:
        """Why the tree should be planned again, looked at after enough changes; None when it is fine."""
        if self._since_check < CHECK_SHARE * max(self.reading().rows, 1.0):
            return None
        self._since_check = 0
        if self._state.sample.exhausted:
            return "deletes took the sample below its target"
        return drift(self.reading(), self._state.built_variance)

    def repartition(self, levels: int | str | None = None, force: bool = True) -> Repartitioned | None:
        """Plan the tree again: all of it, or the part so many `levels` above its worst leaf ("auto" searches the level).

        Without `force` a tree that is not better by the factor beta is not taken. Returns None when nothing was done.
        """
        with self._planning:
            started = time.perf_counter()
            with self._lock:
                reading, place = self.reading(), self.place
                self._kept = []
            try:
                proposal = self._proposal(reading, levels)
                if not (force or proposal.worthwhile() or self._state.sample.exhausted):
                    self._judge_by(reading.leaf_variances)
                    return None
                fresh = self._built(reading, proposal, place)
                pause = self._exchange(fresh, proposal.graft)
            finally:
                self._kept = None
            done = Repartitioned(proposal.node, proposal.before, proposal.after, time.perf_counter() - started, pause)
            self.history.append(done)
            logger.info("re-partitioned below node %d in %.2f s, blocking %.1f ms", done.node, done.seconds, 1e3 * done.pause)
            return done

    def _proposal(self, reading: TreeReading, levels: int | str | None) -> Proposal:
        if levels is None or (levels == "auto" and reading.sample.exhausted):
            return propose(reading, self.shape)
        worst = int(reading.leaf_variances.argmax())
        return propose_around(reading, self.shape, worst, None if levels == "auto" else int(levels))

    def _built(self, reading: TreeReading, proposal: Proposal, place: TablePlace) -> TreeState:
        sample = reading.sample
        scales = scales_for(proposal.tree, sample.rows, reading.scales.centre)
        plan = draft_for(self.shape, sample.rows, int(reading.rows), scales, reading.weights)
        if proposal.graft is not None:
            pooled = np.full(proposal.tree.leaves, sample.threshold.min())
            plan = replace(plan, only=proposal.graft.came, ceiling=pooled if sample.pooled else plan.ceiling)
        return self._recount(plan, place)

    def _exchange(self, fresh: TreeState, graft: Graft | None) -> float:
        """Bring the new state, or part of it, up to the present and put it in place; returns how long everybody had to wait."""
        only = None if graft is None else graft.came
        while True:
            with self._lock:
                kept = self._kept or []
                if sum(map(size, kept)) <= FEW_ROWS:
                    started = time.perf_counter()
                    for changes in kept:
                        apply(fresh, concerning(changes, fresh.scales, only))
                    self._state = fresh if graft is None else grafted(self._state, fresh, graft)
                    self._reading = TreeReading(self._state)
                    pause = time.perf_counter() - started
                    break
                self._kept = []
            for changes in kept:
                apply(fresh, concerning(changes, fresh.scales, only))
        self._judge_by(self.reading().leaf_variances)
        return pause

    def _judge_by(self, variances: Floats) -> None:
        """Compare later variances with these, with which no other tree is better by the factor beta: else the same drift would call
        for planning again and again."""
        with self._lock:
            self._state = replace(self._state, built_variance=variances)
