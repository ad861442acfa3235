"""What is kept, who decides about it, and what was found out.

Queries (`course`) and what is done when it is quiet (`worker`) make views, let them go and learn of them here alone. The policy is
told what happened by whoever holds `deciding`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nearly.autoview.candidates import Candidate
from nearly.autoview.estimates import ViewEstimates
from nearly.autoview.experiments import Experiments, Outcome
from nearly.autoview.lookups import Lookups
from nearly.autoview.making import Making
from nearly.autoview.mining import Fact, Mining
from nearly.autoview.options import Holding, Occasion, Option
from nearly.autoview.policies.policy import ViewPolicy
from nearly.autoview.rewriter import Rewriter
from nearly.autoview.store import Encoded, MadeView, NoRoom, ViewStore
from nearly.engine.engine import Engine
from nearly.engine.planner import Prepared
from nearly.errors import EngineError

REMEMBERED = 2_000
"""Findings of experiments."""
DEFERRED = 8


@dataclass(slots=True)
class Tally:
    """What was counted since the session began."""

    queries: int = 0
    served: int = 0
    made: int = 0
    evicted: int = 0
    lost: int = 0
    moved: int = 0
    experiments: int = 0
    saved: float = 0.0
    spent: float = 0.0
    most_bytes: int = 0
    slowest: float = 0.0
    """The largest share by which a query that made a view took longer than expected."""


@dataclass(slots=True)
class Deferred:
    """A view that is worth making, but not while its query runs."""

    prepared: Prepared
    candidate: Candidate
    option: Option


class Keeping:
    """What is kept, and who decides."""

    def __init__(self, engine: Engine, store: ViewStore, policy: ViewPolicy, share: float) -> None:
        self.engine, self.store, self.policy = engine, store, policy
        self.estimates = ViewEstimates(engine)
        self.rewriter = Rewriter(self.estimates)
        self.mining = Mining(self.estimates, self.rewriter)
        self.making = Making(self.estimates, self.rewriter, store, share)
        self.experiments = Experiments(engine)
        self.lookups = Lookups()
        self.tally = Tally()
        self.step = 0
        self.gains: dict[tuple[str, str], float] = {}
        """What experiments found: seconds that a question gains by a view. Any thread may list it: that of a dict is one step."""
        self.shares: dict[tuple[str, str], float] = {}
        """The same as the share of its time that a question takes with the view."""
        self.deferred: deque[Deferred] = deque(maxlen=DEFERRED)
        self.deciding = threading.Lock()
        self.told: deque[Callable[[], None]] = deque()
        self.is_changed = False

    def keep(
        self, prepared: Prepared, moment: Occasion, candidate: Candidate, option: Option, rows: Encoded, seconds: float, cost: float
    ) -> MadeView | None:
        """Have a view whose rows are there, in place of those that the policy lets go; None where it lets none go."""
        self.mining.facts[candidate.id] = Fact(rows.rows, rows.bytes, seconds)
        tables = {table.name.lower(): table for table in prepared.snapshot}
        versions = {name: (tables[name].version, tables[name].content) for name in candidate.tables}
        holding, zone = Holding(option, rows.bytes, cost, self.step), self.engine.cluster.time_zone
        try:
            kept = self.store.add(candidate, rows, versions, holding, zone, lambda: self._make_room(moment, option, rows.bytes))
        except (NoRoom, EngineError):
            return None
        self.tally.made += 1
        self.tally.most_bytes = max(self.tally.most_bytes, self.store.bytes)
        self.is_changed = True
        return kept

    def _make_room(self, moment: Occasion, option: Option, size: int) -> None:
        """Let go of what the policy lets go for a new view; `NoRoom` where that is nothing, or would not be enough.

        Whoever holds the lock of the store may. The files go before the new ones come, since both together may be more than the
        limit: where the writing fails after that, they are gone for nothing.
        """
        victims = self.policy.victims(moment, option, size)
        if victims is None:
            raise NoRoom("the policy lets nothing go for it")
        going = [self.store.kept[each.id] for each in victims if each.id in self.store.kept]
        if any(each.readers for each in going):
            raise NoRoom("what would go for it is being read")
        if self.store.bytes - sum(each.holding.bytes for each in going) + size > self.store.limit:
            raise NoRoom("others came meanwhile")
        for each in going:
            self.evict(each.id)

    def moment(self, question: str = "", options: Sequence[Option] = (), seconds: float = 0.0) -> Occasion:
        """What is kept as a question comes, of which these views could be made."""
        with self.store.lock:
            holdings = [each.holding for each in self.store.kept.values()]
        return Occasion(self.step, question, options, holdings, self.store.limit, seconds)

    def learn(self, outcome: Outcome) -> None:
        """An experiment was run."""
        key = (outcome.experiment.question, outcome.experiment.view)
        self.gains[key] = outcome.gain
        self.shares[key] = outcome.used / max(outcome.unused, 1e-6)
        while len(self.gains) > REMEMBERED:
            oldest = next(iter(self.gains))
            del self.gains[oldest]
            self.shares.pop(oldest, None)
        self.lookups.forget(key[0])
        self.tally.experiments += 1
        self.is_changed = True
        self.told.append(lambda: self.policy.measured(*key, outcome.gain))

    def tell(self) -> None:
        """Tell the policy what happened; whoever holds `deciding` may."""
        while self.told:
            self.told.popleft()()

    def train(self) -> None:
        """Let the policy learn; queries that come meanwhile make no views."""
        with self.deciding:
            self.tell()
            self.policy.train()

    def evict(self, id_: str, lost: bool = False) -> None:
        """Let go of a view, and of the experiments with it."""
        kept = self.store.kept.get(id_)
        if kept is None:
            return
        self.store.remove(id_)
        self.experiments.flush(id_)
        self.note_gone(kept, lost)

    def note_gone(self, view: MadeView, lost: bool) -> None:
        """A view went, to make room or since its tables changed."""
        self.tally.lost += lost
        self.tally.evicted += not lost
        self.is_changed = True
        step = self.step
        self.told.append(lambda: self.policy.gone(view.holding, step))
        if lost:
            self.told.append(lambda: self.policy.lost(view.id))

    def policy_content(self) -> Mapping[str, object]:
        with self.deciding:
            self.tell()
            return dict(self.policy.content())
