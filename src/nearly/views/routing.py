"""Queries over tables that a view answers: exactly, from its rows where it is fresh, else from its rows and what changed since.

Where that is much, and an estimate is allowed, a sample of the view is cleaned and corrects what the stale rows say. A query is
over the versions of its tables in one snapshot; a view is fresh for it when it is of these versions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from nearly.answer import Answer
from nearly.engine.answerers import Offer, Question
from nearly.engine.deltas.net_change import net_change
from nearly.engine.engine import Engine
from nearly.engine.native.durations import cells
from nearly.engine.native.failures import NativeFailure
from nearly.engine.planner import Prepared
from nearly.engine.results import finished
from nearly.engine.storage.layouts import AT, Table
from nearly.errors import NearlyError, UnknownName, Unsupported
from nearly.plan.binding.scope import FreshNames
from nearly.plan.depth import deep_recursion
from nearly.plan.expressions import Column, same
from nearly.plan.nodes import Field, Input, Join, Output, Plan, Project, Scan, SetOperation, passed
from nearly.plan.remembered import Remembered
from nearly.plan.schema import FindTable
from nearly.rewrite.views.split_view import StoredView
from nearly.rewrite.views.use_stored import StoredPlan, use_stored
from nearly.views.catalogue import Views
from nearly.views.definition import PlannedView, is_stored_so, loosened, plan_view, stored_groups
from nearly.views.explaining import is_open
from nearly.views.moving import definition_of
from nearly.views.sampling.asking import Asking, ViewAnswer
from nearly.views.sampling.asking import StaleQuestion as Sampled
from nearly.views.sampling.linear import AUTO
from nearly.views.staleness import before, changed_rows, is_logged
from nearly.views.states import At, state_of

FIXED_SECONDS = 0.002
REMEMBERED = 64
"""Plans of views that are kept in memory."""
FEW = 0.05
"""A view is used together with what changed since where that is at most so large a part of the tables' rows."""
CLEANING = 0.3
"""What cleaning a sample takes, about, as a part of computing the whole view."""
CAME, WENT = "rows that came", "keys that went"


NotedView = tuple[Table, Mapping[str, Any]]
"""A stored view, and what is noted of it."""


class No(Exception):
    """Why a view does not answer."""


@dataclass(frozen=True, slots=True)
class _Match:
    """A query over the rows of a view, which are of other versions of some tables than the query is about."""

    table: Table
    planned: PlannedView
    stored: StoredView
    plan: Plan
    old: Mapping[str, Table]
    changed: int = 0
    asking: Asking | None = None
    """How a sample of the view answers, where too much changed since."""

    @property
    def is_fresh(self) -> bool:
        return not self.old

    @property
    def how(self) -> str:
        if self.is_fresh:
            return "fresh"
        return "with what changed since" if self.asking is None else f"corrected by a sample: {self.changed:,} rows changed since"

    @property
    def rank(self) -> tuple[int, int]:
        """Those that are fresh first, then those that are exact; of equals, the smaller one."""
        return (0 if self.is_fresh else 1 if self.asking is None else 2), self.table.rows


@dataclass(slots=True)
class ViewAnswerer:
    """Answers from the views of a session."""

    views: Views
    _plans: Remembered[Hashable, PlannedView] = field(default_factory=lambda: Remembered(REMEMBERED))

    @property
    def is_exact(self) -> bool:
        return True

    def knows(self, name: str) -> bool:
        return name.lower() in map(str.lower, self.views.names)

    def offer(self, question: Question) -> Offer:
        """The answer of the smallest view that covers the query."""
        using = question.using
        reasons: list[str] = []
        matches: list[_Match] = []
        for name in [using] if using is not None else self.views.names:
            try:
                matches.append(self._match(self._noted(name, question), question))
            except No as reason:
                if using is not None:
                    raise Unsupported(f"view {name!r} cannot answer this query: {reason}") from None
                reasons.append(f"view {name}: no, {reason}")
        if not matches:
            return Offer(tuple(reasons))
        best = min(matches, key=lambda each: each.rank)
        reasons.append(f"view {best.table.name}: yes, {best.how}, {best.table.rows:,} rows")
        seconds = self.views.engine.costs.seconds(best.plan, _finding((*question.prepared.snapshot, best.table)))
        if best.asking is None:
            return Offer(tuple(reasons), lambda: self._given(best, question), 0.0, FIXED_SECONDS + seconds)
        asking = best.asking
        return Offer(tuple(reasons), lambda: self.views.samples.answer(asking), math.inf, FIXED_SECONDS + seconds, _further)

    def _noted(self, name: str, question: Question) -> NotedView:
        """A view and what is noted of it; one that nobody asked for by name may be dropped meanwhile."""
        try:
            return self.views.engine.catalog.noted(self.views.stored(name).name)
        except UnknownName:
            if question.using is not None:
                raise
            raise No("it was dropped") from None

    @deep_recursion()
    def _match(self, noted: NotedView, question: Question) -> _Match:
        (table, notes), engine, prepared = noted, self.views.engine, question.prepared
        forced = question.using is not None
        if prepared.query is None or prepared.kernel != "native":
            raise No("the query is left to Spark as it is")
        asked = {each.name.lower(): each for each in prepared.snapshot}
        if any(each.lower() not in asked for each in notes["inputs"]):
            raise No("it is made of other tables")
        state = state_of(notes)
        inputs = [asked[each.lower()] for each in state.inputs]
        old, changed = self._old(engine, inputs, state.inputs, table)
        planned = self._planned(table, [loosened(each, old.get(each.name)) for each in inputs])
        if planned.stored is None:
            raise No("Spark alone knows what it means")
        if old and is_open(planned):
            raise No("it is stale, and its rows may be others each time they are computed; refresh it")
        plan = use_stored(prepared.query.plan, _stored_plan(table, planned, planned.stored))
        if plan is None:
            raise No("it does not hold what the query asks for")
        find = _finding((*prepared.snapshot, table))
        if not forced and cells(plan, find) >= cells(prepared.query.plan, find):
            raise No("it has as much to read as the tables")
        match = _Match(table, planned, planned.stored, plan, old, changed)
        return match if changed <= FEW * max(1, sum(each.rows for each in inputs)) else self._behind(match, question)

    def _behind(self, match: _Match, question: Question) -> _Match:
        """A view much of which changed: by a sample where an estimate will do; whoever insists on the view gets all changes."""
        query, why = question.prepared.query, "and an exact answer is asked for"
        if query is not None and not question.exact:
            asked = Sampled(replace(query, plan=match.plan), AUTO, question.confidence, 1 if question.stops else None)
            try:
                return replace(match, asking=self._asking(match, asked, question))
            except Unsupported as reason:
                why = f"and no sample of it answers ({reason})"
        if question.using is not None:
            return match
        raise No(f"it is stale, {why}: {match.changed:,} rows changed since; refresh it")

    def _planned(self, table: Table, inputs: list[Table]) -> PlannedView:
        """The view over the query's tables; a view whose text no longer fits them does not answer."""
        definition = definition_of(table)
        key = (table.name, definition.text, tuple((At.of(each), each.columns) for each in inputs))
        planned = self._plans.get(key)
        if planned is None:
            try:
                planned = self._plans.add(key, plan_view(self.views.engine, definition.text, inputs, definition.key))
            except NearlyError as trouble:
                raise No(f"it does not fit its tables any more: {trouble}") from trouble
        if planned.zone != definition.zone:
            raise No(f"its rows were computed in time zone {definition.zone}; refresh it")
        if not is_stored_so(table, planned):
            raise No("its tables have other columns now; refresh it")
        return planned

    def _asking(self, match: _Match, asked: Sampled, question: Question) -> Asking:
        if any(each.view is not None for each in match.planned.inputs):
            raise Unsupported("it is made of views, which would have to be refreshed first")
        asking = self.views.samples.asking(match.table.name, asked, question.prepared.snapshot)
        asking.refuse()
        self._refuse_slow(match, question, asking)
        return asking

    def _refuse_slow(self, match: _Match, question: Question, asking: Asking) -> None:
        """Leave queries to the tables that are read sooner than a sample of the view is clean."""
        query, costs, find = question.prepared.query, self.views.engine.costs, _finding((*question.prepared.snapshot, match.table))
        if question.using is None and query is not None and not asking.sample.share:
            cleaning = CLEANING * costs.seconds(match.stored.maintained, find)
            if cleaning + costs.seconds(match.plan, find) > costs.seconds(query.plan, find):
                raise Unsupported(f"to clean one takes longer, about {cleaning:.1g} s, than to read the tables")

    def _old(self, engine: Engine, inputs: list[Table], known: Mapping[str, At], table: Table) -> tuple[dict[str, Table], int]:
        """The tables that changed since, as the view knows them, and how many of their rows did."""
        found: dict[str, Table] = {}
        changed = 0
        for each in inputs:
            at = known[next(name for name in known if name.lower() == each.name.lower())]
            if At.of(each) != at:
                was = before(engine.catalog, each, at) if AT not in each.name else None
                if was is None or not is_logged(engine.catalog, was, each):
                    raise No(f"it is stale, and what changed in {each.name!r} is not known; refresh it")
                found[each.name] = was
                changed += changed_rows(engine.catalog, each, at)
        if found and not table.key:
            raise No("it is stale, and has no key to find rows by; refresh it")
        return found, changed

    def _given(self, match: _Match, question: Question) -> Answer:
        engine, prepared = self.views.engine.until(question.ending), question.prepared
        started = time.perf_counter()
        rows = self._rows(engine, match, prepared)
        if rows is None or prepared.query is None:  # for Spark to judge, over the tables themselves
            result = engine.run(prepared)
            return Answer.exactly(result.table, result.source, question.confidence, dict(result.stats))
        stats = {"run": time.perf_counter() - started}
        source = f"view {match.table.name}" + ("" if match.is_fresh else " + delta")
        return Answer.exactly(finished(rows, prepared.query), source, question.confidence, stats)

    @deep_recursion()
    def _rows(self, engine: Engine, match: _Match, prepared: Prepared) -> pa.Table | None:
        tables = [*prepared.snapshot, match.table]
        pinned = engine.at(tables)
        with engine.reading(tables):
            if match.is_fresh:
                return pinned.native_rows(match.plan)
            given = self._change(match)
            plan = _with_changes(match.plan, match.table)
            try:
                return pinned.native.run_here(plan, given)
            except NativeFailure:
                engine.life.refuse_over()
                engine.ending.refuse()
                return None

    def _change(self, match: _Match) -> dict[str, pa.Table]:
        """What came and went in the stored rows since: whole rows, and keys."""
        plan, names = match.stored.kept, list(match.stored.columns)
        after = {each.name: each for each in match.planned.inputs}
        rows = net_change(self.views.engine, plan, match.old, after, stored_groups(match.table, match.stored)).rows
        weights = rows.column(rows.num_columns - 1).to_numpy()
        rows = rows.drop_columns([rows.column_names[-1]]).rename_columns(names)
        came = rows.take((weights > 0).nonzero()[0].repeat(weights[weights > 0]))
        return {CAME: came, WENT: rows.filter(pa.array(weights < 0)).select(list(match.table.key))}


def _further(first: Answer) -> Iterator[Answer]:
    """Better answers, of more and more of the view cleaned."""
    if isinstance(first, ViewAnswer):
        yield from first.later()


def _stored_plan(table: Table, planned: PlannedView, stored: StoredView) -> StoredPlan:
    query = planned.prepared.query
    if query is None:
        raise No("Spark alone knows what it means")
    fields = tuple(Field(f"{each.name}_stored", each.name, each.type, each.nullable) for each in table.columns)
    return StoredPlan(query.plan, stored.maintained, stored.reading, Scan(table.name, fields, version=table.version))


def _finding(tables: Iterable[Table]) -> FindTable:
    known = {each.name.lower(): each.schema for each in tables}
    return lambda name: known[name.lower()]


def _with_changes(plan: Plan, table: Table) -> Plan:
    """The plan over the stored rows without those that went since and with those that came."""
    fresh = FreshNames("since")

    def change(node: Plan) -> Plan:
        if not isinstance(node, Scan) or node.table != table.name:
            return node
        whole = _all_columns(node, table, fresh)
        kinds = {each.name: each.type for each in table.columns}
        gone = Input(WENT, tuple(Column(kinds[name], name) for name in table.key))
        keys = [next(f.name for f in whole.fields if f.source == name) for name in table.key]
        kept = Join(whole, gone, "anti", same([Column(kinds[n], k) for n, k in zip(table.key, keys, strict=True)], gone.columns))
        came = Input(CAME, tuple(Column(each.type, each.name) for each in table.columns))
        ordered = Project(kept, passed(whole.columns))
        both = SetOperation(ordered, came, "union", True, tuple(Column(c.type, fresh("now")) for c in whole.columns))
        named = {f.source: c for f, c in zip(whole.fields, both.given, strict=True)}
        return Project(both, tuple(Output(f.name, named[f.source]) for f in node.fields))

    return plan.transform(change)


def _all_columns(scan: Scan, table: Table, fresh: FreshNames) -> Scan:
    return replace(scan, fields=tuple(Field(fresh(each.name), each.name, each.type, each.nullable) for each in table.columns))
