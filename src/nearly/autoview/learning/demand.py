"""What is asked for: how often each question comes, and what it would gain by each view.

    worth(v) = sum over questions q of  rate(q) * max(0, gain(q, v) - the most that q gains by a view that is kept)

in seconds saved per query. Rates are shares of the questions so far, of which the last ones count most; all are scaled by how often
what was asked before is asked again, so that a workload without repetition asks for nothing. Gains are measured where an experiment
was run, else expected, scaled by what experiments found of expectations.
"""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nearly.autoview.options import Option

DECAY = 0.999
"""What a question counts after one more query."""
MEMORY = 0.98
"""Of how often things come again."""
REMEMBERED = 1_000
"""Questions, those that were asked last."""


@dataclass(slots=True)
class _Asked:
    count: float
    last: int
    gains: dict[str, float] = field(default_factory=dict)


class Demand:
    """The questions so far."""

    def __init__(self) -> None:
        self._asked: OrderedDict[str, _Asked] = OrderedDict()
        self._wanted: defaultdict[str, set[str]] = defaultdict(set)
        self._measured: dict[tuple[str, str], float] = {}
        self._ratio = 0.0
        self._ratios = 0
        self._sorted: dict[str, list[tuple[float, str]]] = {}
        """Views by what a question gains by them, most first; of questions that were looked at since anything was measured."""
        self.returning = 0.5
        """How often something is asked for that was asked for before."""

    @property
    def ratio(self) -> float:
        """Seconds that pass for each that is expected."""
        return math.exp(self._ratio)

    def note(self, question: str, step: int, options: Sequence[Option] = ()) -> None:
        """A question was asked, of which these views could be made."""
        found = self._asked.pop(question, None)
        again = any(each.id in self._wanted for each in options)
        if options:
            self.returning = MEMORY * self.returning + (1 - MEMORY) * again
        count = 0.0 if found is None else found.count * DECAY ** (step - found.last)
        gains = {each.id: each.gain for each in options}
        if found is not None:
            gains = {**found.gains, **gains}
        if found is None or gains != found.gains:
            self._sorted.pop(question, None)
        self._asked[question] = _Asked(count + 1.0, step, gains)
        for id_ in gains:
            self._wanted[id_].add(question)
        if len(self._asked) > REMEMBERED:
            self._forget(*self._asked.popitem(last=False))

    def _forget(self, question: str, asked: _Asked) -> None:
        for id_ in asked.gains:
            self._wanted[id_].discard(question)
            self._measured.pop((question, id_), None)
            if not self._wanted[id_]:
                del self._wanted[id_]

    def measure(self, question: str, id_: str, gain: float) -> None:
        """An experiment was run."""
        self._measured[question, id_] = gain
        self._sorted.clear()  # what is expected of all others is scaled by what is measured
        asked = self._asked.get(question)
        expected = 0.0 if asked is None else asked.gains.get(id_, 0.0)
        if asked is not None:
            asked.gains.setdefault(id_, 0.0)
            self._wanted[id_].add(question)
        if expected > 0 and gain > 0:
            self._ratios += 1
            found = math.log(min(max(gain / expected, 0.01), 100.0))
            self._ratio += (found - self._ratio) * max(1 - MEMORY, 1 / (self._ratios + 1))

    def is_measured(self, question: str, id_: str) -> bool:
        return (question, id_) in self._measured

    def gain(self, question: str, id_: str) -> float:
        """Seconds that a question gains by a view."""
        known = self._measured.get((question, id_))
        if known is not None:
            return known
        asked = self._asked.get(question)
        return 0.0 if asked is None else asked.gains.get(id_, 0.0) * self.ratio

    def rate(self, question: str, step: int) -> float:
        """Which share of the queries to come is this question."""
        asked = self._asked.get(question)
        if asked is None:
            return 0.0
        total = (1 - DECAY**step) / (1 - DECAY) if step > 0 else 1.0
        return self.returning * asked.count * DECAY ** (step - asked.last) / max(total, 1.0)

    def worth(self, id_: str, kept: Collection[str], step: int) -> float:
        """Seconds that a view saves per query beside those that are kept."""
        found = 0.0
        for question in self._wanted.get(id_, ()):
            more = self.gain(question, id_) - self._best(question, kept)
            if more > 0:
                found += self.rate(question, step) * more
        return found

    def _best(self, question: str, kept: Collection[str]) -> float:
        """The most that a question gains by views that are kept; one that it would lose by is not used."""
        views = self._sorted.get(question)
        if views is None:
            gains = ((self.gain(question, each), each) for each in self._asked[question].gains)
            views = self._sorted[question] = sorted((pair for pair in gains if pair[0] > 0), reverse=True)
        return next((gain for gain, view in views if view in kept), 0.0)

    def content(self) -> Mapping[str, Any]:
        """As JSON can hold it."""
        questions = [[name, each.count, each.last, each.gains] for name, each in self._asked.items()]
        measured = [[question, id_, gain] for (question, id_), gain in self._measured.items()]
        return {"questions": questions, "measured": measured, "ratio": [self._ratio, self._ratios], "returning": self.returning}

    def restore(self, content: Mapping[str, Any]) -> None:
        for name, count, last, gains in content["questions"]:
            self._asked[name] = _Asked(count, last, dict(gains))
            for id_ in gains:
                self._wanted[id_].add(name)
        self._measured = {(question, id_): gain for question, id_, gain in content["measured"]}
        self._ratio, self._ratios = content["ratio"]
        self.returning = content["returning"]
