"""The course of a query with automatic views.

    options of the question -> the policy's choice -> made on the way, where it fits (pass 1) -> views reused (pass 2) -> answer

Law: the answer is the query's own, whatever is kept. A query waits neither for the learner nor for experiments: where they hold
what it would need for a decision, it makes no view.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from nearly.autoview.attention import Attention
from nearly.autoview.candidates import Candidate
from nearly.autoview.experiments import Experiment, Side
from nearly.autoview.keeping import Deferred, Keeping
from nearly.autoview.lookups import KnownServing
from nearly.autoview.making import Usual, over
from nearly.autoview.options import Occasion, Option
from nearly.autoview.rewriter import Rewriting
from nearly.autoview.store import MadeView
from nearly.engine.native.running import Ending, Running
from nearly.engine.planner import Prepared
from nearly.engine.plans import BrokenOff
from nearly.engine.storage.footers import checksum_of
from nearly.errors import EngineError, UnknownName
from nearly.plan.depth import deep_recursion
from nearly.plan.remembered import Remembered

logger = logging.getLogger(__name__)

TRIED = 3
"""Options of a query that are tried, the best first."""
REMEMBERED = 2_000
"""Questions, and what they take over the views that served them."""
UNSURE = 4.0
"""The bytes of a view that was never made are often estimated too large by so many times."""
PATIENCE = 2.0
"""Seconds for which a view of older tables may wait for a quiet time while it is asked for."""
COMPARED = 3
"""Other views that would have served a question, and are tried when it is quiet."""


@dataclass(frozen=True, slots=True)
class QueryOutcome:
    """What became of a query: its rows (None where Spark must judge), which views it read, and which it made."""

    rows: pa.Table | None
    views: tuple[str, ...]
    made: str | None = None


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A query on its way: what is asked, over which views it is cheapest, and its end."""

    prepared: Prepared
    question: str
    best: Rewriting
    ending: Ending

    @property
    def used(self) -> tuple[str, tuple[str, ...]]:
        """The question, and the views that serve it."""
        return self.question, tuple(each.id for each in self.best.views)


class QueryCourse:
    """Answers queries from what is kept, and makes what is worth keeping on the way."""

    def __init__(self, keeping: Keeping) -> None:
        self.keeping = keeping
        self._usual: Remembered[tuple[str, tuple[str, ...]], Usual] = Remembered(REMEMBERED)
        self._attention = Attention()

    @deep_recursion()
    def best(self, prepared: Prepared) -> Rewriting | None:
        """The query over the views that make it cheaper; None where it is not one of ours."""
        if prepared.query is None or prepared.kernel != "native":
            return None
        question = question_of(prepared)
        with self.keeping.store.lock:
            changes, views = self.keeping.store.changes, list(self.keeping.store.kept.values())
        zone = self.keeping.engine.cluster.time_zone if views else ""
        known = self.keeping.lookups.get(question, prepared, changes, zone)
        if known is None:
            found = {view.id: self.keeping.shares.get((question, view.id)) for view in views}
            measured = {id_: share for id_, share in found.items() if share is not None}
            best = self.keeping.rewriter.reuse(prepared, prepared.query.plan, views, measured)
            known = self.keeping.lookups.add(question, KnownServing(prepared, changes, zone, best))
        return known.best

    @deep_recursion()
    def run(self, prepared: Prepared, best: Rewriting, ending: Ending | None = None) -> QueryOutcome:
        """Answer a query, and perhaps make a view on the way."""
        self.keeping.tally.queries += 1
        began = time.perf_counter()
        asked = AskedQuery(prepared, question_of(prepared), best, ending or Ending())
        made = None
        if self._attention.is_due(asked.question, self._usually(asked).seconds):
            made = self._pass_one(asked)
        else:
            self._pass_by(asked)
        if made is not None:
            (kept,) = made.views
            course = self._read(asked, made)
            took = time.perf_counter() - began
            self._note_rows(prepared, course)
            usual = self._usually(asked)
            plain = took * min(1.0, usual.expected / max(made.seconds, 1e-6)) if usual.measured is None else usual.measured
            self._note_cost(asked, kept, took - plain, took)
            return QueryOutcome(course.rows, course.views, kept.name)
        began = time.perf_counter()  # a view whose making was given up is no part of what the query takes
        course = self._read(asked, best)
        took = time.perf_counter() - began
        if course.rows is None:  # a view that serves what only Spark can judge saves nothing
            return course
        self._usual.add(asked.used, Usual(best.seconds, min(took, self._usually(asked).measured or took)))
        self._note_rows(prepared, course)
        if course.views:
            self._note_uses(asked)
        else:
            self.keeping.engine.native.durations.record(prepared.question, took)
        return course

    def _note_rows(self, prepared: Prepared, course: QueryOutcome) -> None:
        """However a query was answered, its result has as many rows."""
        if course.rows is not None:
            self.keeping.mining.note_rows(prepared, course.rows.num_rows)

    def _usually(self, asked: AskedQuery) -> Usual:
        """What a query takes over the views that it has."""
        known = self._usual.get(asked.used)
        return Usual(asked.best.seconds, None if known is None else known.measured)

    def _scaled(self, question: str, option: Option) -> Option:
        """An option of a question that was asked over tables alone: by how much that was misjudged, so are its views."""
        plain = self._usual.get((question, ()))
        return option if plain is None else replace(option, gain=option.gain * plain.scale, cost=option.cost * plain.scale)

    def _pass_by(self, asked: AskedQuery) -> None:
        """Make nothing; the policy is told of the query when it is told of anything."""
        self.keeping.step += 1
        self.keeping.told.append(partial(self.keeping.policy.asked, asked.question, self.keeping.step))

    def _pass_one(self, asked: AskedQuery) -> Rewriting | None:
        """The rest of the query over a view that was made for it, and what both were expected to take; None where none was made."""
        mined = self.keeping.mining.known(asked.prepared, asked.best.seconds)
        if not self.keeping.deciding.acquire(blocking=False):
            self._pass_by(asked)
            return None
        try:
            self._let_go_stale(asked.prepared, mined.candidates)
            self.keeping.tell()
            self.keeping.step += 1
            options = tuple(self._scaled(asked.question, self.keeping.mining.current(each)) for each in mined.options)
            moment = self.keeping.moment(asked.question, options, self._usually(asked).seconds)
            ranked = [each for each in self.keeping.policy.ranked(moment) if may_fit(each, self.keeping.store.limit)]
            for option in ranked[:TRIED]:
                if option.id in self.keeping.store.kept:
                    continue
                found = self._make(asked, moment, mined.candidates[option.id], option)
                if found is not None:
                    return found
            return None
        finally:
            self.keeping.deciding.release()

    def _let_go_stale(self, prepared: Prepared, ids: Iterable[str]) -> None:
        """Let go of views of a question that are of older tables, where no quiet time came in which they could follow them.

        Else a view that is asked for without rest would never be there again.
        """
        views = [view for id_ in ids if (view := self.keeping.store.kept.get(id_)) is not None]
        fitting = {each.id for each in self.keeping.rewriter.usable(prepared, views)}
        old = [each for each in views if each.id not in fitting]
        if not old or not self._is_current(prepared):
            return
        now = time.monotonic()
        for each in old:
            each.stale_since = each.stale_since or now
            if now - each.stale_since > PATIENCE:
                self.keeping.evict(each.id, lost=True)

    def _is_current(self, prepared: Prepared) -> bool:
        with suppress(UnknownName):
            return self.keeping.engine.planner.is_current(prepared)
        return False

    def _make(self, asked: AskedQuery, moment: Occasion, candidate: Candidate, option: Option) -> Rewriting | None:
        prepared, usual = asked.prepared, self._usually(asked)
        intended = self.keeping.making.intention(prepared, candidate, option, list(self.keeping.store.kept.values()))
        if intended is None or self.keeping.policy.victims(moment, option, min(option.bytes, self.keeping.store.limit)) is None:
            return None
        if not self.keeping.making.fits(intended, usual):
            self.keeping.deferred.append(Deferred(prepared, candidate, option))
            return None
        began, running = time.perf_counter(), Running()
        try:
            with asked.ending.breaking(running.end):
                rows = self.keeping.making.made(prepared, intended, usual, running)
        except BrokenOff:  # by the end of the query, or of automatic views: then it goes on without
            rows = None
        asked.ending.refuse()
        if rows is None:
            return None
        seconds = time.perf_counter() - began
        kept = self.keeping.keep(prepared, moment, candidate, option, rows, seconds, 0.0)
        return None if kept is None else Rewriting(over(intended.rest, kept), (kept,), intended.seconds + intended.rest_seconds)

    def _read(self, asked: AskedQuery, rewriting: Rewriting) -> QueryOutcome:
        """The rows of a query over views; over the tables alone where a view is gone, or its files are not what they were."""
        if not rewriting.views:
            return QueryOutcome(self._rows(asked, rewriting), ())
        with self.keeping.store.reading(rewriting.views) as there:
            broken, suspected = [each for each in rewriting.views if not each.is_sound], []
            if there and not broken:
                try:
                    return QueryOutcome(self._rows(asked, rewriting), tuple(each.name for each in rewriting.views))
                except EngineError:
                    self.keeping.engine.life.refuse_over()
                    asked.ending.refuse()
                    broken = [each for each in rewriting.views if not each.is_sound]
                    suspected = [each for each in rewriting.views if each not in broken]
        self._drop(broken)
        query = asked.prepared.query
        rows = None if query is None else self._rows(asked, Rewriting(query.plan, (), 0.0))
        self._drop(suspected)  # where reading the tables alone fails as well, it was not the views
        return QueryOutcome(rows, ())

    def _drop(self, broken: Iterable[MadeView]) -> None:
        for each in broken:
            logger.warning("the files of %s were changed or removed by someone else; it is dropped", each.name)
            self.keeping.evict(each.id)

    def _rows(self, asked: AskedQuery, rewriting: Rewriting) -> pa.Table | None:
        tables = [*asked.prepared.snapshot, *(each.table for each in rewriting.views)]
        with self.keeping.engine.reading(tables):
            return self.keeping.engine.until(asked.ending).at(tables).native_rows(rewriting.plan)

    def _note_cost(self, asked: AskedQuery, kept: MadeView, cost: float, took: float) -> None:
        """What making a view cost its query, as far as is known."""
        kept.holding.cost = max(0.0, cost)
        self.keeping.tally.spent += max(0.0, cost)
        usual = took - cost
        if usual > 0:
            self.keeping.tally.slowest = max(self.keeping.tally.slowest, cost / usual)
        moment = self.keeping.moment(asked.question)
        self.keeping.told.append(lambda: self.keeping.policy.made(kept.holding, moment))

    def _note_uses(self, asked: AskedQuery) -> None:
        self.keeping.tally.served += 1
        moment = self.keeping.moment(asked.question)
        for view in asked.best.views:
            view.holding.uses += 1
            view.holding.last = self.keeping.step
            gain = self._gain(asked, view)
            view.holding.saved += gain
            self.keeping.tally.saved += gain
            self.keeping.told.append(partial(self.keeping.policy.used, view.holding, moment, gain))
        if self.keeping.lookups.compares(asked.question):
            self._compare(asked)

    def _compare(self, asked: AskedQuery) -> None:
        """Queue experiments with other views that would have served a question: estimates may have chosen the wrong one."""
        prepared, question = asked.prepared, asked.question
        if prepared.query is None:
            return
        unused = Side(prepared.query.plan, prepared.snapshot)
        with self.keeping.store.lock:
            views = [each for each in self.keeping.store.kept.values() if (question, each.id) not in self.keeping.gains]
        for each in self.keeping.rewriter.serving(prepared, prepared.query.plan, views)[:COMPARED]:
            (view,) = each.views
            side = Side(each.plan, (*prepared.snapshot, view.table))
            self.keeping.experiments.add(Experiment(question, view.id, side, unused, frozenset({view.id})), urgent=False)

    def _gain(self, asked: AskedQuery, view: MadeView) -> float:
        """What a use gains: measured, or expected until the experiment that is queued for it was run."""
        prepared, best = asked.prepared, asked.best
        known = self.keeping.gains.get((asked.question, view.id))
        if known is not None or prepared.query is None:
            return known or 0.0
        others = [each for each in best.views if each is not view]
        without = self.keeping.rewriter.reuse(prepared, prepared.query.plan, others)
        used = Side(best.plan, (*prepared.snapshot, *(each.table for each in best.views)))
        unused = Side(without.plan, (*prepared.snapshot, *(each.table for each in without.views)))
        names = frozenset(each.id for each in best.views)
        self.keeping.experiments.add(Experiment(asked.question, view.id, used, unused, names))
        return max(0.0, without.seconds - best.seconds)


def may_fit(option: Option, limit: float) -> bool:
    """Whether a view may turn out to fit; making it ends as soon as its rows take more than there is, and is not tried again."""
    return option.bytes <= (limit if option.known is not None else UNSURE * limit)


def question_of(prepared: Prepared) -> str:
    """A short name of what is asked, over whichever versions of the tables; of texts that are no Unicode, too."""
    return checksum_of(prepared.text.encode("utf-8", "surrogatepass"))[:16]
