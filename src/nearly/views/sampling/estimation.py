"""From a sample of a stale view that is clean to an answer: estimates, intervals, and which rows may come or go."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearly.algebra import special
from nearly.answer import Answer, UnseenRows
from nearly.estimate.cells import RowChanges, Sides, assemble, floats
from nearly.estimate.corrections import Estimates
from nearly.estimate.evidence import Evidence
from nearly.estimate.intervals import Interval
from nearly.plan.expressions import Column
from nearly.plan.nodes import BoundQuery, Input, Project
from nearly.plan.types import DOUBLE, from_arrow, is_numeric
from nearly.rewrite.sample.sampled_query import ROWS
from nearly.rewrite.sample.weigh_parts import CELL, CELLS, REPLICATE, Finished, finished
from nearly.views.sampling.cells import Cells
from nearly.views.sampling.columns import distinct_column, extreme_column, quantile_column
from nearly.views.sampling.linear import AQP, STALE_ONLY, DrawnRows, Estimated, bounded, linear_column
from nearly.views.sampling.strata import DIRECT, MERGED, STALE

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

REPLICATED_ROWS = 4_000_000
"""Rows of the answer, counted once for each replicate, up to which they have intervals."""
HALF_A_ROW = 0.5
"""Numbers of rows are sums of doubles; less than this is none."""
SOURCES = {STALE_ONLY: "stale", AQP: "sample"}


@dataclass
class Estimation:
    """Answers one query on a stale view by one method."""

    cells: Cells
    query: BoundQuery
    view: str
    method: str
    confidence: float
    look: int | None = None

    def answer(self, stats: dict[str, Any]) -> Answer:
        """The estimate, with bounds."""
        finish, core = self.cells.query.finish, self.cells.query.core
        table = self._table(np.nonzero(self._shown)[0], None, chosen=True)
        done = finished(finish, core, _input(table), whole=True)
        found = self.cells.run(done.plan, {CELLS: table})
        rows = found[CELL.name].to_numpy().astype(np.int64)
        names = [column.name for column in self.query.plan.columns]
        sides = Sides.of(found.select(names), self.query)
        evolving = [place for place, name in enumerate(names) if name in done.made_of]
        sides = self._bounded(sides.opened(evolving, self._certain(names, rows)), done, names, rows)
        facts = (
            stats | {"evolving": tuple(evolving), "shown_error": sides.error, "share": self.cells.strata.share} | self._beyond(rows)
        )
        source = f"view {self.view} ({SOURCES.get(self.method, 'corrected')})"
        share = 0.0 if self.method == STALE_ONLY else self.cells.strata.share
        return assemble(self.query, sides, self._changes(rows), share, self.confidence, facts, source)

    @property
    def _behind(self) -> Evidence:
        strata = self.cells.strata
        return Evidence(strata.share, strata.groups, np.ones(strata.groups), self.confidence, self.look)

    @cached_property
    def _columns(self) -> dict[str, Estimated]:
        """The aggregates of the core."""
        cells, parts = self.cells, self.cells.parts
        wanted = {output.name for output in cells.query.core.aggregates}
        linear = [each.name for each in parts.linear if each.name in wanted]
        found = {name: linear_column(cells, name, self._behind, self.method) for name in linear}
        found |= {each.name: quantile_column(cells, each, self._behind, self.method) for each in parts.quantiles}
        found |= {each.name: distinct_column(cells, each, self._behind, self.method) for each in parts.distinct}
        return found | {each.name: extreme_column(cells, each, self.method) for each in parts.extremes}

    @cached_property
    def _shown(self) -> NDArray[np.bool_]:
        """Groups of which there is a row, as far as is known."""
        if not self.cells.parts.keys:
            return np.ones(1, dtype=bool)
        kind = {STALE_ONLY: STALE, AQP: DIRECT}.get(self.method, MERGED)
        return self.cells.rows_of(kind) > HALF_A_ROW

    def _table(self, cells: Integers, copies: int | None, chosen: bool) -> pa.Table:
        """The core's columns for some groups; with `copies`, in so many replicates, the groups of one after the other."""
        keys = self.cells.keys
        place = pa.array(np.tile(cells, copies or 1))
        columns = {column.name: keys[column.name].take(place) for column in (key.column for key in self.cells.parts.keys)}
        for name, each in self._columns.items():
            estimates = each.chosen if chosen else each.direct
            values = estimates.theta[cells] if copies is None else estimates.copies[:copies, cells].reshape(-1)
            typed = each.typed.take(place) if each.typed is not None else pa.array(values, mask=~np.isfinite(values))
            columns[name] = typed
        columns[CELL.name] = place.cast(pa.int32())
        if copies is not None:
            columns[REPLICATE.name] = pa.array(np.repeat(np.arange(copies), len(cells)), pa.int32())
        return pa.table(columns)

    def _values(self, rows: Integers, copies: int | None, chosen: bool) -> dict[str, Floats]:
        """The answer's numbers as doubles, before they get the types of the exact answer: replicate x row, or one set of them."""
        plain = self._as_they_are(rows, copies, chosen)
        if plain is not None:
            return plain
        table = self._table(rows, copies, chosen)
        done = finished(self.cells.query.finish, self.cells.query.core, _input(table), whole=False)
        found = self.cells.run(done.plan, {CELLS: table})
        places = np.zeros(self.cells.count, dtype=np.int64)
        places[rows] = np.arange(len(rows))
        row = places[found[CELL.name].to_numpy()]
        number = np.zeros_like(row) if copies is None else found[REPLICATE.name].to_numpy()
        made = {}
        for column in self.query.plan.columns:
            if column.name in done.made_of and is_numeric(column.type):
                values = np.full((copies or 1, len(rows)), np.nan)
                values[number, row] = floats(found[column.name])
                made[column.name] = values
        return made

    def _as_they_are(self, rows: Integers, copies: int | None, chosen: bool) -> dict[str, Floats] | None:
        """The same where every number that is shown is an aggregate, unchanged."""
        origins = _shown_as_is(self.cells)
        made_of = finished(self.cells.query.finish, self.cells.query.core, self.cells.query.core, whole=False).made_of
        numbers = [column.name for column in self.query.plan.columns if column.name in made_of and is_numeric(column.type)]
        if any(name not in origins or self._columns[origins[name]].typed is not None for name in numbers):
            return None
        found = {}
        for name in numbers:
            each = self._columns[origins[name]]
            estimates = each.chosen if chosen else each.direct
            found[name] = estimates.theta[None, rows] if copies is None else estimates.copies[:copies, rows]
        return found

    def _bounded(self, sides: Sides, done: Finished, names: list[str], rows: Integers) -> Sides:
        """The sides with intervals: own ones of columns that are an aggregate as it is, else from replicates."""
        types = {column.name: column.type for column in self.query.plan.columns}
        numbers = [place for place in sides.evolving if is_numeric(types[names[place]])]
        passed = self._passed()
        plain = [place for place in numbers if passed.get(names[place]) is None]
        if plain and len(rows) and self.cells.replicated and len(rows) * self.cells.strata.groups <= REPLICATED_ROWS:
            sides = self._from_replicates(sides, done, names, plain, rows)
        for place in numbers:
            own = passed.get(names[place])
            if own is not None:
                sides = sides.closed(place, Interval(own.low[rows], own.high[rows], own.error[rows]))
        return sides.within_certain()

    def _from_replicates(self, sides: Sides, done: Finished, names: list[str], places: list[int], rows: Integers) -> Sides:
        groups = self.cells.strata.groups
        lines = [(self._values(rows, None, chosen), self._values(rows, groups, chosen)) for chosen in (True, False)]
        changed = np.maximum(*self.cells.drawn_rows()).astype(np.int64)
        origins, drawn = _shown_as_is(self.cells), DrawnRows(self.cells.estimates(ROWS, DIRECT), changed).of(rows)
        for place in places:
            name = names[place]
            shown, direct = (Estimates(point[name][0], copies[name]) for point, copies in lines)
            if any(self._columns[each].typed is not None for each in done.made_of[name]):
                continue  # replicates know nothing of how far an extreme is off
            parts = [self._columns[each].of(rows) for each in done.made_of[name]]
            is_total = name in origins and self.cells.is_total(origins[name])
            sides = sides.closed(place, bounded(shown, direct, parts, None if is_total else drawn, self._behind))
        return sides

    def _passed(self) -> dict[str, Interval]:
        """The own intervals of columns that show an aggregate as it is."""
        found = {}
        for name, origin in _shown_as_is(self.cells).items():
            own = self._columns[origin].own
            if own is not None:
                found[name] = own
        return found

    def _certain(self, names: list[str], rows: Integers) -> dict[int, tuple[list[Any], list[Any]]]:
        found = {}
        for name, origin in _shown_as_is(self.cells).items():
            bounds = self._columns[origin].certain
            if bounds is not None:
                low, high = bounds
                found[names.index(name)] = ([low[row] for row in rows], [high[row] for row in rows])
        return found

    def _beyond(self, rows: Integers) -> dict[str, Any]:
        """How likely something lies beyond extremes."""
        found = {name: each.exceeding[rows].tolist() for name, each in self._columns.items() if each.exceeding is not None}
        return {"exceeding": found} if found else {}

    def _changes(self, rows: Integers) -> RowChanges:
        """Which rows the answer may get or lose: groups of rows that were not drawn, and groups whose rows may all be gone.

        Of groups that are known, a test of estimates or a limit may hide any for now.
        """
        if not self.cells.parts.keys and not self.cells.query.filtered:
            return RowChanges()
        if self.method == STALE_ONLY:
            return RowChanges(False, None, pa.array([True] * len(rows), pa.bool_()), math.inf)
        if not self.cells.parts.keys:  # there is one row, or none
            return RowChanges(False, UnseenRows(0.0, 1.0 - len(rows)), pa.array([True] * len(rows), pa.bool_()), math.inf)
        unseen = self._unseen(1 - self.confidence)
        if self.cells.query.filtered or self.cells.query.limited:
            hidden = int(np.count_nonzero(self._shown)) - len(rows)
            unseen = UnseenRows(unseen.estimate, unseen.most + hidden)
            return RowChanges(False, unseen, pa.array([True] * len(rows), pa.bool_()), math.inf)
        going = self._may_go[rows]
        tentative = pa.array(going, pa.bool_()) if going.any() else None
        lacking = unseen.most / len(rows) if len(rows) else math.inf if unseen.most else 0.0
        return RowChanges(
            not unseen.most and tentative is None, unseen, tentative, max(lacking, going.mean() if len(rows) else 0.0)
        )

    def _unseen(self, failure: float) -> UnseenRows:
        """Groups that are not shown: those seen first in the sample tell how many rows there are of such groups.

        A group of c rows is drawn with probability p = 1 - (1 - m)^c, and stands for (1 - p) / p others. Rows of groups that the
        stale view lacks are drawn by tickets, so that k of them drawn leave room for at most so many as a Poisson variable tells.
        """
        share = self.cells.strata.share
        direct, stale = self.cells.rows_of(DIRECT), self.cells.rows_of(STALE)
        shown = self._shown
        fresh = (direct > HALF_A_ROW) & (stale <= HALF_A_ROW) if self.method != AQP else shown
        drawn = 1 - (1 - share) ** np.maximum(direct[fresh], 1)
        estimate = float(((1 - drawn) / drawn).sum())
        known = direct[fresh].sum() * share
        most = special.gammaincinv(known + 1, 1 - failure) / share - known
        if self.method == AQP:
            return UnseenRows(estimate, float(math.floor(max(most, estimate))) if share < 1 else 0.0)
        return UnseenRows(estimate, float(math.floor(most)) if share < 1 else 0.0)

    @property
    def _may_go(self) -> NDArray[np.bool_]:
        """Groups that may be gone: those of which no clean row is known, however many rows they had.

        Rows that share a ticket go together, and are drawn together or not at all.
        """
        old, new = self.cells.drawn_rows()
        gone = np.maximum(old - new, 0).any()
        lasting, decisive = self.cells.sample.lasting, self.cells.query.decisive
        if self.cells.strata.share >= 1 or (not gone and lasting and decisive <= lasting):
            return np.zeros(self.cells.count, dtype=bool)
        return np.asarray(self.cells.rows_of(DIRECT) <= HALF_A_ROW)


def _shown_as_is(cells: Cells) -> dict[str, str]:
    """The columns of an answer that are an aggregate of the core, unchanged."""
    origin = {output.name: output.name for output in cells.query.core.aggregates}
    for node in reversed(cells.query.finish):
        if isinstance(node, Project):
            origin = {
                o.name: origin[o.expression.name]
                for o in node.outputs
                if isinstance(o.expression, Column) and o.expression.name in origin
            }
    return origin


def _input(table: pa.Table) -> Input:
    return Input(
        CELLS, tuple(Column(DOUBLE if field.type == "double" else from_arrow(field.type), field.name) for field in table.schema)
    )
