"""The samples of stale views that a session has cleaned, and the questions that they answer.

A sample is of a view and of its tables in one version each; it is taken further by the next question, and let go when one of them
moves. When all of it is clean, it is the refresh of the view, and is committed as such.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from nearly.answer import Answer
from nearly.engine.engine import Engine
from nearly.engine.native.failures import NativeFailure
from nearly.engine.planner import Prepared
from nearly.engine.storage.catalog import Snapshot
from nearly.engine.storage.clustering import TICKETS
from nearly.engine.storage.layouts import Table
from nearly.errors import Conflict, SchemaError, Unsupported
from nearly.plan.expressions import AggregateCall, Column
from nearly.plan.nodes import Field, GroupBy, Output, Scan, passed
from nearly.plan.types import LONG
from nearly.rewrite.delta.changed import WEIGHT
from nearly.rewrite.passes import rewrite
from nearly.rewrite.sample.sampling_columns import MOST_UNEVEN, sampling_columns
from nearly.rewrite.views.split_view import StoredView
from nearly.views.kept_groups import drop_groups
from nearly.views.maintenance import Maintenance
from nearly.views.moving import Move, definition_of
from nearly.views.reasons import told
from nearly.views.sampling.asking import (
    DEFAULT_SHARE,
    EXACT,
    FEW_ROWS,
    Asking,
    StaleQuestion,
    ViewAnswer,
    check_method,
    check_share,
    with_later,
)
from nearly.views.sampling.cleaning import StaleView, cleaned, untouched
from nearly.views.sampling.lasting import lasting
from nearly.views.sampling.linear import AUTO, STALE_ONLY
from nearly.views.sampling.outliers import OutlierIndex, SureRows, sure_rows
from nearly.views.sampling.sample import CleanSample, SampledRows
from nearly.views.states import At
from nearly.views.storing import Mismatch

logger = logging.getLogger(__name__)


@dataclass
class Held:
    """A stale view, and what of it is clean."""

    view: StaleView
    move: Move
    sample: CleanSample
    sure: SureRows | None = None
    drawn: dict[float, SampledRows] = field(default_factory=dict)


class Samples:
    """Questions to the views of one session."""

    def __init__(self, engine: Engine, maintenance: Maintenance) -> None:
        self._engine = engine
        self._maintenance = maintenance
        self._held: dict[str, Held] = {}
        self._indexes: dict[str, OutlierIndex] = {}
        self._columns: dict[Hashable, tuple[str, ...]] = {}
        self._lock = threading.RLock()

    def index(self, name: str, index: OutlierIndex | None) -> None:
        """Keep the rows that hang on outliers clean in all samples of a view from now on."""
        with self._lock:
            self._held.pop(name.lower(), None)
            if index is None:
                self._indexes.pop(name.lower(), None)
            else:
                self._indexes[name.lower()] = index

    def query(self, name: str, text: str, method: str, confidence: float, share: float | None) -> Answer:
        """The answer of a view to a query: exact where it is fresh, else by a method and a share that is cleaned."""
        check_method(method)
        if share is not None:
            check_share(share)
        with self._lock:
            held = self._stale(name)
            if held is None:
                return self._of_fresh(name, text, confidence)
            if isinstance(held, str):
                return self._without_sample(name, text, method, confidence, held)
            prepared = self._prepared(held.view, text)
            if held.view.table.name not in prepared.tables:
                raise SchemaError(f"the query does not read view {name!r}; ask db.sql")
            if prepared.query is None or prepared.kernel != "native":
                return self._without_sample(name, text, method, confidence, prepared.reason)
            asking = self._asking(held, StaleQuestion(prepared.query, method, confidence), prepared.snapshot)
            try:
                return asking.answer(max(share or self.share(name), held.sample.share), at_least=share is None)
            except NativeFailure as failure:  # for Spark to judge
                return self._without_sample(name, text, method, confidence, str(failure))

    def share(self, name: str) -> float:
        """The share of a view that is cleaned where nobody asks for another."""
        return definition_of(self._engine.catalog.table(name)).sample or DEFAULT_SHARE

    def asking(self, name: str, question: StaleQuestion, snapshot: Sequence[Table]) -> Asking:
        """A planned query over the stored rows of a stale view, to be answered for tables as they are in a snapshot.

        `Unsupported` tells why a sample of the view says nothing of it.
        """
        with self._lock:
            held = self._stale(name)
            if held is None:
                raise Unsupported("it was refreshed meanwhile")
            if isinstance(held, str):
                raise Unsupported(held)
            asked = {table.name.lower(): At.of(table) for table in snapshot}
            if any(asked.get(each.lower()) != At.of(table) for each, table in held.view.after.items()):
                raise Unsupported("its tables changed meanwhile")
            return self._asking(held, question, snapshot)

    def answer(self, asking: Asking) -> ViewAnswer:
        """What a sample of a view says."""
        with self._lock:
            return asking.answer(max(self.share(asking.view.table.name), asking.sample.share))

    def _asking(self, held: Held, question: StaleQuestion, snapshot: Sequence[Table]) -> Asking:
        tables = [held.view.table, *snapshot, *held.view.after.values()]
        engine = self._engine.at({table.name: table for table in tables}.values())
        return Asking(
            engine, tuple(tables), held.view, question, held.sample, held.sure, held.drawn, lambda new: self._keep(held, new)
        )  # fmt: skip

    def clean(self, name: str, share: float) -> CleanSample | None:
        """Have a share of a view clean; None where it is fresh."""
        check_share(share)
        with self._lock:
            held = self._stale(name)
            if held is None:
                return None
            if isinstance(held, str):
                raise Unsupported(held)
            self._keep(held, cleaned(self._engine, held.view, share, held.sample))
            return held.sample

    def _of_fresh(self, name: str, text: str, confidence: float) -> Answer:
        found = self._engine.run(self._engine.prepare(text))
        return with_later(Answer.exactly(found.table, f"view {name}", confidence, dict(found.stats)), lambda: iter(()))

    def _without_sample(self, name: str, text: str, method: str, confidence: float, reason: str) -> ViewAnswer:
        """The exact answer of the view made fresh, where no sample of it can be cleaned."""
        if method == STALE_ONLY:
            found = self._engine.run(self._engine.prepare(text)).table
            columns = [pa.nulls(found.num_rows, column.type) for column in found.columns]
            nothing = pa.Table.from_arrays(columns, schema=found.schema)
            going = pa.array([True] * found.num_rows, pa.bool_())
            answer = Answer(found, *(nothing,) * 4, 0.0, False, confidence, math.inf, f"view {name} (stale)", tentative=going)
            return with_later(answer, lambda: iter([self._refreshed(name, text, confidence, reason)]))
        if method not in (AUTO, EXACT):
            raise Unsupported(reason)
        return with_later(self._refreshed(name, text, confidence, reason), lambda: iter(()))

    def _refreshed(self, name: str, text: str, confidence: float, reason: str) -> Answer:
        """The exact answer of a view after its refresh."""
        self._maintenance.refresh(name)
        exact = self._engine.run(self._engine.prepare(text)).table
        return Answer.exactly(exact, f"view {name}", confidence, {"reason": reason})

    def _prepared(self, view: StaleView, text: str) -> Prepared:
        tables = {table.name: table for table in (view.table, *view.after.values())}
        return self._engine.named(self._engine.planner.over(Snapshot(self._engine.catalog, tables.values())).prepare(text))

    def _stale(self, name: str) -> Held | str | None:
        """What is known of a stale view; None where it is fresh, and a reason where no sample of it can be cleaned."""
        move = self._maintenance.ahead(name)
        if move is None:
            self._held.pop(name.lower(), None)
            return None
        known = self._held.get(name.lower())
        if known is not None and known.move.table is move.table and dict(known.move.new.inputs) == dict(move.new.inputs):
            return known
        obstacle = move.obstacle()
        stored = move.planned.stored
        if obstacle is not None or stored is None:
            return str(told(obstacle))
        if not move.planned.key:
            return f"the rows of view {name!r} have no key, so that no sample of it can be cleaned; give key= to create_view"
        self._held[name.lower()] = held = self._made(move, stored)
        return held

    def _made(self, move: Move, stored: StoredView) -> Held:
        old, now = move.present(move.before), move.after
        view = StaleView(move.table, stored.maintained, stored.columns, move.planned.key, old, now)
        names = self._drawn_by(view)
        deleted = any(self._deleted(each, old[name]) for name, each in now.items())
        view = replace(view, drawn_by=names, lasting=frozenset() if deleted else lasting(view), changes=move.changed)
        index = self._indexes.get(move.table.name.lower())
        return Held(view, move, untouched(view), None if index is None else sure_rows(self._engine, view, index))

    def _drawn_by(self, view: StaleView) -> tuple[str, ...]:
        """The columns that tickets are drawn for, the same for a view as long as its rows are of one kind."""
        order = view.table.base.clustering
        known = (view.table.name, definition_of(view.table).text, view.key, order)
        if known not in self._columns and order is not None and order.kind == TICKETS and self._is_even(view, order.columns):
            self._columns[known] = order.columns
        if known not in self._columns:
            find = Snapshot(self._engine.catalog, view.after.values()).schema
            key = [view.column(each) for each in view.key]
            chosen = sampling_columns(view.plan, key, find, lambda columns: self._effect(view, columns))
            self._columns[known] = tuple(view.columns[view.plan.columns.index(column)] for column in chosen)
        return self._columns[known]

    def _is_even(self, view: StaleView, columns: tuple[str, ...]) -> bool:
        """Whether columns by whose tickets a view is stored are good to draw by: no few of their values have most of the rows."""
        return set(columns) == set(view.key) or self._effect(view, tuple(view.column(name) for name in columns)) <= MOST_UNEVEN

    def _deleted(self, now: Table, was: Table) -> bool:
        """Whether rows of a table went between two versions, as far as its log tells."""
        logged = self._engine.catalog.batches(now.name, was.version, now.version)
        return len(logged) < now.version - was.version or any(batch.updated or batch.deleted for batch in logged.values())

    def _effect(self, view: StaleView, columns: tuple[Column, ...]) -> float:
        """The mean square of the number of stored rows by value of some columns, over the squared mean.

        Columns of few values are no good, however even: a sample has few of these, each with many rows, or none.
        """
        names = [view.columns[view.plan.columns.index(column)] for column in columns]
        fields = tuple(Field(f"effect_{name}", name, column.type) for name, column in zip(names, columns, strict=True))
        scan = Scan(view.table.name, fields, version=view.table.version)
        counted = GroupBy(scan, passed(scan.columns), (Output("times", AggregateCall(LONG, "count", ())),))
        times = self._engine.at([view.table]).native.run_here(rewrite(counted))["times"].to_numpy().astype(float)
        return float(np.mean(times**2) / np.mean(times) ** 2) if len(times) >= FEW_ROWS else math.inf

    def _keep(self, held: Held, sample: CleanSample) -> None:
        with self._lock:
            held.sample = sample
            if sample.share >= 1:
                self._commit(held)

    def _commit(self, held: Held) -> None:
        """The view moved to the versions that it was cleaned for, unless someone moved it meanwhile."""
        new, old, name = held.sample.new.table, held.sample.old.table, held.view.table.name
        signs = np.repeat([1, -1], [new.num_rows, old.num_rows])
        rows = pa.concat_tables([new, old]).append_column(WEIGHT, pa.array(signs, pa.int64()))
        with self._engine.catalog.changing(name):
            if self._engine.catalog.table(name) is not held.move.table:
                return
            try:
                held.move.commit(rows, "cleaned by a query")
            except (Mismatch, Conflict) as trouble:
                logger.warning("view %r was not moved by the query that cleaned it: %s", name, trouble)
                return
        drop_groups(self._engine, name, self._maintenance.state(name).groups)  # no sample tells of those inside its query
        self._maintenance.pin(name)
        self._held.pop(name.lower(), None)
