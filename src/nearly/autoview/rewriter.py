"""Queries over the views that are kept: the second pass, which reuses them, and what the first needs, which makes new ones.

Reuse: of the views whose rows are of the query's tables as they are, the one with the cheapest rewriting is taken, as long as that
is cheaper than the query as it stands; then the next one. Law: the rewritten query has the same rows (`rewrite.views.use_stored`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from nearly.autoview.candidates import Candidate
from nearly.autoview.estimates import ViewEstimates
from nearly.autoview.store import MadeView
from nearly.engine.planner import Prepared
from nearly.engine.storage.layouts import Table
from nearly.plan.nodes import Field, Plan, Scan
from nearly.plan.remembered import Remembered
from nearly.plan.schema import SchemaColumn, TableSchema
from nearly.rewrite.views.use_stored import StoredPlan, use_stored

CHEAPER = 0.95
"""A view is used where that is expected to take at most so much of the time without it."""
REMEMBERED = 4_096
NOTHING: Mapping[str, float] = MappingProxyType({})
NEW = "autoview new"
"""The name of a view that does not exist yet."""


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A query over some views, and the seconds it is expected to take."""

    plan: Plan
    views: tuple[MadeView, ...]
    seconds: float


@dataclass(slots=True)
class Rewriter:
    """Rewrites queries; what was found once is remembered."""

    estimates: ViewEstimates
    _found: Remembered[tuple[Plan, str], Plan | None] = field(default_factory=lambda: Remembered(REMEMBERED))

    def reuse(
        self, prepared: Prepared, plan: Plan, views: Iterable[MadeView], measured: Mapping[str, float] = NOTHING
    ) -> Rewriting:
        """A plan of a query over the views that make it cheaper.

        `measured` is what experiments found: the share of the query's time that it takes over a view. Estimates count less.
        """
        usable = self.usable(prepared, views)
        best = Rewriting(plan, (), self.estimates.seconds(plan, prepared.snapshot))
        while True:
            tried = [self._with(prepared, best, each) for each in usable if each not in best.views]
            if not best.views:
                tried = [_after(each, best.seconds, measured) for each in tried]
            found = min((each for each in tried if each is not None), key=lambda each: each.seconds, default=None)
            if found is None or found.seconds > CHEAPER * best.seconds:
                return best
            best = found

    def serving(self, prepared: Prepared, plan: Plan, views: Iterable[MadeView]) -> list[Rewriting]:
        """The query over each view that serves it, cheap ones first."""
        plain = Rewriting(plan, (), 0.0)
        tried = [self._with(prepared, plain, each) for each in self.usable(prepared, views)]
        return sorted((each for each in tried if each is not None), key=lambda each: each.seconds)

    def usable(self, prepared: Prepared, views: Iterable[MadeView]) -> list[MadeView]:
        """The views whose rows are of a query's tables as they are."""
        some = list(views)
        zone = self.estimates.engine.cluster.time_zone if some else ""
        tables = {table.name.lower(): table for table in prepared.snapshot}
        return [each for each in some if each.fits(tables, zone)]

    def _with(self, prepared: Prepared, so_far: Rewriting, view: MadeView) -> Rewriting | None:
        if not _has(so_far.plan, view.candidate):
            return None
        plan = self._rewritten(so_far.plan, view.name, view.plan)
        if plan is None:
            return None
        views = (*so_far.views, view)
        return Rewriting(plan, views, self.estimates.seconds(plan, (*prepared.snapshot, *(each.table for each in views))))

    def _rewritten(self, plan: Plan, name: str, stored: StoredPlan) -> Plan | None:
        key = (plan, name)
        return self._found.get(key) if key in self._found else self._found.add(key, use_stored(plan, stored))

    def planned(self, plan: Plan, candidate: Candidate, rows: float, tables: Sequence[Table]) -> tuple[Plan, float] | None:
        """A query over a view that would have so many rows, and its seconds; None where it does not serve the query."""
        if not _has(plan, candidate):
            return None
        found = use_stored(plan, stored_plan(candidate, NEW))
        if found is None:
            return None
        schemas = {each.name.lower(): each.schema for each in tables}
        schemas[NEW] = schema_of(candidate, rows)
        costs, cores = self.estimates.engine.costs, self.estimates.engine.cluster.sites.cores
        return found, costs.seconds(found, lambda name: schemas[name.lower()], cores)


def _after(found: Rewriting | None, plain: float, measured: Mapping[str, float]) -> Rewriting | None:
    """A rewriting with one view whose seconds are what an experiment found of them."""
    share = None if found is None else measured.get(found.views[0].id)
    return found if found is None or share is None else replace(found, seconds=share * plain)


def stored_plan(candidate: Candidate, name: str) -> StoredPlan:
    """A candidate as a view of this name, for the matcher."""
    stored = candidate.stored
    pairs = zip(stored.columns, stored.maintained.columns, strict=True)
    fields = tuple(Field(f"{each}_stored", each, column.type, True) for each, column in pairs)
    return StoredPlan(candidate.plan, stored.maintained, stored.reading, Scan(name, fields))


def schema_of(candidate: Candidate, rows: float) -> TableSchema:
    pairs = zip(candidate.stored.columns, candidate.stored.maintained.columns, strict=True)
    return TableSchema(NEW, tuple(SchemaColumn(name, column.type) for name, column in pairs), rows=int(rows))


def _has(plan: Plan, candidate: Candidate) -> bool:
    """Whether a plan reads the tables of a view as often as the view does."""
    mine: Mapping[str, int] = Counter(node.table.lower() for node in plan.walk() if isinstance(node, Scan))
    return not Counter(candidate.shape.tables) - Counter(mine)
