"""Workloads of many queries from few measurements: what a policy would have made, used and let go, and the seconds of all that.

A query takes the kept view over which it takes least, as far as experiments and estimates tell, as the rewriter does. To the
query is added what it costs to plan it when it is asked for the first time, to compare it with views where others are kept than
when it was asked last, or more is known of them, to decide what to make, and to make it. Experiments are run while it is idle,
and told some queries later. A real session makes in quiet times what would slow a query too much, and makes views from views;
here the query pays, from the tables unless it is its own result, with every policy alike. How far that is from a real session
with the learner, the replay tells.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.autoviews.matrix import Matrix
from nearly.autoview.attention import Attention
from nearly.autoview.course import COMPARED, TRIED, may_fit
from nearly.autoview.options import Holding, Occasion, Option
from nearly.autoview.policies.policy import ViewPolicy
from nearly.autoview.rewriter import CHEAPER

DELAY = 20
"""Queries until the outcome of an experiment is told."""
_AGAIN = -1
"""Instead of the changes of views before which a query was compared with them: it is compared again."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How a workload is simulated."""

    capacity: float
    delay: int = DELAY
    told_costs: bool = False
    """Whether the policy is told the true seconds of computing a view before it was made."""
    told_all: bool = False
    """Whether it knows the bytes and seconds of all views beforehand."""
    told_gains: bool = True
    """Whether experiments are run."""
    maintained: int = 0
    """After so many queries, the views of a random table are lost, again and again; never where it is 0."""
    seed: int = 0
    mined: bool = False
    """Whether it is known beforehand what could be kept of each query; else finding it out is part of its first time."""


PLAIN, REUSE, MAKING, UPKEEP = "over tables", "over views", "making", "making again"
"""What queries do: those of the last kind make a view that was lost since its tables changed."""


@dataclass(slots=True)
class Simulated:
    """What came of a workload: seconds of each query, what it did, what was made, and the largest number of bytes."""

    seconds: list[float] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    made: int = 0
    evicted: int = 0
    creation: float = 0.0
    most_bytes: int = 0
    policy_seconds: float = 0.0

    @property
    def total(self) -> float:
        return sum(self.seconds)

    @property
    def second_half(self) -> float:
        return sum(self.seconds[len(self.seconds) // 2 :])

    def of_part(self, part: str) -> list[float]:
        """Seconds of the queries that do one thing."""
        return [seconds for seconds, each in zip(self.seconds, self.parts, strict=True) if each == part]


class Simulation:
    """One policy over one workload."""

    def __init__(self, matrix: Matrix, policy: ViewPolicy, rules: Rules) -> None:
        self.matrix, self.policy, self.rules = matrix, policy, rules
        self.kept: dict[str, Holding] = {}
        self.found = Simulated()
        self._measured: dict[tuple[int, str], float] = {}
        self._waiting: deque[tuple[int, int, str]] = deque()
        self._random = np.random.default_rng(rules.seed)
        self._seen: set[str] = set(matrix.bytes) if rules.told_all else set()
        known = matrix.making if rules.told_costs else {}
        self._options = [[replace(each, known=known.get(each.id)) for each in options] for options in matrix.options]
        self._expected = [
            {view: gain for view, gain in gains.items() if view in pair}
            for gains, pair in zip(matrix.expected_gain, matrix.pair, strict=True)
        ]
        self._tables = sorted({table for tables in matrix.tables.values() for table in tables})
        self._changes = 0
        self._looked: dict[int, int] = {}
        self._compared: set[tuple[int, str, int]] = set()
        self._begun: set[tuple[int, str, int]] = set()
        self._lost: set[str] = set()
        self._taken: set[tuple[int, str | None]] = set()
        self._answered: set[int] = set()
        self._prepared: set[str] = set()
        self._given_up: set[str] = set()
        self._attention = Attention()
        self._wasted = 0.0
        """Seconds of making views in this query that turned out too large."""

    def run(self, queries: Sequence[int]) -> Simulated:
        for step, query in enumerate(queries, 1):
            self._tell(step)
            self._query(step, query)
            if self.rules.maintained and step % self.rules.maintained == 0:
                self._lose(str(self._random.choice(self._tables)), step)
            began = time.thread_time()
            self.policy.train()
            self.found.policy_seconds += time.thread_time() - began
        return self.found

    def _query(self, step: int, query: int) -> None:
        looks = self._looked.get(query) != self._changes
        around = self._planning(query) + (self._matching(query) if looks else 0.0)
        used, expected = self._best(query)
        usual = self.matrix.base[query] if used is None else self.matrix.pair[query][used]
        moment = Occasion(step, str(query), self._current(query), list(self.kept.values()), self.rules.capacity, usual)
        began = time.thread_time()
        self._wasted = 0.0
        known = usual if (query, used) in self._taken else expected
        self._answered.add(query)
        made = None
        if self._attention.is_due(str(query), known):
            made = self._make(moment, query)
        else:
            self.policy.asked(moment.question, step)
        deciding = time.thread_time() - began
        self.found.policy_seconds += deciding
        around += self._wasted
        if made is not None:
            holding = self.kept[made]
            after = self._beginning(query, made) + self.matrix.pair[query].get(made, usual)
            holding.cost = max(0.0, self._making(query, made, used) + after - usual)
            self.found.creation += holding.cost
            self._note(UPKEEP if made in self._lost else MAKING, around + deciding + usual + holding.cost)
            self.policy.made(holding, moment)
            return
        self._taken.add((query, used))
        if used is not None:
            around += self._beginning(query, used) + (self._seeking(query) if looks else 0.0)
        self._note(PLAIN if used is None else REUSE, around + deciding + usual)
        if used is not None:
            self._use(step, query, used, moment)

    def _making(self, query: int, view: str, used: str | None) -> float:
        """What making a view takes; the result of a query is made over the view that the query has, where it has one."""
        making = self.matrix.making[view] + (0.0 if view in self._prepared else self.matrix.preparing[view])
        self._prepared.add(view)
        is_result = view in self.matrix.counted
        return making if used is None or not is_result else max(0.0, making - self.matrix.gain(query, used))

    def _note(self, part: str, seconds: float) -> None:
        self.found.seconds.append(seconds)
        self.found.parts.append(part)

    def _planning(self, query: int) -> float:
        """What is done for a text once."""
        if query in self._looked:
            return 0.0
        return self.matrix.planning[query] + (0.0 if self.rules.mined else self.matrix.mining[query])

    def _beginning(self, query: int, view: str) -> float:
        """What it takes longer to read a view for the first time since it was made."""
        pair = (query, view, self.kept[view].made)
        if pair in self._begun:
            return 0.0
        self._begun.add(pair)
        return self.matrix.beginning[query].get(view, 0.0)

    def _matching(self, query: int) -> float:
        """Comparing a query with the views that are kept."""
        self._looked[query] = self._changes
        pairs = {(query, view, holding.made) for view, holding in self.kept.items()}
        new = pairs - self._compared
        self._compared |= new
        return len(pairs) * self.matrix.looking[query] + len(new) * self.matrix.matching[query]

    def _seeking(self, query: int) -> float:
        """Finding other views that would have served a query, of which nothing was measured, to try them when it is quiet."""
        return self.matrix.looking[query] * sum((query, view) not in self._measured for view in self.kept)

    def _current(self, query: int) -> list[Option]:
        """The options of a query after what is known of views that were made before."""
        found = []
        for each in self._options[query]:
            if each.id in self._seen:
                making = self.matrix.making[each.id]
                each = replace(each, bytes=float(self.matrix.bytes[each.id]), known=making, cost=min(each.cost, making))  # noqa: PLW2901
            elif each.id in self.matrix.counted and query in self._answered:
                each = replace(each, bytes=self.matrix.counted[each.id])  # noqa: PLW2901
            if (query, None) in self._taken:
                scale = self.matrix.base[query] / self.matrix.expected_base[query]
                each = replace(each, gain=each.gain * scale, cost=each.cost * scale)  # noqa: PLW2901
            found.append(each)
        return found

    def _best(self, query: int) -> tuple[str | None, float]:
        """The view that a query uses, and the seconds that it is expected to take."""
        expected, base = self._expected[query], self.matrix.expected_base[query]
        shares = []
        for view, gain in expected.items():
            if view in self.kept:
                measured = self._measured.get((query, view))
                shares.append((1 - (gain / base if measured is None else measured / self.matrix.base[query]), view))
        best = min(shares, default=(1.0, ""))
        return (best[1], best[0] * base) if best[0] <= CHEAPER else (None, base)

    def _use(self, step: int, query: int, view: str, moment: Occasion) -> None:
        holding = self.kept[view]
        holding.uses += 1
        holding.last = step
        gain = self._measured.get((query, view))
        if gain is None:
            gain = self._expected[query].get(view, 0.0)
        others = [
            each for each in self._expected[query] if each in self.kept and each != view and (query, each) not in self._measured
        ]
        others.sort(key=lambda each: -self._expected[query][each])
        for each in (view, *others[:COMPARED]):
            self._waiting.append((step + self.rules.delay, query, each))
        holding.saved += gain
        self.policy.used(holding, moment, gain)

    def _tell(self, step: int) -> None:
        while self._waiting and self._waiting[0][0] <= step:
            _, query, view = self._waiting.popleft()
            if (query, view) not in self._measured and self.rules.told_gains and view in self.kept:
                self._measured[query, view] = self.matrix.gain(query, view)
                self.policy.measured(str(query), view, self._measured[query, view])
                self._looked[query] = _AGAIN

    def _make(self, moment: Occasion, query: int) -> str | None:
        ranked = [each for each in self.policy.ranked(moment) if may_fit(each, moment.capacity) and each.id not in self.kept]
        for option in ranked[:TRIED]:
            size = self.matrix.bytes[option.id]
            if option.id in self._given_up or self.policy.victims(moment, option, min(option.bytes, moment.capacity)) is None:
                continue
            if size > moment.capacity:
                self._given_up.add(option.id)
                self._wasted += self.matrix.making[option.id]
                continue
            victims = self.policy.victims(moment, option, size)
            if victims is None:
                continue
            for each in victims:
                self._drop(each.id, moment.step)
            self._seen.add(option.id)
            self._changes += 1
            self.kept[option.id] = Holding(option, size, self.matrix.creation(query, option.id), moment.step)
            self.found.made += 1
            self.found.most_bytes = max(self.found.most_bytes, sum(each.bytes for each in self.kept.values()))
            return option.id
        return None

    def _drop(self, view: str, step: int) -> None:
        holding = self.kept.pop(view)
        self._changes += 1
        self.found.evicted += 1
        self.policy.gone(holding, step)

    def _lose(self, table: str, step: int) -> None:
        for view in [view for view in self.kept if table in self.matrix.tables[view]]:
            self._drop(view, step)
            self._lost.add(view)
            self.policy.lost(view)


class Fixed(ViewPolicy):
    """Views that someone chose beforehand: each is made by the first query that can, and none goes."""

    name = "fixed"

    def __init__(self, chosen: Mapping[str, object] | Sequence[str]) -> None:
        self._chosen = set(chosen)

    def ranked(self, moment: Occasion) -> Sequence[Option]:
        return [each for each in moment.options if each.id in self._chosen]
