"""The net change of a plan's rows between two sets of versions of its tables.

    before = {"orders": db.catalog.at("orders", 3)}
    after = {"orders": db.catalog.table("orders")}
    found = net_change(engine, plan, before, after)
    found.rows       # the plan's columns under their unique names, and `_weight`: how often a row came (> 0) or went (< 0)
    found.stages     # rows and seconds of every stage
    found.source     # native, spark, or none when no table of the plan changed
    found.reason     # why it was recomputed as a whole; None when it was not

`plan` is rewritten (`rewrite.passes.rewrite`), its scans name tables as `before` and `after` do (case does not matter). A table
that is not in them did not change; one that is in `before` only is compared with what the catalog has now. Rows are net: each is
there once, with a weight that is not zero, so that no rows means no change. A plan must have been bound to columns that may be
null if they may in either version (`bound_to_both`); otherwise it is refused with a `SchemaError`.

Doubles: a row that went is computed again from the old tables, and a sum of doubles may differ in its last digits from what was
computed then. Who keeps rows with such columns finds them by their key (`plan.properties.keys`), not by equality.

Large changes need not pass through the driver's memory: `with changing(...) as found: found.batches()` gives them some at a time.

`stored` maps parts of the plan to plans that read their old rows under the same columns, for example the rows that a view keeps of
its aggregate: then nothing else is read to know what was (`rewrite.delta.partials` says which columns such an aggregate keeps).

Law: the rows of `plan` over `before`, with these changes, are those of `plan` over `after`, as bags.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

import duckdb
import pyarrow as pa

from nearly.engine.deltas.reading import TableReader
from nearly.engine.deltas.sites import DeltaSites
from nearly.engine.deltas.stages import StageRun, StageRunner
from nearly.engine.deltas.versions import Tables, versions_of
from nearly.engine.deltas.workspace import Workspace
from nearly.engine.engine import Engine
from nearly.engine.jobs.native_kernel import STATIC_ROWS
from nearly.engine.native.failures import NativeFailure, read_in_batches
from nearly.engine.native.running import Running
from nearly.engine.plans import BrokenOff
from nearly.engine.storage.layouts import Table
from nearly.errors import EngineError, Unsupported
from nearly.plan.depth import deep_recursion
from nearly.plan.nodes import Input, Plan
from nearly.plan.types import is_simple, to_arrow
from nearly.rewrite.delta.changed import Delta, TableChange
from nearly.rewrite.delta.delta import delta
from nearly.rewrite.delta.strategy.open_rows import has_open_limit
from nearly.rewrite.delta.whole import new_minus_old

WEIGHT = "_weight"
"""The column after the plan's own."""
RESULT = "net change"
LIMITED = "a LIMIT without a total order may keep other rows each time it is read"
"""Stages read some parts of a plan several times."""
Changes = tuple[tuple[str, TableChange], ...]
"""The tables that changed, by name."""
BATCH_ROWS = 131_072
INTERRUPTED = duckdb.InterruptException.__name__
"""The kind of a failure that was wished for."""


@dataclass(frozen=True, slots=True)
class NetChange:
    """The rows that came and went, who computed them, and what that took."""

    rows: pa.Table
    source: str
    stages: tuple[StageRun, ...] = ()
    reason: str | None = None
    parts: Mapping[Plan, pa.Table] = field(default_factory=dict)


def net_change(
    engine: Engine,
    plan: Plan,
    before: Mapping[str, Table],
    after: Mapping[str, Table],
    stored: Mapping[Plan, Plan] | None = None,
    parts: tuple[Plan, ...] = (),
    background: Running | None = None,
) -> NetChange:
    """How the rows of a plan change, and those of some parts of it."""
    with changing(engine, plan, before, after, stored, parts, background) as found:
        return NetChange(found.table(), found.source, found.stages, found.reason, found.parts)


@dataclass(frozen=True, slots=True)
class Found:
    """A change whose rows can be read as long as it is open."""

    schema: pa.Schema
    source: str
    stages: tuple[StageRun, ...] = ()
    reason: str | None = None
    parts: Mapping[Plan, pa.Table] = field(default_factory=dict)
    """How the rows of parts of the plan changed, as far as that was found on the way."""
    _cursor: duckdb.DuckDBPyConnection | None = None
    _rows: pa.Table | None = None

    @property
    def rows(self) -> int:
        """How many different rows came or went."""
        return self._rows.num_rows if self._rows is not None else self.stages[-1].rows if self.stages else 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, some at a time."""
        if self._rows is not None:
            yield from self._rows.cast(self.schema).to_batches(BATCH_ROWS)
        elif self._cursor is not None and self.rows:
            for batch in read_in_batches(self._cursor.sql(f'SELECT * FROM "{RESULT}"'), BATCH_ROWS):
                yield from pa.Table.from_batches([batch]).rename_columns(self.schema.names).cast(self.schema).to_batches()

    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self.batches(), self.schema)


@contextmanager
def changing(
    engine: Engine,
    plan: Plan,
    before: Mapping[str, Table],
    after: Mapping[str, Table],
    stored: Mapping[Plan, Plan] | None = None,
    parts: tuple[Plan, ...] = (),
    background: Running | None = None,
) -> Iterator[Found]:
    """The change of a plan's rows, for as long as this is open.

    In the `background` nobody waits for it: interrupting ends it with `BrokenOff`, and what only Spark can do is `Unsupported`.
    """
    with deep_recursion():
        tables = versions_of(engine, plan, before, after, (stored or {}).values())
    schema = _schema(plan)
    if not tables.moved:
        yield Found(schema, "none")
        return
    pinned = engine.at(tables.all)
    with engine.reading(tables.all):
        pinned.native.local.configure(pinned.native.settings)
        try:
            with pinned.native.local.cursor(background) as cursor:
                yield _found(pinned, plan, tables, schema, stored or {}, cursor, parts, background is not None)
        except duckdb.InterruptException as trouble:
            if background is None:
                raise
            raise BrokenOff from trouble


@deep_recursion()
def _found(
    pinned: Engine, plan: Plan, tables: Tables, schema: pa.Schema, stored: Mapping[Plan, Plan],
    cursor: duckdb.DuckDBPyConnection, parts: tuple[Plan, ...], in_background: bool,
) -> Found:  # fmt: skip
    """By deltas; else all of it, by the native kernel, and in the end by Spark, which also judges what is an error.

    In the background Spark is not asked: that would start it in a session that needs none, and nobody could break it off.
    """
    reason = pinned.native.refused_types(plan)
    reason = reason or (LIMITED if has_open_limit(plan, pinned.catalog.schema) else None)
    for made in (planned_delta, _whole) if reason is None else (_whole,) if reason == LIMITED else ():
        try:
            planned = made(plan, tables, stored, parts)
            runs = _run(pinned, TableReader.of(pinned.native, tables, plan, stored.values()), planned, cursor) if planned else ()
            return Found(schema, "native", runs, reason, _parts(planned, parts, runs, cursor), cursor)
        except Unsupported as trouble:
            reason = reason or str(trouble)
        except NativeFailure as failure:
            pinned.life.refuse_over()
            if failure.is_unreadable:
                raise EngineError(f"a table's file cannot be read: {failure}") from failure
            if in_background and failure.kind == INTERRUPTED:
                raise BrokenOff from failure
            reason = reason or str(failure)
    if in_background:
        raise Unsupported(f"only Spark can compute what changed: {reason}")
    rows = pinned.spark.run(_whole(plan, tables, {}).result)
    found = rows.rename_columns(schema.names)
    return Found(_schema(plan, found.schema), "spark", (), reason, {}, None, found)


def _parts(
    planned: Delta | None, parts: tuple[Plan, ...], runs: Sequence[StageRun], cursor: duckdb.DuckDBPyConnection
) -> dict[Plan, pa.Table]:
    """The rows of parts that came and went, with their weights; of those that did not change none."""
    rows, found = {run.name: run.rows for run in runs}, dict[Plan, pa.Table]()
    for part, change in zip(parts, planned.parts if planned is not None else (), strict=False):
        names = [*(column.name for column in part.columns), *([] if change is None else [change.weight.name])]
        if change is None or not isinstance(change.plan, Input) or not rows[change.plan.source]:
            found[part] = _schema(part).empty_table()
        else:
            found[part] = Workspace(cursor).rows(change.plan.source).select(names)
    return found


def planned_delta(plan: Plan, tables: Tables, stored: Mapping[Plan, Plan], parts: tuple[Plan, ...] = ()) -> Delta | None:
    """The stages of a change: the same from refresh to refresh, since they name tables, not versions."""
    large = frozenset(table.name.lower() for table in tables.all if table.rows > STATIC_ROWS)
    return _delta(plan, tables.changes, tuple(stored.items()), large, parts, tables.keys)


@lru_cache(maxsize=256)
def _delta(
    plan: Plan,
    changes: Changes,
    stored: tuple[tuple[Plan, Plan], ...],
    large: frozenset[str],
    parts: tuple[Plan, ...],
    keys: tuple[tuple[str, tuple[str, ...]], ...],
) -> Delta | None:
    return delta(plan, dict(changes), dict(stored), large, parts, dict(keys))


def _whole(plan: Plan, tables: Tables, stored: Mapping[Plan, Plan], parts: tuple[Plan, ...] = ()) -> Delta:
    return new_minus_old(plan, dict(tables.changes), {})


def _run(pinned: Engine, reader: TableReader, planned: Delta, cursor: duckdb.DuckDBPyConnection) -> tuple[StageRun, ...]:
    tables = reader.tables
    with ExitStack() as opened:
        sites = None
        if pinned.cluster.sites.executors > 1:
            own = next(iter(tables.moved.values())).after.plain_name
            sites = DeltaSites(pinned.native, tables.all, opened.enter_context(pinned.catalog.temporary(own)))
        runner = StageRunner(reader, Workspace(cursor), sites)
        opened.callback(runner.close)
        runner.read_changes((*(stage.plan for stage in planned.stages), planned.result))
        for stage in planned.stages:
            runner.run(stage.name, stage.plan)
        runner.run(RESULT, planned.result)
        return tuple(runner.runs)


def _schema(plan: Plan, found: pa.Schema | None = None) -> pa.Schema:
    """The types that Spark gives; of nested ones, as they are found."""
    nested = found or pa.schema([(column.name, pa.null()) for column in plan.columns])
    types = [to_arrow(each.type) if is_simple(each.type) else nested.field(each.name).type for each in plan.columns]
    names = [column.name for column in plan.columns]
    return pa.schema([*zip(names, types, strict=True), (WEIGHT, pa.int64())])
