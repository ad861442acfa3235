"""The engine of a session: plans are run by a kernel of ours, and when none takes a query, by Spark as it is."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from nearly.engine.activity import Activity
from nearly.engine.costs import Costs
from nearly.engine.jobs.explain_stages import explain_stages
from nearly.engine.jobs.native_kernel import NativeKernel
from nearly.engine.life import Life
from nearly.engine.native.durations import Durations
from nearly.engine.native.engine import Native
from nearly.engine.native.failures import NativeFailure
from nearly.engine.native.first_units import FirstUnits
from nearly.engine.native.key_indexes import KeyIndexes
from nearly.engine.native.python_functions import Functions
from nearly.engine.native.reading import NativeReader
from nearly.engine.native.running import Ending
from nearly.engine.planner import Planner, Prepared
from nearly.engine.results import finished
from nearly.engine.spark.cluster import Cluster
from nearly.engine.spark.reading import SparkReader
from nearly.engine.spark.spark_functions import register_scalar
from nearly.engine.spark.spark_kernel import SparkKernel
from nearly.engine.storage.catalog import Catalog, Snapshot
from nearly.engine.storage.layouts import Origin, Table
from nearly.errors import CLOSED, EngineError
from nearly.plan.depth import deep_recursion
from nearly.plan.explain import explain
from nearly.plan.nodes import BoundQuery, Plan, Scan
from nearly.plan.types import DataType
from nearly.rewrite.passes import rewrite

logger = logging.getLogger(__name__)

DEFAULT_MEMORY_MB = 4096


@dataclass(frozen=True, slots=True)
class Result:
    """Rows, who computed them, and how long each step took in seconds."""

    table: pa.Table
    source: str
    stats: dict[str, float]


def _version_read(table: Table) -> str:
    return f"{table.plain_name} version {table.version}" + (" (its files, and changes in the catalog)" if table.overlaid else "")


class Engine:
    """Plans and runs queries over a catalog on a cluster."""

    def __init__(self, cluster: Cluster, catalog: Catalog, memory_mb: int = DEFAULT_MEMORY_MB) -> None:
        self.cluster = cluster
        self.catalog = catalog
        self.functions = functions = Functions()
        samples = FirstUnits(Native(functions.live))
        self.costs = Costs(catalog.path)
        durations = Durations(self.costs)
        self.native = NativeKernel(
            cluster, catalog, NativeReader(), memory_mb, samples=samples, functions=functions, durations=durations
        )
        self.spark = SparkKernel(cluster, catalog, SparkReader(lambda: cluster.spark), self.functions)
        self.planner = Planner(
            catalog, functions, self._native_refusal, lambda: cluster.is_up, lambda: cluster.time_zone, cluster.knows,
            lambda: (cluster.ansi, cluster.time_zone),
        )  # fmt: skip
        self.key_indexes = KeyIndexes(self.costs)
        self.life = Life()
        self.ending = Ending()
        self.activity = Activity()

    def read_plainly(self, origin: Origin) -> pa.Table | None:
        """The rows of CSV or JSON files, without Spark, where it is certain that it would read the same."""
        from nearly.engine.text.files import read_plainly  # noqa: PLC0415  few sessions read any

        zone = self.cluster.foreseen_time_zone
        return None if zone is None else read_plainly(origin, zone in ("UTC", "Etc/UTC", "GMT"))

    def close(self) -> None:
        """Break off what runs, and let go of memory and Spark; each part is closed whatever becomes of the others."""
        with ExitStack() as parts:
            parts.callback(self.cluster.close)
            parts.callback(self.native.samples.close)
            parts.callback(self.native.spare.close)
            parts.callback(self.costs.save)
            parts.callback(self.cluster.refuse_more)
            parts.callback(self.life.end)

    def add_function(self, name: str, function: Callable[..., Any], returns: str) -> None:
        """Make a Python function over Arrow arrays known to both kernels."""
        self.life.refuse_over()
        self.functions.refuse_name(name, self.cluster.spark.catalog.functionExists)
        signature = self.functions.add(name, function, returns)
        register_scalar(self.cluster.spark, name, self.functions.travelling_as(signature.symbol), signature.returns)

    def plan(self, text: str, kernel: str | None = None) -> Prepared:
        """Decide how a query is run, without Spark; `kernel` forces one, and then what it cannot do is an error."""
        self.life.refuse_over()
        return self.planner.prepare(text, kernel)

    def prepare(self, text: str, kernel: str | None = None) -> Prepared:
        """A query that is planned and has all its names."""
        return self.named(self.plan(text, kernel))

    def named(self, prepared: Prepared) -> Prepared:
        """With the names of expressions without alias, which are Spark's to choose; where its types differ, it runs the text."""
        query = prepared.query
        if query is None or not query.unnamed:
            return prepared
        schema = self.at(prepared.snapshot).spark.schema(prepared.text, set(prepared.tables))
        if tuple(type_ for _, type_ in schema) != query.types:
            return replace(prepared, query=None, kernel="spark", reason="Spark gives the columns other types than nearly does")
        return replace(prepared, query=BoundQuery(query.plan, tuple(name for name, _ in schema)))

    def at(self, tables: Iterable[Table]) -> Engine:
        """The same engine over a catalog in which these tables stay as they are."""
        pinned = copy.copy(self)
        pinned.catalog = Snapshot(self.catalog, tables)
        pinned.native = replace(self.native, catalog=pinned.catalog)
        pinned.spark = replace(self.spark, catalog=pinned.catalog)
        return pinned

    def until(self, ending: Ending) -> Engine:
        """The same engine, for one query that somebody may end."""
        own = copy.copy(self)
        own.ending = ending
        own.native = replace(self.native, ending=ending)
        own.spark = replace(self.spark, ending=ending)
        return own

    def _native_refusal(self, snapshot: Snapshot, plan: Plan) -> str | None:
        return replace(self.native, catalog=snapshot).refusal(plan)

    def columns(self, prepared: Prepared) -> tuple[tuple[str, DataType], ...]:
        """Names and types of a prepared query's columns."""
        if prepared.query is None:
            return tuple(self.at(prepared.snapshot).spark.schema(prepared.text, set(prepared.tables), foreign=prepared.foreign))
        return tuple(zip(prepared.query.names, prepared.query.types, strict=True))

    @deep_recursion()
    def run(self, prepared: Prepared) -> Result:
        """Run a prepared query to its end."""
        started = time.perf_counter()
        with self.reading(prepared.snapshot):
            checked = time.perf_counter()
            try:
                table, source = self.at(prepared.snapshot)._run(prepared)
            except Exception as trouble:
                if self.life.is_over:  # whatever it met, that was why
                    raise EngineError(CLOSED) from trouble
                self.ending.refuse()
                raise
        ended = time.perf_counter()
        if source == "native" and prepared.query is not None:
            self._learn(prepared, prepared.query.plan, ended - checked)
        return Result(table, source, {"verify": checked - started, "run": ended - checked})

    def _learn(self, prepared: Prepared, plan: Plan, seconds: float) -> None:
        """Remember how long a query took; the first run corrects what is expected of others."""
        known = self.native.durations.knows(prepared.question)
        expected = None if known else self.costs.seconds(plan, prepared.schema, self.cluster.sites.cores)
        self.native.durations.record(prepared.question, seconds, expected)

    @contextmanager
    def reading(self, tables: Iterable[Table]) -> Iterator[None]:
        """While these tables are read: no file of theirs is removed. An `EngineError` when one is not what it was."""
        self.life.refuse_over()
        kept = tuple(tables)
        with self.activity.reading(), self.catalog.held(kept):
            for table in kept:
                for layout in table.layouts:
                    layout.verify()
            yield

    @deep_recursion()
    def explain(self, prepared: Prepared) -> str:
        """What is computed where, by which kernel, and why."""
        lines = [f"kernel: {prepared.kernel}", f"why: {prepared.reason}"]
        if prepared.snapshot:
            lines.append(f"reads: {', '.join(map(_version_read, prepared.snapshot))}")
        if prepared.query is not None and prepared.kernel == "native":
            pinned = self.at(prepared.snapshot)
            lines.append(explain_stages(pinned.native.stages(prepared.query.plan), self.cluster.sites, pinned.catalog.schema))
        elif prepared.query is not None:
            lines += ["plan:", explain(prepared.query.plan)]
        return "\n".join(lines)

    def _run(self, prepared: Prepared) -> tuple[pa.Table, str]:
        query = prepared.query
        if query is None:
            return self.spark.run_text(prepared.text, set(prepared.tables), foreign=prepared.foreign), "spark"
        if prepared.kernel == "spark":
            return finished(self.spark.run(query.plan), query), "spark"
        rows = self.native_rows(query.plan)
        if rows is not None:
            return finished(rows, query), "native"
        return self.spark.run_text(prepared.text, set(prepared.tables)), "spark"

    def rows(self, plan: Plan) -> pa.Table:
        """The rows of a plan that a subsystem made itself, under its unique column names; it is run like a query."""
        tables = [self.catalog.table(name) for name in sorted({node.table for node in plan.walk() if isinstance(node, Scan)})]
        pinned, ready = self.at(tables), rewrite(plan)
        with self.reading(tables):
            rows = pinned.native_rows(ready) if pinned.native.refusal(ready) is None else None
            return pinned.spark.run(ready) if rows is None else rows

    def native_rows(self, plan: Plan) -> pa.Table | None:
        """The plan's rows by the native kernel; None when it stopped on something that is for Spark to judge."""
        try:
            return self.native.run(plan)
        except NativeFailure as failure:
            self.life.refuse_over()
            self.ending.refuse()
            if failure.is_unreadable:
                raise EngineError(f"a table's file cannot be read: {failure}") from failure
            logger.info("the native kernel stopped (%s); Spark runs the query", failure)
            return None
