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

from nearly.synopsis.build.drafting import Shape, draft_for
from nearly.synopsis.query.view import View
from nearly.synopsis.structure.state import TreeState
from nearly.synopsis.structure.statistics import frame_for
from nearly.synopsis.upkeep.archive import Archive, Changes, apply, rebuild, size
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
    `applied` is the number of the last change that the state has taken.
    """

    def __init__(
        self,
        shape: Shape,
        state: TreeState,
        archive: Archive,
        beta: float = BETA,
        lock: threading.RLock | None = None,
        applied: int = 0,
    ) -> None:
        self.shape = shape
        self.beta = beta
        self.history: list[Repartitioned] = []
        self._state = state
        self._archive = archive
        self._lock = lock or threading.RLock()
        self._planning = threading.Lock()
        self._kept: list[Changes] | None = None
        self._applied = applied
        self._since_check = 0
        self._view: View | None = None
        if not state.built_variance.size:
            self._state = replace(state, built_variance=leaf_variances(self.view()))

    @property
    def state(self) -> TreeState:
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
        if self._since_check < CHECK_SHARE * max(self.view().rows, 1.0):
            return None
        self._since_check = 0
        found = verdict(self.view(), self._state.built_variance, self.beta)
        if self._state.sample.exhausted:
            return "deletes took the sample below its target"
        return found.reason if found else None

    def repartition(self, levels: int | str | None = None, force: bool = True) -> Repartitioned | None:
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
                fresh = self._built(view, proposal, upto)
                pause = self._exchange(fresh)
            finally:
                self._kept = None
            done = Repartitioned(proposal.node, proposal.before, proposal.after, time.perf_counter() - started, pause)
            self.history.append(done)
            logger.info("re-partitioned below node %d in %.2f s, blocking %.1f ms", done.node, done.seconds, 1e3 * done.pause)
            return done

    def _proposal(self, view: View, levels: int | str | None) -> Proposal:
        if levels is None:
            return propose(view, self.shape)
        worst = int(leaf_variances(view).argmax())
        return propose_around(view, self.shape, worst, None if levels == "auto" else int(levels), self.beta)

    def _built(self, view: View, proposal: Proposal, upto: int) -> TreeState:
        sample = view.sample
        frame = frame_for(proposal.tree, sample.rows, view.frame.centre)
        plan = draft_for(self.shape, sample.rows, int(view.rows), frame, weights(sample, view.rest_statistics))
        return rebuild(self._archive, plan, upto)

    def _exchange(self, fresh: TreeState) -> float:
        """Bring the new state up to the present and put it in place; returns how long everybody had to wait."""
        while True:
            with self._lock:
                kept = self._kept or []
                if sum(map(size, kept)) <= FEW_ROWS:
                    started = time.perf_counter()
                    for changes in kept:
                        apply(fresh, changes)
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
