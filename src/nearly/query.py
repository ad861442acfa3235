"""A query: a question and its answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearly.answer import Answer
from nearly.display.show import show
from nearly.display.status import Work
from nearly.engine.answerers import Answerer, Offer, Question
from nearly.engine.engine import Engine
from nearly.engine.native.running import Ending, Stopped
from nearly.engine.planner import Prepared
from nearly.errors import EngineError, SchemaError
from nearly.missing import DEFAULT_SECONDS
from nearly.plan.syntax.goal import Goal
from nearly.plan.types import DataType
from nearly.printing.html import card
from nearly.progressive.deadline import Deadline
from nearly.progressive.run import Request, Run

if TYPE_CHECKING:
    from nearly.missing.contingency import Contingency
    from nearly.plan.types import DataType


SHOWN_TEXT = 80
"""Characters of a query that its short form shows."""


@dataclass(frozen=True, slots=True)
class Help:
    """Who can answer: the engine, whatever is kept from earlier, and what is known of missing rows."""

    engine: Engine
    answerers: tuple[Answerer, ...]
    contingency: Callable[[], Contingency]


class Query:
    """A question and its answers: iterate for answers that tighten until the last one is exact."""

    def __init__(
        self,
        help_: Help,
        text: str,
        request: Request,
        kernel: str | None,
        goal: Goal,
        using: str | None = None,
        run: Run | None = None,
    ) -> None:
        self._help = help_
        self._engine = help_.engine
        self._text = text
        self._request = request
        self._kernel = kernel
        self._goal = goal
        self._using = using
        self._prepared: Prepared | None = None if run is None else run.prepared
        self._run = self._resumed = run
        self._ending: Ending | None = None
        self._beginning = threading.RLock()  # whoever stops a query that is just beginning stops the run that begins
        self._reckoned: tuple[Prepared, float | None] | None = None

    def exact(self) -> Answer:
        """The exact answer, equal to Spark SQL's, at once and without estimates before it; from a view where one covers it."""
        ending = self._ending = Ending()  # before it is planned, so that no stop is lost
        while True:
            prepared = self._ready
            try:
                return self._exactly(prepared, ending)
            except EngineError:
                if not self._is_outdated(prepared):
                    raise

    def _exactly(self, prepared: Prepared, ending: Ending) -> Answer:
        """The exact answer over the tables of one plan."""
        for offer in self._offers(prepared, exact=True, ending=ending):
            if offer.give is not None:
                return offer.give()
        result = self._engine.until(ending).run(prepared)
        return Answer.exactly(result.table, result.source, self._request.confidence, dict(result.stats))

    def _is_outdated(self, prepared: Prepared) -> bool:
        """Whether the tables that were planned for are gone, so that what failed is to be done over newer ones."""
        return not (self._engine.life.is_over or self._goes_on or self._engine.planner.is_current(prepared))

    def range(self, *, seconds: float | None = DEFAULT_SECONDS) -> Answer:
        """The range that the answer can take given what `db.missing` states, as bounds that hold for sure.

        The answer's `table` is that of the rows that are there. `seconds` limits the time spent on the range; when it is over, the
        range is still valid, if not tight.
        """
        (answer,) = self._help.contingency().ranges(self._text, lambda text: iter([self._sibling(text).exact()]), seconds)
        return answer

    def ranges(self, *, seconds: float | None = DEFAULT_SECONDS) -> Iterator[Answer]:
        """Ranges, one for each answer over the rows that are there: probable and certain bounds of both kinds of rows together."""
        return self._help.contingency().ranges(self._text, lambda text: iter(self._sibling(text)), seconds)

    def _sibling(self, text: str) -> Query:
        """Another question, asked the same way."""
        return Query(self._help, text, self._request, self._kernel, Goal())

    @property
    def columns(self) -> tuple[tuple[str, DataType], ...]:
        """Names and types of the columns that its answers have."""
        return self._engine.columns(self._ready)

    def explain(self) -> str:
        """The plan, what runs where, which kernel, which synopsis answers, and why."""
        planned = self._planned
        return "\n".join([self._engine.explain(planned), *(line for offer in self._offers(planned) for line in offer.reasons)])

    def __repr__(self) -> str:
        """The text, and how far it is; nothing is planned or run for it."""
        text = " ".join(self._text.split())
        return f"<Query: {text if len(text) <= SHOWN_TEXT else text[: SHOWN_TEXT - 1] + '…'}; {self._standing}>"

    def _repr_html_(self) -> str:
        last = None if self._run is None else self._run.last
        return card("Query", {"text": self._text, "state": self._standing}, "" if last is None else last._repr_html_())

    @property
    def _standing(self) -> str:
        last = None if self._run is None else self._run.last
        return "not asked yet; .run(), .exact() or .live() answer it" if last is None else last.state

    def __iter__(self) -> Iterator[Answer]:
        yield from self._answers(self._goal)

    def answers(self, *, error: float | None = None, seconds: float | None = None) -> Iterator[Answer]:
        """Answers until one's relative error is at most `error` or some `seconds` have passed; else until the exact one.

        With an `error`, the answers have intervals that stay valid although the run stops as soon as they are narrow, which are a
        little longer. Without either, what the query's own text asks for counts.
        """
        goal = Goal(error, seconds) if error is not None or seconds is not None else self._goal
        for name, value in (("error", goal.error), ("seconds", goal.seconds)):
            if value is not None and (not isinstance(value, int | float) or not value > 0):
                raise SchemaError(f"{name}={value!r} must be greater than 0")
        return self._answers(goal)

    def run(self, *, error: float | None = None, seconds: float | None = None) -> Answer:
        """The last of the answers that `answers` gives for the same arguments."""
        answer = None
        for answer in self.answers(error=error, seconds=seconds):  # noqa: B007  the last one counts
            pass
        return _given(answer)

    def live(self, *, error: float | None = None, seconds: float | None = None) -> Answer:
        """Show the answers as they come, in a notebook or on the terminal, and return the last one.

        An interrupt (Ctrl-C, or the notebook's stop button) stops the query; its newest answer is then the last one.
        """
        return _given(show(self.answers(error=error, seconds=seconds), self.stop, doing=self.doing).answer)

    def doing(self) -> Work:
        """What the query is busy with before its first answer. It may be asked from another thread, and plans nothing itself."""
        prepared = self._prepared
        if prepared is None:
            return Work("planning")
        names = ", ".join(sorted(table.plain_name for table in prepared.snapshot)) or "nothing"
        nameless = prepared.query is not None and prepared.query.unnamed
        if (nameless or prepared.kernel == "spark") and not self._engine.cluster.is_up:
            return Work("starting Spark")
        if prepared.query is None or prepared.kernel == "spark":
            return Work(f"computing over {names} in Spark")
        rows = sum(table.rows for table in prepared.snapshot)
        return Work(f"reading {names} ({rows:,} rows)", self._expected(prepared))

    def _expected(self, prepared: Prepared) -> float | None:
        """Seconds until the exact answer, reckoned once for each plan."""
        if self._reckoned is None or self._reckoned[0] is not prepared:
            cores, query = self._engine.cluster.sites.cores, prepared.query
            durations = self._engine.native.durations
            found = None if query is None else durations.expected(prepared.question, query.plan, prepared.schema, cores)
            self._reckoned = (prepared, found)
        return self._reckoned[1]

    @property
    def id(self) -> str:
        """The name under which `Session.resume` finds the query again after a crash."""
        return self._current.id

    @property
    def last(self) -> Answer | None:
        """The newest answer so far."""
        return self._current.last

    def stop(self) -> None:
        """End the query; an iteration over it ends too, and the last answer stays."""
        with self._beginning:
            ending = self._ending
            run = self._current if ending is None or self._run is not None else None
        if ending is not None:
            ending.wish()
        if run is not None:
            run.stop()

    def pause(self) -> None:
        """Free Spark until `resume`; an iteration over the query waits."""
        self._current.pause()

    def resume(self) -> None:
        """Go on after a pause."""
        self._current.resume()

    def _answers(self, goal: Goal) -> Iterator[Answer]:
        ending = self._ending = Ending()
        if (yield from self._kept_answers(goal, ending)):
            return
        run = self._fresh_run(ending)
        if run is None:
            return
        run.goal = goal.error
        deadline = Deadline(run, goal.seconds)
        answers = run.answers()
        shown = False
        try:
            for answer in answers:
                shown = True
                yield answer
                if deadline.passed or (goal.error is not None and answer.error <= goal.error):
                    return
            if not shown and run.last is not None:  # its time is over, and what there is says little
                yield run.last
        except EngineError:
            if shown or self._engine.life.is_over or run is self._resumed or self._engine.planner.is_current(run.prepared):
                raise
            yield from self._answers(goal)  # the tables it was planned for were gone before it began
        finally:
            answers.close()
            deadline.cancel()

    def _kept_answers(self, goal: Goal, ending: Ending) -> Generator[Answer, None, bool]:
        """Answers of those who keep something from earlier; whether no others are to follow, as after a stop."""
        prepared = self._ready
        offers = self._offers(prepared, stops=goal.error is not None, ending=ending)
        shown = False
        try:
            for offer in sorted(offers, key=lambda each: each.seconds):
                for given in _all_of(offer, further=self._using is not None):
                    shown = True
                    yield given
                    if given.exact or (goal.error is not None and given.error <= goal.error) or ending.is_wished:
                        return True
                if offer.give is not None and self._using is not None:
                    return True
        except Stopped:
            return True
        except EngineError:
            if shown or not self._is_outdated(prepared):
                raise
        return False

    @property
    def _current(self) -> Run:
        with self._beginning:
            if self._run is None:
                self._run = Run(self._engine, self._ready, self._request)
            return self._run

    def _fresh_run(self, ending: Ending) -> Run | None:
        """A run that has not been used; every iteration is a run of its own. A stop is for this one from now on.

        None where the end was wished for before.
        """
        with self._beginning:
            if ending.is_wished:
                return None
            self._ending = None
            if self._run is not None and (self._run.used or self._run.prepared is not self._ready):
                self._run = None
            return self._current

    def _offers(self, prepared: Prepared, exact: bool = False, stops: bool = False, ending: Ending | None = None) -> list[Offer]:
        """What those who keep something from earlier say to this query, or those alone whose answers are exact.

        Whoever asks for a kernel asks for the tables themselves.
        """
        question = Question(prepared, self._request.confidence, self._using, exact, stops, ending or Ending())
        asked = [each for each in self._help.answerers if each.is_exact or not exact]
        if self._using is not None:
            using = self._using
            asked = [each for each in self._help.answerers if each.knows(using)] or asked[:1]
        return [each.offer(question) for each in asked if self._kernel is None or not each.is_exact]

    @property
    def _ready(self) -> Prepared:
        """The query as planned for its tables as they are now, with the names of its columns."""
        self._prepared = self._engine.named(self._planned)
        return self._prepared

    @property
    def _goes_on(self) -> bool:
        """Whether it is still to go on with the run of a killed process, over the tables as they were for that."""
        return self._resumed is not None and not self._resumed.used

    @property
    def _planned(self) -> Prepared:
        if self._prepared is None or not (self._goes_on or self._engine.planner.is_current(self._prepared)):
            self._prepared = self._engine.plan(self._text, self._kernel)
        return self._prepared


def _all_of(offer: Offer, further: bool) -> Iterator[Answer]:
    """The answer that is offered, and `further` ones where there are such."""
    if offer.give is not None:
        yield (first := offer.give())
        if further and offer.more is not None:
            yield from offer.more(first)


def _given(answer: Answer | None) -> Answer:
    if answer is None:
        raise EngineError("the query was stopped before its first answer")
    return answer
