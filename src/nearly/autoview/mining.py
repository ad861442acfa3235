"""What the questions so far could make: mined once for each text, in its query where that is a small part of it, else later.

Until then a question can make its result, which is found at once.

A text over tables that have other columns than they had is another question.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nearly.autoview.candidates import RESULT, Candidate, candidates_of, result_of
from nearly.autoview.estimates import ViewEstimates
from nearly.autoview.options import Option
from nearly.autoview.rewriter import Rewriter
from nearly.autoview.statements import named_apart
from nearly.engine.planner import Prepared
from nearly.plan.depth import deep_recursion
from nearly.plan.remembered import Remembered

REMEMBERED = 1_000
QUESTIONS = 64
"""Questions that wait to be mined; of more, the oldest are forgotten."""
SHARE = 0.1
"""Mining is part of a query where it is expected to take at most so much of its time."""
USUAL_SECONDS = 0.05
MEMORY = 0.9
MOST_OPTIONS = 24
"""Candidates of a question that policies see: those that save most for a byte."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What was measured when a view was made."""

    rows: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Mined:
    """The candidates of a question, and what is expected of them."""

    candidates: Mapping[str, Candidate]
    options: tuple[Option, ...]

    @property
    def result(self) -> Candidate | None:
        """That of the question's own result."""
        return next((each for each in self.candidates.values() if each.kind == RESULT), None)


@dataclass(slots=True)
class Mining:
    """Mines questions, and remembers what it found."""

    estimates: ViewEstimates
    rewriter: Rewriter
    facts: dict[str, Fact] = field(default_factory=dict)
    waiting: OrderedDict[Hashable, Prepared] = field(default_factory=OrderedDict)
    _known: Remembered[Hashable, Mined] = field(default_factory=lambda: Remembered(REMEMBERED))
    _results: Remembered[Hashable, Mined] = field(default_factory=lambda: Remembered(REMEMBERED))
    _bytes: Remembered[str, float] = field(default_factory=lambda: Remembered(REMEMBERED))
    """Of results, after the number of their rows."""
    _seconds: float = USUAL_SECONDS

    def known(self, prepared: Prepared, expected: float) -> Mined:
        """What a question could make, as far as that is known yet: its result at least."""
        asked = _asked(prepared)
        found = self._known.get(asked)
        if found is not None:
            return found
        if self._seconds <= SHARE * expected:
            return self.mine(prepared)
        self.waiting[asked] = prepared
        while len(self.waiting) > QUESTIONS:
            self.waiting.popitem(last=False)
        found = self._results.get(asked)
        if found is None:
            result = None if prepared.query is None else result_of(prepared.query.plan, _text(prepared))
            found = self._results.add(asked, self._mined(prepared, [] if result is None else [result]))
        return found

    def work(self) -> bool:
        """Mine a question that waits; whether there was one."""
        if not self.waiting:
            return False
        _, prepared = self.waiting.popitem(last=False)
        self.mine(prepared)
        return True

    @deep_recursion()
    def mine(self, prepared: Prepared) -> Mined:
        if prepared.query is None:
            return Mined({}, ())
        began = time.perf_counter()
        found = self._mined(prepared, candidates_of(prepared.query.plan, prepared.schema, _text(prepared)))
        self._results.forget(_asked(prepared))
        self._seconds = MEMORY * self._seconds + (1 - MEMORY) * (time.perf_counter() - began)
        return self._known.add(_asked(prepared), found)

    def _mined(self, prepared: Prepared, candidates: Sequence[Candidate]) -> Mined:
        served = [self.option(prepared, each) for each in candidates]
        options = sorted((each for each in served if each is not None), key=lambda each: -each.gain / each.bytes)
        return Mined({each.id: each for each in candidates}, tuple(options[:MOST_OPTIONS]))

    def option(self, prepared: Prepared, candidate: Candidate) -> Option | None:
        """What is expected of a candidate for a query; None where it does not serve it."""
        if prepared.query is None:
            return None
        plan, fact = candidate.stored.maintained, self.facts.get(candidate.id)
        rows = float(fact.rows) if fact is not None else self.estimates.rows(plan, prepared.snapshot)
        found = self.rewriter.planned(prepared.query.plan, candidate, rows, prepared.snapshot)
        if found is None:
            return None
        before = self.estimates.seconds(prepared.query.plan, prepared.snapshot)
        making = self.estimates.seconds(plan, prepared.snapshot) + self.estimates.writing(plan, rows)
        size = float(fact.bytes) if fact is not None else self.estimates.bytes(plan, rows)
        cost = max(0.0, making + found[1] - before)
        return Option(candidate.id, candidate.shape, size, making, before - found[1], cost, None if fact is None else fact.seconds)

    def note_rows(self, prepared: Prepared, rows: int) -> None:
        """A question was answered by so many rows: they are what its result has, whatever was expected."""
        asked = _asked(prepared)
        mined = self._known.get(asked) or self._results.get(asked)
        result = None if mined is None else mined.result
        if result is not None:
            self._bytes.add(result.id, self.estimates.bytes(result.stored.maintained, rows))

    def current(self, option: Option) -> Option:
        """An option after what was measured of its view since."""
        fact, counted = self.facts.get(option.id), self._bytes.get(option.id)
        if fact is None:
            return option if counted is None else replace(option, bytes=counted)
        return option if option.known is not None else replace(option, bytes=float(fact.bytes), known=fact.seconds)


def _text(prepared: Prepared) -> str:
    """The text of a question, as that of a view."""
    return prepared.text if prepared.query is None else named_apart(prepared.text, prepared.query.names)


def _asked(prepared: Prepared) -> Hashable:
    """A text over tables with these columns and keys: what could be kept of it is right for all their versions."""
    tables = ((table.name, table.key, tuple((each.name, each.type) for each in table.columns)) for table in prepared.snapshot)
    return prepared.text, tuple(tables)
