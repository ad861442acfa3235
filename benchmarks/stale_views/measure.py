"""Times of cleaning and refreshing, and errors of answers, in one view."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import duckdb
import numpy as np
import pyarrow as pa

import nearly
from nearly.answer import Answer
from nearly.views.sampling.cleaning import untouched
from nearly.views.sampling.samples import Held
from nearly.views.view import View

METHODS = ("stale", "aqp", "corr", "auto")
DRAWS = 5
"""Samples of a view that questions are dealt out to: what one of them lacks, it lacks in all answers that it is asked for."""


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def cleaning_seconds(db: nearly.Session, view: str, share: float, repeat: int = 3) -> float:
    """How long it takes to clean a share of a stale view, from the start: nothing of the changes is in memory."""
    samples = db._views.samples

    def work() -> float:
        samples._held.clear()
        db._engine.native.recent.forget()
        return seconds(lambda: samples.clean(view, share))

    return statistics.median(work() for _ in range(repeat))


def samples(db: nearly.Session, view: str, draws: int = DRAWS) -> Iterator[int]:
    """Have one sample after the other of a stale view drawn, independent of each other; gives their numbers.

    A ticket hangs on how often a column is named: tickets of (k, k) say nothing of those of (k).
    """
    drawing = db._views.samples
    for number in range(draws):
        drawing._held.clear()
        held = drawing._stale(view)
        if isinstance(held, Held):  # a small view is cleaned whole by the first question, and is fresh for the others
            held.view = replace(held.view, drawn_by=held.view.drawn_by * (number + 1))
            held.sample = untouched(held.view)
        yield number


def refreshing_seconds(db: nearly.Session, view: str) -> float:
    """How long it takes to refresh a stale view, from the start."""
    db._engine.native.recent.forget()
    return seconds(db.view(view).refresh)


@dataclass(slots=True)
class Errors:
    """Relative errors of answers by method, and how their intervals did."""

    of: dict[str, list[float]] = field(default_factory=lambda: {method: [] for method in METHODS})
    given: int = 0
    held: int = 0
    withheld: int = 0

    def median(self, method: str) -> float:
        return statistics.median(self.of[method]) if self.of[method] else 0.0

    @property
    def held_percent(self) -> float | None:
        """Of the intervals that were given."""
        return 100 * self.held / self.given if self.given else None

    @property
    def withheld_percent(self) -> float:
        return 100 * self.withheld / max(self.given + self.withheld, 1)

    def add(self, other: Errors) -> None:
        for method, found in other.of.items():
            self.of[method] += found
        self.given, self.held, self.withheld = self.given + other.given, self.held + other.held, self.withheld + other.withheld


@dataclass(frozen=True, slots=True)
class Asked:
    """A query on a view and its answers, before the view was refreshed; the first `keys` columns tell its rows."""

    text: str
    keys: int
    answers: dict[str, Answer]


def asked(view: View, text: str, keys: int, share: float, methods: Sequence[str] = METHODS) -> Asked:
    return Asked(text, keys, {method: view.query(text, method=method, sample=share) for method in methods})


def judged(question: Asked, truth: pa.Table) -> Errors:
    """The median error over the rows of an answer, for each method; intervals are those of `auto`. The last column is judged."""
    found = Errors()
    for method, answer in question.answers.items():
        middle, _, given, held, withheld = _compared(question, truth, answer)
        if middle is not None:
            found.of[method].append(middle)
        if method == "auto" and not answer.exact:
            found.given, found.held, found.withheld = found.given + given, found.held + held, found.withheld + withheld
    return found


def largest_error(question: Asked, truth: pa.Table, method: str) -> float:
    """The largest relative error of all groups."""
    return _compared(question, truth, question.answers[method])[1] or 0.0


def _compared(question: Asked, truth: pa.Table, answer: Answer) -> tuple[float | None, float | None, int, int, int]:
    """The median and the largest error, and how many intervals were given, held and withheld; a row that is not shown says 0."""
    names = [f"k{place}" for place in range(question.keys)]
    shown = [answer.table.column(place) for place in range(question.keys)]
    ends = [table.column(table.num_columns - 1).cast(pa.float64()) for table in (answer.table, answer.low, answer.high)]
    mine = pa.Table.from_arrays([*shown, *ends], names=[*names, "v", "low", "high"])
    last = truth.column(truth.num_columns - 1).cast(pa.float64())
    right = pa.Table.from_arrays([*(truth.column(place) for place in range(question.keys)), last], names=[*names, "t"])
    connection = duckdb.connect()
    connection.register("mine", mine)
    connection.register("truth", right)
    joined = " AND ".join(f"truth.{name} IS NOT DISTINCT FROM mine.{name}" for name in names) or "true"
    error = "abs(coalesce(v, 0) - t) / abs(t)"
    bounded = "low IS NOT NULL AND high IS NOT NULL"
    rows = connection.execute(
        f"SELECT median({error}), max({error}), count_if({bounded}), count_if({bounded} AND t BETWEEN low AND high), "
        f"count_if(v IS NOT NULL AND NOT ({bounded})) FROM truth LEFT JOIN mine ON {joined} WHERE t <> 0"
    ).fetchall()
    middle, largest, given, held, withheld = rows[0]
    return middle, largest, int(given), int(held), int(withheld)


def ratio(above: float, below: float) -> float:
    return above / below if below else float(np.inf)
