"""One view from the versions it is of to others: by deltas where they are known and cheaper, else computed anew.

Law: rows and versions are committed together, whichever way they were computed.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from nearly.engine.changes.batch_files import Change
from nearly.engine.changes.row_files import ManyRows
from nearly.engine.deltas.net_change import net_change, planned_delta
from nearly.engine.deltas.versions import Tables, scans_of, versions_of
from nearly.engine.engine import Engine
from nearly.engine.native.failures import NativeFailure
from nearly.engine.storage.layouts import AT, Table
from nearly.engine.storage.versions import now
from nearly.engine.storage.view_definition import FULL, INCREMENTAL, ViewDefinition
from nearly.engine.writing.parquet_writer import Progress
from nearly.engine.writing.staging import Staged
from nearly.errors import EngineError
from nearly.plan.nodes import GroupBy, Plan
from nearly.plan.schema import TableSchema
from nearly.rewrite.delta.changed import WEIGHT
from nearly.rewrite.delta.strategy.reasons import Reason
from nearly.rewrite.delta.strategy.strategies import DELTA, WHOLE
from nearly.rewrite.delta.with_partials import values_of
from nearly.rewrite.views.split_view import StoredView
from nearly.views.computing import computed
from nearly.views.costs import RefreshCosts, corrected
from nearly.views.definition import PlannedView, RememberedPlans, is_stored_so, loosened, stored_groups
from nearly.views.explaining import is_open, obstacles, strategy_of
from nearly.views.kept_groups import KeptGroups, changes_of, known_groups, make_groups, noted, over_groups, scans
from nearly.views.kept_values import known_values, values_moved, values_now
from nearly.views.reasons import POLICY_FULL, REPLACED, STORED_OTHERWISE, changed_too_much, no_history, other_zone, spark_only, told
from nearly.views.staleness import before, changed_rows, is_logged
from nearly.views.states import Refresh, State
from nearly.views.storing import (
    Mismatch,
    NewRows,
    change_of,
    commit_changes,
    commit_whole,
    difference,
    refuse_no_key,
    written,
    written_change,
)

logger = logging.getLogger(__name__)

OPEN = ("LIMIT_WITHOUT_TOTAL_ORDER", "WINDOW_WITHOUT_TOTAL_ORDER", "DOUBLES_AS_KEYS")
"""Reasons why the old rows, computed again, need not be those that are stored."""
LOOKED_AT, ITERATIONS = 100_000, 30
"""Rows by which the number of different values of a column is told, and steps in which it is."""
Pinned = Mapping[str, Table]
"""Tables in the versions of one refresh, by their names in small letters."""


@dataclass
class Move:
    """A view, the state it is in, and the one it moves to."""

    engine: Engine
    table: Table
    old: State
    new: State
    pinned: Pinned
    plans: RememberedPlans

    def __post_init__(self) -> None:
        self.started = time.perf_counter()
        self.most = 0.0

    def done(self, progress: Progress | None) -> Table:
        """Compute and commit; the view's stored table after that."""
        reason, estimates = self.obstacle(), dict[str, float]()
        stored = self.planned.stored
        if reason is None and stored is not None:
            kept = self._kept_rows(stored).values()
            tables = versions_of(self.engine, stored.kept, self.present(self.before), self.after, kept)
            estimates = self.estimates(stored, tables)
            reason = self._too_much(estimates)
        if reason is None and stored is not None:
            try:
                return self._by_delta(stored, estimates)
            except Mismatch:
                reason = REPLACED
                logger.warning("view %r: %s", self.table.name, reason.why)
        return self._whole(reason, estimates, progress)

    @cached_property
    def definition(self) -> ViewDefinition:
        return definition_of(self.table)

    @cached_property
    def before(self) -> dict[str, Table | None]:
        """The inputs as the view knows them; None where that cannot be read any more."""
        catalog = self.engine.catalog
        return {name: before(catalog, self.pinned[name.lower()], at) for name, at in self.old.inputs.items()}

    @cached_property
    def after(self) -> dict[str, Table]:
        return {name: self.pinned[name.lower()] for name in self.new.inputs}

    @cached_property
    def planned(self) -> PlannedView:
        """The view over its inputs as they are, bound so that it is right over those before, too."""
        tables = [loosened(self.after[name], self.before.get(name)) for name in self.after]
        return self.plans.of(self.engine, self.table.name, self.definition.text, tables, self.definition.key)

    @cached_property
    def changed(self) -> int:
        """How many rows of the inputs changed."""
        catalog = self.engine.catalog
        return sum(
            changed_rows(catalog, self.after[name], at) for name, at in self.old.inputs.items() if at != self.new.inputs[name]
        )

    def commit(self, rows: pa.Table, reason: str) -> Table:
        """Commit what came and went, rows of the stored table with weights, which was found otherwise."""
        return self._committed(change_of(self.engine, self.table, rows), self._strategy, reason, {})

    def present(self, tables: Mapping[str, Table | None]) -> dict[str, Table]:
        return {name: table for name, table in tables.items() if table is not None}

    def obstacle(self) -> Reason | None:
        """Why the rows must be computed anew, whatever that costs."""
        if self.definition.policy == FULL:
            return POLICY_FULL
        if is_elsewhere(self.engine, self.definition):
            return other_zone(self.definition.zone)
        planned, stored = self.planned, self.planned.stored
        if stored is None:
            return spark_only(planned.prepared.reason)
        if not planned.is_plain or redefined(self.definition, planned) != self.definition or not is_stored_so(self.table, planned):
            return STORED_OTHERWISE
        for name, at in self.old.inputs.items():
            was, is_ = self.before[name], self.after[name]
            if at != self.new.inputs[name] and (was is None or not is_logged(self.engine.catalog, was, is_)):
                return no_history(name)
        inherent = obstacles(planned)
        if is_open(planned):  # the old rows, computed again, need not be those that are stored
            return next((each for each in inherent if each.code in OPEN), inherent[0])
        return next((each for each in inherent if each.code == "USER_FUNCTION"), None)

    def estimates(self, stored: StoredView, tables: Tables) -> dict[str, float]:
        """Seconds that each way is expected to take."""
        schemas = {table.name.lower(): table.schema for table in (*tables.all, self.table)}

        def find_table(name: str) -> TableSchema:
            return schemas[name.lower()]

        cores, scan = self.engine.cluster.sites.cores, self.engine.costs.constants.scan
        costs = RefreshCosts(find_table, cores, scan, self._followers, self._different)
        found = {WHOLE: costs.whole(stored.maintained, self.table.rows)}
        change = planned_delta(stored.kept, tables, self._kept_rows(stored), self._parts(stored))
        if change is not None:
            changed = {each.names.source: each.most_rows for each in tables.moved.values()}
            shared, self.most = (
                each.delta(change, changed, self.table.rows, len(stored.columns)) + self._reading_changes(each, stored, tables)
                for each in (costs, costs.alone)
            )
            found[self._strategy] = shared
        return found

    def _reading_changes(self, costs: RefreshCosts, stored: StoredView, tables: Tables) -> float:
        """Seconds to read what changed, as far as it is not in memory."""
        columns: dict[str, set[str]] = {}
        for scan in scans_of(stored.kept):
            columns.setdefault(scan.table.lower(), set()).update(each.source for each in scan.fields)
        recent = self.engine.native.recent
        unread = {
            name: each
            for name, each in tables.moved.items()
            if not recent.holds(tuple(part.identity for part in each.parts), (*columns[name], WEIGHT))
        }
        return costs.changes(unread.values(), {each.after.name: len(columns[name]) for name, each in unread.items()})

    def _different(self, table: str, column: str) -> float:
        """About how many different values a column has, by the first rows of its table, which are taken as any others.

        D values make D (1 - exp(-n / D)) different ones in n rows.
        """
        found = self.pinned.get(table.lower()) or self.engine.catalog.table(table)

        def count() -> float:
            with self.engine.reading([found]):
                rows, seen = self.engine.native.reader.distinct(found, column, LOOKED_AT)
            values = float(max(seen, 1))
            for _ in range(ITERATIONS if seen < rows else 0):
                values = max(seen, 1) / -math.expm1(-rows / values)
            return values if seen < rows else math.inf

        return self.engine.native.recent.answer(("different", found.base.manifest.paths[:1], column), count)

    def _followers(self, table: str) -> int:
        """How many views follow a table; this one does."""
        plain = table.partition(AT)[0]
        return max(1, self.engine.catalog.followers(plain)) if plain in self.engine.catalog else 1

    @cached_property
    def groups(self) -> tuple[KeptGroups, ...]:
        """The groups inside the view's query that are kept, as they were."""
        stored = self.planned.stored
        return () if stored is None else known_groups(self.engine, stored.kept, self.old.groups)

    def _kept_rows(self, stored: StoredView) -> dict[Plan, Plan]:
        """Where old rows can be read: the view's groups, and the groups and single values inside its query."""
        return known_values(stored.kept, self.old.values) | scans(self.groups) | stored_groups(self.table, stored)

    def _parts(self, stored: StoredView) -> tuple[GroupBy, ...]:
        """What is kept beside the view's rows."""
        return (*values_of(stored.kept), *(each.plan for each in self.groups))

    @property
    def _strategy(self) -> str:
        """What a refresh by deltas is called; where a part of the view is computed as a whole, the rest is not."""
        found = strategy_of(self.planned, [each.plan for each in self.groups])
        return DELTA if found == WHOLE else found

    def _too_much(self, estimates: Mapping[str, float]) -> Reason | None:
        seconds = corrected(estimates, self.old.refreshes)
        whole = seconds.pop(WHOLE)
        cheapest = min(seconds.values(), default=0.0)
        if self.definition.policy == INCREMENTAL or cheapest <= whole:
            return None
        inherent = obstacles(self.planned)
        return inherent[0] if inherent else changed_too_much(self.changed, cheapest, whole)

    def _by_delta(self, stored: StoredView, estimates: Mapping[str, float]) -> Table:
        before = self.present(self.before)
        with self.engine.reading([self.table]):
            found = net_change(self.engine, stored.kept, before, self.after, self._kept_rows(stored), self._parts(stored))
        self.new = replace(self.new, values=values_moved(self.engine, stored.kept, found, self.after, self.old.values))
        change = change_of(self.engine, self.table, found.rows)
        groups = changes_of(self.engine, self.groups, found)
        strategy = self._strategy if found.reason is None else WHOLE
        reason = "" if found.reason is None else found.reason
        return self._committed(change, strategy, reason, estimates, groups)

    def _whole(self, reason: Reason | None, estimates: Mapping[str, float], progress: Progress | None) -> Table:
        """All rows computed anew; what differs is committed, or all of it where that is not known row by row."""
        definition, planned = redefined(self.definition, self.planned), self.planned
        with self.engine.catalog.temporary(self.table.name) as temporary:
            groups = make_groups(self.engine, self.table.name, planned, definition.policy, temporary, self.old.groups)
            self.groups, self.new = groups[0], replace(self.new, groups=groups[1])
            if definition == self.definition and planned.is_plain and is_stored_so(self.table, planned):
                try:
                    return self._compared(reason, estimates, temporary, progress)
                except Mismatch:
                    logger.warning("the stored rows of view %r were not what they should be; they are replaced", self.table.name)
            staged = self._written(temporary, progress, definition.sample is not None)
            refuse_no_key(self.engine, NewRows.of(staged), definition.key and planned.key)
            done = self._record(WHOLE, told(reason), (staged.layout.rows, 0, self.table.rows), estimates)
            state = self._state(done)
            return commit_whole(self.engine, self.table.name, planned, definition, staged, state, replaced=True, known=self.table)

    def _compared(self, reason: Reason | None, estimates: Mapping[str, float], temporary: Path, progress: Progress | None) -> Table:
        """Commit in which rows those that were computed anew differ from those that are stored."""
        planned = self.planned
        rows = NewRows.of(self._computed(temporary, progress))
        refuse_no_key(self.engine, rows, self.definition.key and planned.key)
        change = change_of(self.engine, self.table, difference(self.engine, self.table, rows))
        return self._committed(change, WHOLE, told(reason), estimates)

    def _computed(self, temporary: Path, progress: Progress | None) -> Staged | ManyRows:
        """All rows: as they come, or, where only Spark computes them, in files. What is kept of values is computed with them."""
        planned, stored = self.planned, self.planned.stored
        if stored is not None:
            values = values_of(stored.kept) if self.definition.policy != FULL else ()
            try:
                inputs = over_groups(planned, self.groups).inputs
                rows, kept = computed(self.engine, self.table, stored.kept, values, inputs, scans(self.groups), temporary)
            except NativeFailure:  # for Spark to judge
                self.engine.life.refuse_over()
            else:
                self.new = replace(self.new, values=kept)
                return rows
        return self._written(temporary, progress, sampled=False)

    def _written(self, temporary: Path, progress: Progress | None, sampled: bool) -> Staged:
        """All rows in new files, and what is kept of values."""
        planned, source = self.planned, over_groups(self.planned, self.groups)
        if planned.stored is not None and self.definition.policy != FULL:
            self.new = replace(self.new, values=values_now(self.engine, planned.stored.kept, source.inputs, scans(self.groups)))
        return written(self.engine, planned, source, self.table.name, temporary, progress, sampled)

    def _committed(
        self, change: Change, strategy: str, reason: str, estimates: Mapping[str, float],
        groups: Sequence[tuple[KeptGroups, Change]] = (),
    ) -> Table:  # fmt: skip
        came = 0 if change.came is None else change.came.num_rows
        gone = 0 if change.places is None else len(change.places)
        counts = (came - change.updated, change.updated, gone - change.updated)
        done = self._record(strategy, reason, counts, estimates)
        tables = [(self.table, change), *((each.table, changed) for each, changed in groups)]
        batches = [batch for table, each in tables if (batch := written_change(self.engine, table, each)) is not None]
        if groups:
            contents = {batch.table.name: batch.content for batch in batches}
            self.new = replace(self.new, groups=noted([each for each, _ in groups], self.old.groups, contents))
        return commit_changes(self.engine, self.table, batches, self._state(done))

    def _state(self, done: Refresh) -> State:
        """What is noted of the view after this refresh."""
        return replace(self.new, reads=self.planned.reads).after(done)

    def _record(self, strategy: str, reason: str, counts: tuple[int, int, int], estimates: Mapping[str, float]) -> Refresh:
        most = self.most if strategy in estimates and strategy != WHOLE else 0.0
        return Refresh(now(), strategy, reason, self.changed, *counts, time.perf_counter() - self.started, estimates, most)


def definition_of(table: Table) -> ViewDefinition:
    """What the table is the rows of."""
    if table.view is None:
        raise EngineError(f"{table.name!r} is no view")
    return table.view


def redefined(definition: ViewDefinition, planned: PlannedView) -> ViewDefinition:
    """The definition with the reading and the time zone that its stored rows now have."""
    return replace(definition, reading=None if planned.stored is None else planned.stored.reading, zone=planned.zone)


def is_elsewhere(engine: Engine, definition: ViewDefinition) -> bool:
    """Whether the rows of a view were computed in another time zone, in which the query means something else."""
    return definition.zone is not None and definition.zone != engine.cluster.time_zone
