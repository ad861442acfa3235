"""A question to a stale view: which rows are cleaned for it, by what it is answered, and how the answer gets better.

Iterating cleans more and more tickets, each answer is nearer to the exact one, and after the last of them the view is fresh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

from nearly.answer import Answer
from nearly.engine.engine import Engine
from nearly.engine.results import finished
from nearly.engine.storage.layouts import Table
from nearly.errors import SchemaError, Unsupported
from nearly.estimate.corrections import FEWEST_ROWS
from nearly.plan.binding.scope import FreshNames
from nearly.plan.nodes import BoundQuery, Plan, Project, Scan, passed
from nearly.rewrite.passes import rewrite
from nearly.rewrite.sample.sampled_query import core_parts, sampled_query
from nearly.views.sampling.cells import Cells
from nearly.views.sampling.cleaning import StaleView, cleaned, drawn_stored, untouched
from nearly.views.sampling.estimation import Estimation
from nearly.views.sampling.linear import AQP, AUTO, CORR, STALE_ONLY
from nearly.views.sampling.outliers import SureRows, with_sure
from nearly.views.sampling.sample import CleanSample, SampledRows
from nearly.views.sampling.selection import Selection, is_selection

EXACT = "exact"
METHODS = (AUTO, CORR, AQP, STALE_ONLY, EXACT)
DEFAULT_SHARE = 0.1
GROWTH = 2.5
"""By how much the clean share grows from answer to answer."""
FEW_ROWS = 1_000
"""A smaller view is cleaned whole: a sample of it says little, and saves little."""
NEARLY_ALL = 0.8
"""Whoever would clean this share of a view cleans all of it, and has the exact answer."""


@dataclass(frozen=True, slots=True)
class ViewAnswer(Answer):
    """An answer of a view; iterating over it gives better and better ones, the last of them exact."""

    later: Callable[[], Iterator[Answer]] = field(default=lambda: iter(()), repr=False, compare=False)

    def __iter__(self) -> Iterator[Answer]:
        yield self
        yield from self.later()


def with_later(answer: Answer, later: Callable[[], Iterator[Answer]]) -> ViewAnswer:
    return ViewAnswer(**{each.name: getattr(answer, each.name) for each in fields(Answer)}, later=later)


def check_method(method: str) -> None:
    if method not in METHODS:
        raise SchemaError(f"method={method!r} must be one of {', '.join(map(repr, METHODS))}")


def check_share(sample: Any) -> None:
    """Refuse what is no share of a view."""
    if isinstance(sample, bool) or not isinstance(sample, int | float) or not 0 < sample <= 1:
        raise SchemaError(f"sample={sample!r} must lie above 0 and be at most 1: it is a share of the view")


@dataclass(frozen=True, slots=True)
class StaleQuestion:
    """A query, and how it is to be answered."""

    query: BoundQuery
    method: str
    confidence: float
    look: int | None = None
    """Which of several looks this is, for whoever stops at one that is narrow."""

    @property
    def again(self) -> StaleQuestion:
        """The question at the next look."""
        return self if self.look is None else replace(self, look=self.look + 1)


@dataclass
class Asking:
    """One query on one stale view. `keep` is told of every sample that was cleaned further, the whole view in the end."""

    engine: Engine
    tables: tuple[Table, ...]
    view: StaleView
    question: StaleQuestion
    sample: CleanSample
    sure: SureRows | None = None
    drawn: dict[float, SampledRows] = field(default_factory=dict)
    keep: Callable[[CleanSample], None] = lambda _: None

    def answer(self, share: float, at_least: bool = False) -> ViewAnswer:
        """The answer from a share of the view that is clean, or the exact one where a sample is of no use.

        With `at_least` it may be a larger share, where so little changed that a small one tells nothing of it.
        """
        method = self.question.method
        if method == EXACT or (share >= 1 and method != STALE_ONLY) or (method == AUTO and self.view.table.rows < FEW_ROWS):
            return with_later(self._exact(), lambda: iter(()))
        try:
            if method == AUTO and at_least:
                share = self._telling(share)
                if share >= NEARLY_ALL:
                    return with_later(self._exact(), lambda: iter(()))
            first = self._estimated(share)
        except Unsupported as reason:
            if method != AUTO:
                raise
            return with_later(self._exact(str(reason)), lambda: iter(()))
        return with_later(first, lambda: self._later(share))

    def refuse(self) -> None:
        """Raise `Unsupported` where a sample says nothing of the query; nothing is read for that."""
        query, table = self.question.query, self.view.table
        if table.rows < FEW_ROWS:
            raise Unsupported("its rows are too few for a sample")
        if is_selection(query.plan):
            raise Unsupported("only aggregates of it are estimated")
        core_parts(sampled_query(query.plan, table.name).core, FreshNames("core"))

    def _telling(self, share: float) -> float:
        """The share that has enough changes for a correction to be told from them.

        Where few rows of tables changed, and few of the view with them, cleaning more of it costs little more than beginning to.
        """
        if self.view.changes is None or self.view.changes * share > FEWEST_ROWS:
            return share
        with self.engine.reading(self.tables):
            drawn = self._clean(share).changed.num_rows
        return share if drawn >= FEWEST_ROWS else min(share * FEWEST_ROWS / max(drawn, 1), 1.0)

    def _later(self, share: float) -> Iterator[Answer]:
        while self.question.method != STALE_ONLY and share < 1:
            share = min(share * GROWTH, 1.0)
            if share >= NEARLY_ALL:
                break
            self.question = self.question.again
            yield self._estimated(share)
        yield self._exact()

    def _clean(self, share: float) -> CleanSample:
        if share > self.sample.share:
            self.sample = cleaned(self.engine, self.view, share, self.sample)
            self.keep(self.sample)
        return with_sure(self.sample, self.sure)

    def _estimated(self, share: float) -> Answer:
        query, confidence = self.question.query, self.question.confidence
        with self.engine.reading(self.tables):
            if is_selection(query.plan):
                sample = untouched(self.view) if self.question.method == STALE_ONLY else self._clean(share)
                return Selection(self.engine, query, self.view, sample, confidence).answer()
            sampled = sampled_query(query.plan, self.view.table.name)
            parts = core_parts(sampled.core, FreshNames("core"))
            sample = self._clean(share)
            cells = Cells(self.engine, sampled, parts, sample, lambda columns: self._drawn(sample, columns))
            return Estimation(cells, query, self.view.table.name, self.question.method, confidence, self.question.look).answer({})

    def _drawn(self, sample: CleanSample, columns: tuple[str, ...]) -> SampledRows:
        """Columns of the stored rows that were drawn, kept for the questions that come."""
        known = self.drawn.get(sample.share)
        if known is None or not set(columns) <= set(known.table.column_names):
            wanted = columns if known is None else (*known.table.column_names, *columns)
            known = drawn_stored(self.engine, self.view, sample, wanted)
            self.drawn.clear()
            self.drawn[sample.share] = known
        return known

    def _exact(self, reason: str | None = None) -> Answer:
        """The query over the stored rows with all changes in place."""
        query = self.question.query
        with self.engine.reading(self.tables):
            self._clean(1.0)
            plan = over_clean(query.plan, self.view.table.name, self.sample)
            table = finished(self.engine.native.run_here(rewrite(plan), self.sample.inputs), query)
        stats: dict[str, Any] = {} if reason is None else {"reason": reason}
        return Answer.exactly(table, f"view {self.view.table.name} and its changes", self.question.confidence, stats)


def over_clean(plan: Plan, view: str, sample: CleanSample) -> Plan:
    """A plan over the stored rows with what was cleaned in place of what is stale."""

    def changed(node: Plan) -> Plan:
        if not isinstance(node, Scan) or node.table.lower() != view.lower():
            return node
        return Project(sample.clean(node), passed(node.columns))

    return plan.transform(changed)
