"""The views of a catalog: made, found, dropped, and refreshed in the background."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from nearly.engine.changes.changes import Changes
from nearly.engine.engine import Engine
from nearly.engine.storage.catalog import check_name
from nearly.engine.storage.layouts import AT, Table
from nearly.engine.storage.versions import now
from nearly.engine.storage.view_definition import AUTO, ERROR, INCREMENTAL, KEEP, POLICIES, REPLACE, ViewDefinition
from nearly.engine.writing.parquet_writer import Progress
from nearly.errors import SchemaError, Unsupported, unknown
from nearly.plan.depth import deep_recursion
from nearly.plan.syntax.parse import check_query
from nearly.plan.time_between import seconds_of
from nearly.rewrite.delta.strategy.strategies import WHOLE
from nearly.views.costs import RefreshCosts
from nearly.views.definition import PlannedView, plan_view
from nearly.views.explaining import explained, finding, obstacles
from nearly.views.kept_groups import drop_groups, make_groups, over_groups, scans, worth_keeping
from nearly.views.kept_values import values_now
from nearly.views.maintenance import Maintenance, Overtaken
from nearly.views.moving import definition_of, redefined
from nearly.views.reasons import told
from nearly.views.sampling.asking import check_share
from nearly.views.sampling.samples import Samples
from nearly.views.schedule import Schedule
from nearly.views.states import Refresh, State, state_of, versions_of
from nearly.views.storing import NewRows, commit_whole, refuse_no_key, written
from nearly.views.view import View

SHORTEST_SECONDS = 0.1
"""Between two refreshes in the background."""
CLEANINGS = 5
"""So often a sample is cleaned from one refresh in the background to the next: it goes stale as the view does, and costs little."""


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """How a view is kept, as a user says it."""

    sample: float | None = None
    policy: str = AUTO
    key: str | Sequence[str] = ()
    every: str | float | None = None

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise SchemaError(f"policy={self.policy!r} must be one of {', '.join(map(repr, POLICIES))}")
        if self.sample is not None:
            check_share(self.sample)
        if not isinstance(self.key, str | list | tuple):
            raise SchemaError(f"key={self.key!r} must be names of the view's columns")

    def definition(self, text: str) -> ViewDefinition:
        key = (self.key,) if isinstance(self.key, str) else tuple(self.key)
        sample = None if self.sample is None else float(self.sample)
        return ViewDefinition(
            text, None, self.policy, key, sample, None if self.every is None else seconds_of(self.every, SHORTEST_SECONDS)
        )


def refuse_whole(planned: PlannedView) -> None:
    """Refuse a view that cannot be maintained from changes."""
    reasons = obstacles(planned)
    if reasons:
        raise Unsupported(f"policy='incremental' needs a view that is maintained from changes alone. {told(reasons[0])}")


class Views:
    """All views below one catalog."""

    def __init__(self, engine: Engine, changes: Changes) -> None:
        self.engine = engine
        self._changes = changes
        self.maintenance = Maintenance(engine, changes)
        self.samples = Samples(engine, self.maintenance)
        self.schedule = Schedule(self._timed, self.maintenance.refresh)
        self.cleaning = Schedule(self._cleaned, self._clean)
        self.wake()

    @property
    def names(self) -> tuple[str, ...]:
        return self.engine.catalog.views

    @deep_recursion()
    def create(self, name: str, text: str, options: ViewOptions, there: str = ERROR, progress: Progress | None = None) -> View:
        """Compute a query and keep its rows under a name."""
        self._changes.refuse_inside("create_view")
        if not isinstance(name, str):
            raise SchemaError(f"a view is named by text, not {name!r}")
        check_name(name)
        definition = options.definition(check_query(text).text)
        catalog = self.engine.catalog
        if name in catalog:
            present = catalog.table(name)
            if present.view is None:
                raise SchemaError(f"there is a table {present.name!r} already; give the view another name")
            if there == KEEP:
                return self.get(name)
            if there == ERROR:
                raise SchemaError(f"there is a view {present.name!r} already; drop it first, or take another name")
            name = present.name
        while True:
            try:
                with catalog.changing(name) if name in catalog else nullcontext():
                    self._make(name, definition, there == REPLACE, progress)
            except Overtaken:
                continue
            except BaseException:
                if name not in catalog:
                    drop_groups(self.engine, name)
                raise
            self.maintenance.pin(name)
            self.wake()
            return self.get(name)

    def _make(self, name: str, definition: ViewDefinition, replaced: bool, progress: Progress | None) -> None:
        started = time.perf_counter()
        planned = self._planned(name, definition)
        if definition.policy == INCREMENTAL:
            refuse_whole(planned)
        leaves = self.maintenance.leaves(planned.inputs)
        with self.engine.catalog.temporary(name) as temporary:
            groups, kept = make_groups(self.engine, name, planned, definition.policy, temporary)
            source = over_groups(planned, groups)
            staged = written(self.engine, planned, source, name, temporary, progress, definition.sample is not None)
            refuse_no_key(self.engine, NewRows.of(staged), definition.key and planned.key)
            made = Refresh(
                now(),
                WHOLE,
                "made",
                0,
                staged.layout.rows,
                0,
                0,
                time.perf_counter() - started,
                self._estimate(planned, staged.layout.rows),
            )
            stored = planned.stored
            values = {} if stored is None else values_now(self.engine, stored.kept, source.inputs, scans(groups))
            state = State(versions_of(planned.inputs), leaves, (made,), values, kept, planned.reads)
            commit_whole(self.engine, name, planned, redefined(definition, planned), staged, state, replaced)
        drop_groups(self.engine, name, kept)

    def _planned(self, name: str, definition: ViewDefinition) -> PlannedView:
        """The view's plans over inputs that are of the same tables, as one moment has them: views below are brought to that."""
        planned = plan_view(self.engine, definition.text, (), definition.key)
        below = [table.name for table in planned.inputs if table.view is not None and AT not in table.name]
        if any(name.lower() in map(str.lower, self.maintenance.below(each)) for each in below):
            raise SchemaError(f"view {name!r} would be made of itself")
        names = sorted(table.name for table in planned.inputs)
        together = self.maintenance.together(names)
        inputs = [together[each.lower()] for each in names]
        planned = self.maintenance.plans.of(self.engine, name, definition.text, inputs, definition.key)  # as refreshes will ask
        told = [self.maintenance.leaves([table]) for table in planned.inputs]
        for one in told:
            for leaf, at in one.items():
                if any(other.get(leaf, at) != at for other in told):
                    raise Overtaken
        return planned

    def wake(self) -> None:
        """Refresh and clean in the background, where that is asked for."""
        self.schedule.wake()
        self.cleaning.wake()

    def stop(self) -> None:
        for each in (self.cleaning, self.schedule):
            each.stop()

    def ended(self) -> None:
        for each in (self.cleaning, self.schedule):
            each.ended()

    def _cleaned(self) -> dict[str, tuple[float, dt.datetime]]:
        """The views of which a sample is kept clean between two refreshes: after how many seconds, and when they were refreshed."""
        sampled = (name for name in self.names if self.definition(name).sample is not None)
        timed = self._timed()
        return {name: (timed[name][0] / CLEANINGS, timed[name][1]) for name in sampled if name in timed}

    def _clean(self, name: str) -> None:
        share = self.definition(name).sample
        if share is not None and share < 1:
            self.samples.clean(name, share)

    def _timed(self) -> dict[str, tuple[float, dt.datetime]]:
        """The views that are refreshed in the background: after how many seconds, and when they last were."""
        found = {}
        for name in self.names:
            table, notes = self.engine.catalog.noted(name)
            if table.view is not None and table.view.every is not None:
                found[name] = table.view.every, state_of(notes).refreshes[-1].time
        return found

    def get(self, name: str) -> View:
        return View(self, self.stored(name).name)

    def stored(self, name: str) -> Table:
        """The stored table of a view."""
        self.engine.life.refuse_over()
        found = (
            self.engine.catalog.table(name) if isinstance(name, str) and AT not in name and name in self.engine.catalog else None
        )
        if found is None or found.view is None:
            raise unknown("view", str(name), self.names)
        return found

    def definition(self, name: str) -> ViewDefinition:
        return definition_of(self.stored(name))

    def state(self, name: str) -> State:
        return self.maintenance.state(self.stored(name).name)

    def refresh(self, name: str, progress: Progress | None = None) -> Table:
        self._changes.refuse_inside("the refresh of a view")
        return self.maintenance.refresh(self.stored(name).name, progress)

    @deep_recursion()
    def explain(self, text: str) -> str:
        """How a view of this query is maintained."""
        self.engine.life.refuse_over()
        planned = plan_view(self.engine, check_query(text).text)
        return explained(planned, worth_keeping(planned))

    def _estimate(self, planned: PlannedView, rows: int) -> dict[str, float]:
        """What computing the view, of so many rows, was expected to take: what it took corrects later estimates."""
        if planned.stored is None:
            return {}
        costs = RefreshCosts(finding(planned), self.engine.cluster.sites.cores, self.engine.costs.constants.scan)
        return {WHOLE: costs.whole(planned.stored.maintained, rows)}

    def drop(self, name: str) -> None:
        """Forget a view and its rows; one that others are made of is an error."""
        self._changes.refuse_inside("drop_view")
        table = self.stored(name)
        self.refuse_needed(table.name)
        state = self.maintenance.state(table.name)
        self.engine.catalog.drop(table.name)
        drop_groups(self.engine, table.name)
        self.maintenance.unpin(table.name, state)

    def refuse_needed(self, name: str) -> None:
        """Refuse to drop a table or view that other views are made of; a view may be made of what it was itself."""
        above = [each for each in self.maintenance.above(name) if each.lower() != name.lower()]
        if above:
            raise SchemaError(f"{name!r} is needed by view {', '.join(map(repr, above))}; use db.drop_view first")
