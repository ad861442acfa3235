"""The native kernel: DuckDB inside Spark tasks.

With one executor the whole plan is one fragment in one fat task that uses all its cores. With several, `rewrite.sites.distribute`
says where rows move, and every piece between two moves is a stage: the same fragment on every site, over the site's share of the
data. Either way it is one Spark job, and Spark does the moving.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from nearly.algebra import arrow as pc
from nearly.engine import spark_names
from nearly.engine.jobs.stage_task import StageTask
from nearly.engine.jobs.stages import Stage, Tail, cut
from nearly.engine.jobs.turns import Turns
from nearly.engine.native.durations import Durations
from nearly.engine.native.engine import Fragment, Native, Settings
from nearly.engine.native.failures import explained, read_in_batches, unpacked
from nearly.engine.native.first_units import FirstUnits
from nearly.engine.native.group_counts import group_counts
from nearly.engine.native.payload import ERROR, PAYLOAD_SCHEMA, SLOT, StageOutput, decode
from nearly.engine.native.python_functions import Functions
from nearly.engine.native.reading import NativeReader
from nearly.engine.native.recent_changes import RecentChanges
from nearly.engine.native.running import Ending
from nearly.engine.native.shares import Shares
from nearly.engine.native.spare_engines import SpareEngines
from nearly.engine.native.splice import spliced_tables
from nearly.engine.spark.cluster import Cluster
from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.layouts import Table
from nearly.errors import EngineError, Unsupported
from nearly.plan.nodes import Exchange, Input, Plan, Scan
from nearly.plan.remembered import Remembered
from nearly.plan.render import NATIVE, rendered, text_of
from nearly.plan.types import is_simple
from nearly.rewrite.passes import for_sites

logger = logging.getLogger(__name__)


RENDERED = 32
"""Texts of plans that are remembered."""
STATIC_ROWS = 100_000
"""A table up to this size is loaded into a worker once and kept there."""


Whole = tuple[str, tuple[tuple[str, str], ...]]
"""A query's SQL, and names and SQL of the small tables it reads."""


class _Rendered:
    """A plan that the native engine takes; its text, which takes longer than seeing that it can, is made when it is asked for."""

    def __init__(self, tree: exp.Expr, statics: tuple[tuple[str, str], ...]) -> None:
        self._tree: exp.Expr | None = tree
        self._text = ""
        self._statics = statics
        self._making = threading.Lock()

    @property
    def whole(self) -> Whole:
        with self._making:
            if self._tree is not None:
                self._text, self._tree = text_of(self._tree, NATIVE), None
        return self._text, self._statics


@dataclass(frozen=True, slots=True)
class NativeKernel:
    """Runs plans by DuckDB in Spark tasks."""

    cluster: Cluster
    catalog: Catalog
    reader: NativeReader
    memory_mb: int
    samples: FirstUnits = field(default_factory=lambda: FirstUnits(Native()))
    functions: Functions = field(default_factory=Functions)
    durations: Durations = field(default_factory=Durations)
    turns: Turns = field(default_factory=Turns)
    spare: SpareEngines = field(default_factory=SpareEngines)
    recent: RecentChanges = field(default_factory=RecentChanges)
    ending: Ending = field(default_factory=Ending)
    """Of the query that it runs."""
    _rendered: Remembered[tuple[Plan, tuple[Hashable, ...]], _Rendered] = field(default_factory=lambda: Remembered(RENDERED))

    @property
    def local(self) -> Native:
        """The driver's own engine."""
        return self.samples.engine

    def refusal(self, plan: Plan) -> str | None:
        """Why the native kernel does not take a plan; None where it does."""
        found = self.refused_types(plan)
        if found is not None:
            return found
        try:
            self._known(plan)
        except Unsupported as reason:
            return str(reason)
        return None

    def refused_types(self, plan: Plan) -> str | None:
        """Why it does not, as far as settings and columns tell."""
        if not self.cluster.ansi:
            return "spark.sql.ansi.enabled is false, and the native kernel computes by ANSI rules"
        for node in plan.walk():
            for column in node.columns:
                if not is_simple(column.type):
                    return f"column {column.name.rsplit('_', 1)[0]!r} has type {column.type}"
        return None

    def whole(self, plan: Plan) -> Whole:
        """A plan as one query, and the small tables it reads."""
        return self._known(plan).whole

    def _known(self, plan: Plan) -> _Rendered:
        """What a plan is rendered as; remembered, since a plan is checked, then run, and run again."""
        scans = [node for node in plan.walk() if isinstance(node, Scan)]
        tables = [self.catalog.table(scan.table) for scan in scans]
        key = (plan, tuple((table.content, table.base.files) for table in tables))
        known = self._rendered.get(key)
        if known is None:
            known = self._rendered.add(key, self._rendering(plan, {}))
        return known

    def stages(self, plan: Plan) -> Tail:
        """How the plan is cut for the executors there are."""
        sites = self.cluster.sites.executors
        if sites == 1:
            return cut(Exchange(plan, "gather"), sites)
        return cut(for_sites(plan, self.catalog.schema, sites, group_counts(self.catalog, self.reader)), sites)

    def run(self, plan: Plan) -> pa.Table:
        tail = self.stages(plan)
        given = self._collect(tail.inputs)
        return given[tail.plan.source] if isinstance(tail.plan, Input) else self.run_here(tail.plan, given)

    def _collect(self, stages: tuple[Stage, ...]) -> dict[str, pa.Table]:
        """Run the stages in one Spark job and take what the last of them send."""
        if not stages:
            return {}
        if self.alone:
            return {stage.name: self.run_here(stage.plan) for stage in stages}
        try:
            with self.cluster.job(self.ending):
                frame = reduce(lambda a, b: a.union(b), [self._frame(stage, 1) for stage in stages])
                return received(frame.toArrow())
        except spark_names.PySparkException as trouble:
            raise EngineError(f"the Spark job failed: {trouble}") from trouble

    @property
    def alone(self) -> bool:
        """Whether the driver must do the work of the one executor, since Spark is not there yet."""
        return not self.cluster.is_up and self.cluster.sites.executors == 1

    def run_here(self, plan: Plan, given: dict[str, pa.Table] | None = None) -> pa.Table:
        """The plan's rows by the driver's own engine, over all rows of its tables and what is given."""
        sql, statics = self.whole(plan)
        logger.debug("here: %s", sql)
        self.local.configure(self.settings)
        self.ending.refuse()
        try:
            with self.local.loaded(statics, self.ending.running):
                return self.local.run(sql, (), given or {}, self.ending.running)
        except duckdb.Error as trouble:
            raise explained(trouble) from trouble

    def stream_here(self, plan: Plan, rows: int) -> Iterator[pa.RecordBatch]:
        """As `run_here`, some rows at a time, so that memory holds no more of them."""
        sql, statics = self.whole(plan)
        self.local.configure(self.settings)
        try:
            with self.local.loaded(statics), self.local.cursor() as cursor:
                yield from read_in_batches(cursor.sql(sql), rows)
        except duckdb.Error as trouble:
            raise explained(trouble) from trouble

    def _frame(self, stage: Stage, consumers: int) -> Any:
        """The Spark DataFrame whose rows are the stage's payloads."""
        fragment = self._fragment(stage, stage.slots(consumers))
        spark = self.cluster.spark
        if not stage.inputs:
            return spark.range(0, stage.width, 1, stage.width).mapInArrow(StageTask(fragment, False), PAYLOAD_SCHEMA)
        given = reduce(lambda a, b: a.union(b), [self._frame(each, stage.width) for each in stage.inputs])
        moved = given.repartitionById(stage.width, given["slot"])
        return moved.mapInArrow(StageTask(fragment, True), PAYLOAD_SCHEMA)

    def _fragment(self, stage: Stage, slots: int) -> Fragment:
        spread = [node for node in dict.fromkeys(stage.plan.walk()) if isinstance(node, Scan) and node.share != "all"]
        tables = [(scan, self.catalog.table(scan.table)) for scan in spread]
        names = {scan: f"share_{place}" for place, scan in enumerate(spread)}
        shares = Shares(self.reader, tables, stage.width)
        views = tuple(tuple((names[scan], shares.view(scan, table, site)) for scan, table in tables) for site in range(stage.width))
        sql, statics = self._rendering(stage.plan, names).whole if names else self.whole(stage.plan)
        keys = tuple(key.name for key in stage.exchange.keys) if slots > 1 else ()
        if keys:
            sql = _with_slot(sql, keys, slots)
        logger.debug("%s on %d site(s): %s", stage.name, stage.width, sql)
        return Fragment(sql, statics, views, StageOutput(stage.name, slots, keys), self.settings)

    @property
    def settings(self) -> Settings:
        return Settings(self.cluster.sites.cores, self.memory_mb, self.cluster.time_zone, self.functions.travelling)

    def _rendering(self, plan: Plan, names: dict[Scan, str]) -> _Rendered:
        """A fragment's SQL, and the small tables it reads; a table in `names` is read by that name."""
        statics: dict[str, str] = {}

        def source(leaf: Scan | Input) -> exp.Expr:
            if isinstance(leaf, Input):
                return exp.Table(this=exp.to_identifier(leaf.source, quoted=True))
            if leaf in names:
                return exp.Table(this=exp.to_identifier(names[leaf], quoted=True))
            table = self.catalog.table(leaf.table)
            if table.rows <= STATIC_ROWS:
                body = self._reading(leaf).sql(dialect="duckdb")
                name = static_name(table, body)
                statics[name] = body
                return exp.Table(this=exp.to_identifier(name, quoted=True))
            return self.stored(leaf)

        return _Rendered(rendered(plan, NATIVE, source), tuple(statics.items()))

    def stored(self, scan: Scan) -> exp.Expr:
        """A whole table as something to select from."""
        return exp.Subquery(this=self._reading(scan), alias=exp.TableAlias(this=exp.to_identifier("stored")))

    def _reading(self, scan: Scan) -> exp.Expr:
        table = self.catalog.table(scan.table)
        return self.reader.whole(table, table.base, [field.source for field in scan.fields])


def static_name(table: Table, body: str) -> str:
    """The name of a small table in the memory of an engine: other rows or other columns have another one."""
    return f"static_{table.plain_name}_{hashlib.sha256(f'{table.content} {body}'.encode()).hexdigest()[:12]}"


def _with_slot(sql: str, keys: tuple[str, ...], slots: int) -> str:
    """The query with one more column: the site each row goes to."""
    hashed = exp.Anonymous(this="hash", expressions=[exp.column(key, quoted=True) for key in keys])
    slot = exp.Cast(this=exp.Mod(this=hashed, expression=exp.Literal.number(slots)), to=exp.DataType.build("int"))
    sent = exp.Table(this=exp.to_identifier("sent:rows", quoted=True))
    text = exp.Select(expressions=[exp.Star(), exp.alias_(slot, SLOT, quoted=True)], from_=exp.From(this=sent)).sql("duckdb")
    return spliced_tables(str(text), {"sent:rows": sql})


def received(rows: pa.Table) -> dict[str, pa.Table]:
    """The Arrow tables that tasks sent to the driver, those of one source as one."""
    sources, payloads = rows["source"].to_pylist(), rows["payload"]
    for source, payload in zip(sources, payloads, strict=True):
        if source == ERROR:
            raise unpacked(payload.as_py())
    names = dict.fromkeys(sources)
    tables: dict[str, pa.Table] = {}
    for name in names:
        mine = rows.filter(pc.equal(rows["source"], name))["payload"]
        tables[name] = pa.concat_tables(decode(payload.as_buffer()) for payload in mine)
    return tables
