"""One tree at work: changes move it, queries read it, and it is planned again in the background when it no longer suits.

A new tree is built beside the old one from the archive as it was at some change; changes that come meanwhile go to the old tree and
are kept aside. When the new tree is ready it takes the kept changes, all but the last few without holding anybody up, and replaces
the old one in one short blocking step (JanusAQP, section 3.4.3, with the last two steps exchanged: the old tree goes on answering
until the new one has caught up).
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, replace

import numpy as np

from nearly.synopsis.build.drafting import Draft, Shape, draft_for
from nearly.synopsis.query.view import View
from nearly.synopsis.structure.extremes import Largest
from nearly.synopsis.structure.rows import Floats, Integers, concatenate
from nearly.synopsis.structure.sample import arranged
from nearly.synopsis.structure.state import Leaves, State
from nearly.synopsis.structure.statistics import ROWS, Hull, frame_for
from nearly.synopsis.upkeep.archive import Archive, caught_up, rebuild
from nearly.synopsis.upkeep.changes import Changes, apply, size
from nearly.synopsis.upkeep.drift import BETA, Proposal, leaf_variances, propose, propose_around, verdict, weights

logger = logging.getLogger(__name__)

FEW_ROWS = 50_000
"""Kept changes of no more rows than this are applied in the blocking step."""
CHECK_SHARE = 0.05
"""The tree is questioned after changes of this share of its rows."""


@dataclass(frozen=True, slots=True)
class Repartitioned:
    """What a re-partitioning did: which node was planned again, worst variances, how long it took and how long it blocked."""

    node: int
    before: float
    after: float
    seconds: float
    pause: float


class LiveTree:
    """A state that one thread at a time may change; queries read views of it.

    Trees of one synopsis share a lock, which is held over a whole batch: the archive is never seen in the middle of one.
    """

    def __init__(
        self, shape: Shape, state: State, archive: Archive, beta: float = BETA, lock: threading.RLock | None = None
    ) -> None:
        self.shape = shape
        self.beta = beta
        self.history: list[Repartitioned] = []
        self._state = state
        self._archive = archive
        self._lock = lock or threading.RLock()
        self._planning = threading.Lock()
        self._kept: list[Changes] | None = None
        self._applied = 0
        self._since_check = 0
        self._view: View | None = None
        if not state.built_variance.size:
            self._state = replace(state, built_variance=leaf_variances(self.view()))

    @property
    def state(self) -> State:
        return self._state

    def view(self) -> View:
        """The present state as queries read it; computed once after each change."""
        found = self._view
        if found is None:
            with self._lock:
                found = self._view = self._view or View(self._state)
        return found

    def apply(self, changes: Changes, number: int) -> None:
        """Take the changes of this number, all of them before any later query."""
        with self._lock:
            apply(self._state, changes)
            if self._kept is not None:
                self._kept.append(changes)
            self._applied = number
            self._since_check += size(changes)
            self._view = None

    def questionable(self) -> str | None:
        """Why the tree should be planned again, looked at after enough changes; None when it is fine."""
        rows = float(self._state.leaves.statistics[:, ROWS].sum())
        if self._since_check < CHECK_SHARE * max(rows, 1.0):
            return None
        self._since_check = 0
        found = verdict(self.view(), self._state.built_variance, self.beta)
        if self._state.sample.exhausted:
            return "deletes took the sample below its target"
        return found.reason if found else None

    def repartition(self, levels: int | str | None = None, goal: float = 1.0, force: bool = True) -> Repartitioned | None:
        """Plan the tree again: all of it, or the part so many `levels` above its worst leaf ("auto" searches the level).

        Without `force` a tree that is not better by the factor beta is not taken. Returns None when nothing was done.
        """
        with self._planning:
            started = time.perf_counter()
            with self._lock:
                view, upto = self.view(), self._applied
                self._kept = []
            try:
                proposal = self._proposal(view, levels)
                if not (force or proposal.worthwhile(self.beta) or self._state.sample.exhausted):
                    return None
                fresh = self._built(view, proposal, upto, goal)
                pause = self._exchange(view, proposal, fresh)
            finally:
                self._kept = None
            done = Repartitioned(proposal.node, proposal.before, proposal.after, time.perf_counter() - started, pause)
            self.history.append(done)
            logger.info("re-partitioned below node %d in %.2f s, blocking %.1f ms", done.node, done.seconds, 1e3 * done.pause)
            return done

    def catch_up(self, goal: float) -> None:
        """Read the archive up to a share of its rows; at 1 the tree is built again exactly."""
        catch_up = self._state.catch_up
        if catch_up is None:
            return
        if goal >= 1.0:
            with self._planning:
                with self._lock:
                    view, upto = self.view(), self._applied
                    self._kept = []
                try:
                    proposal = Proposal(view.frame.tree, 0, 0.0, 0.0)
                    self._exchange(view, proposal, self._built(view, proposal, upto, 1.0))
                finally:
                    self._kept = None
            return
        leaves = self._state.frame.tree.leaves
        same = Draft(self._state.frame, np.zeros(leaves, np.int64), np.zeros(leaves), self.shape)
        grown = caught_up(self._archive, same, self._state, goal).catch_up
        with self._lock:
            self._state = replace(self._state, catch_up=grown)
            self._view = None

    def _proposal(self, view: View, levels: int | str | None) -> Proposal:
        if levels is None:
            return propose(view, self.shape)
        worst = int(leaf_variances(view).argmax())
        return propose_around(view, self.shape, worst, None if levels == "auto" else int(levels), self.beta)

    def _built(self, view: View, proposal: Proposal, upto: int, goal: float) -> State:
        sample = view.sample
        frame = frame_for(proposal.tree, sample.rows, view.frame.centre)
        plan = draft_for(self.shape, sample.rows, int(view.rows), frame, weights(sample, view.leaf_statistics))
        return rebuild(self._archive, plan, upto, goal)

    def _exchange(self, view: View, proposal: Proposal, fresh: State) -> float:
        """Bring the new state up to the present and put it in place; returns how long everybody had to wait."""
        while True:
            with self._lock:
                kept = self._kept or []
                if sum(map(size, kept)) <= FEW_ROWS:
                    started = time.perf_counter()
                    for changes in kept:
                        apply(fresh, changes)
                    if proposal.node:
                        fresh = spliced(self._state, fresh, view, proposal)
                    self._state = fresh
                    self._view = View(fresh)
                    pause = time.perf_counter() - started
                    break
                self._kept = []
            for changes in kept:
                apply(fresh, changes)
        variances = leaf_variances(self.view())
        with self._lock:
            self._state = replace(self._state, built_variance=variances)
        return pause


def spliced(old: State, fresh: State, view: View, proposal: Proposal) -> State:
    """The old state outside the planned node, the new one inside it: what the old tree knows there is kept as it is."""
    was = view.frame.tree.leaves_below(proposal.node)
    now = slice(was.start, was.start + fresh.frame.tree.leaves - (view.frame.tree.leaves - (was.stop - was.start)))

    def join(before: Floats, after: Floats) -> Floats:
        return np.concatenate([before[: was.start], after[now], before[was.stop :]])

    frame = replace(fresh.frame, origin=join(old.frame.origin, fresh.frame.origin),
                    span=join(old.frame.span, fresh.frame.span))  # fmt: skip
    old_leaves, new_leaves = old.leaves, fresh.leaves
    leaves = Leaves(
        join(old_leaves.statistics, new_leaves.statistics),
        Hull(join(old_leaves.hull.low, new_leaves.hull.low), join(old_leaves.hull.high, new_leaves.hull.high)),
        Largest(join(old_leaves.largest.kept, new_leaves.largest.kept), join(old_leaves.largest.floor, new_leaves.largest.floor)),
        Largest(
            join(old_leaves.smallest.kept, new_leaves.smallest.kept), join(old_leaves.smallest.floor, new_leaves.smallest.floor)
        ),
    )
    longer = (now.stop - now.start) - (was.stop - was.start)
    outside = (old.sample.leaf < was.start) | (old.sample.leaf >= was.stop)
    inside = (fresh.sample.leaf >= now.start) & (fresh.sample.leaf < now.stop)
    moved: Integers = np.where(old.sample.leaf >= was.stop, old.sample.leaf + longer, old.sample.leaf)[outside]
    rows = concatenate([old.sample.rows.take(outside), fresh.sample.rows.take(inside)])
    leaf = np.concatenate([moved, fresh.sample.leaf[inside]])
    threshold = join(old.sample.threshold, fresh.sample.threshold)
    sample = arranged(rows, leaf, threshold, old.sample.target, old.sample.pooled)
    return State(frame, leaves, sample)
