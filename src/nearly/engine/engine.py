"""Exact answers: a query is parsed, bound, rewritten, given to a kernel, and when no kernel of ours takes it, to Spark as it is."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from nearly.engine.jobs.explain_stages import explain_stages
from nearly.engine.jobs.native_kernel import NativeFailure, NativeKernel
from nearly.engine.life import Life
from nearly.engine.native.engine import Native
from nearly.engine.native.first_units import Samples
from nearly.engine.native.python_functions import Functions
from nearly.engine.native.reading import NativeReader
from nearly.engine.results import finished
from nearly.engine.spark.cluster import Cluster
from nearly.engine.spark.reading import SparkReader
from nearly.engine.spark.spark_functions import register_scalar
from nearly.engine.spark.spark_kernel import SparkKernel
from nearly.engine.storage.catalog import Catalog, Snapshot
from nearly.engine.storage.clustering import RANGE
from nearly.engine.storage.layouts import Table
from nearly.errors import CLOSED, EngineError, UnknownName, Unsupported, unknown
from nearly.plan import functions
from nearly.plan.binding.query import bind
from nearly.plan.depth import deep_recursion
from nearly.plan.explain import explain
from nearly.plan.nodes import BoundQuery, Plan
from nearly.plan.parse import Checked, check_query
from nearly.plan.schema import HashedLayout, SchemaColumn, TableSchema
from nearly.plan.types import DataType
from nearly.plan.user_functions import Mapped, marked
from nearly.rewrite.passes import rewrite

logger = logging.getLogger(__name__)

KERNELS = ("native", "spark")
DEFAULT_MEMORY_MB = 4096


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query that is ready to run: `query` is None when Spark runs the text, and `reason` says why.

    `text` is the text that was checked, in the spelling of `plan.spelling`; `snapshot` are the tables as they were when it was
    planned. The Python functions it calls live as long as it does.
    """

    text: str
    snapshot: tuple[Table, ...]
    query: BoundQuery | None
    kernel: str
    reason: str
    functions: tuple[object, ...] = field(default=(), compare=False, repr=False)

    @property
    def tables(self) -> frozenset[str]:
        """Names of the stored tables that the query reads."""
        return frozenset(table.name for table in self.snapshot)


@dataclass(frozen=True, slots=True)
class Result:
    """Rows, who computed them, and how long each step took in seconds."""

    table: pa.Table
    source: str
    stats: dict[str, float]


class Engine:
    """Plans and runs queries over a catalog on a cluster."""

    def __init__(self, cluster: Cluster, catalog: Catalog, memory_mb: int = DEFAULT_MEMORY_MB) -> None:
        self.cluster = cluster
        self.catalog = catalog
        self.functions = functions = Functions()
        samples = Samples(Native(functions.live))
        self.native = NativeKernel(cluster, catalog, self.schema, NativeReader(), memory_mb, samples=samples, functions=functions)
        self.spark = SparkKernel(cluster, catalog, SparkReader(lambda: cluster.spark), self.functions)

        self.life = Life()

    def close(self) -> None:
        """Break off what runs, and let go of memory and Spark; each part is closed whatever becomes of the others."""
        with ExitStack() as parts:
            parts.callback(self.cluster.close)
            parts.callback(self.native.samples.close)
            parts.callback(self.cluster.refuse_more)
            parts.callback(self.life.end)

    def add_function(self, name: str, function: Callable[..., Any], returns: str) -> None:
        """Make a Python function over Arrow arrays known to both kernels."""
        self.life.refuse_over()
        self.functions.refuse_name(name, self.cluster.spark.catalog.functionExists)
        signature = self.functions.add(name, function, returns)
        register_scalar(self.cluster.spark, name, self.functions.travelling_as(signature.symbol), signature.returns)

    @deep_recursion()
    def prepare(self, text: str, kernel: str | None = None) -> Prepared:
        """Decide how a query is run; `kernel` forces one, and then what it cannot do is an error."""
        self.life.refuse_over()
        if kernel is not None and kernel not in KERNELS:
            raise unknown("kernel", str(kernel), KERNELS)
        checked = check_query(text)
        return replace(self._prepared(checked, kernel), functions=self.functions.kept_for(checked.tree))

    def _prepared(self, checked: Checked, kernel: str | None) -> Prepared:
        mapped = self.functions.used_by(checked.tree)
        for each in (checked.tree, *(relation.query for relation in mapped)):
            self.functions.mark(each)
        snapshot = self._tables([checked.tree, *(relation.query for relation in mapped)], mapped)
        return self.at(snapshot)._planned(checked, snapshot, mapped, kernel)

    def _planned(self, checked: Checked, snapshot: tuple[Table, ...], mapped: Sequence[Mapped], kernel: str | None) -> Prepared:
        text = checked.text

        def as_text(reason: str) -> Prepared:
            if kernel == "native":
                raise Unsupported(f"the native kernel cannot run this query: {reason}")
            return Prepared(text, snapshot, None, "spark", reason)

        try:
            query = self._bound(checked, {table.name for table in snapshot}, mapped)
            refusal = None if kernel == "spark" else self.native.refusal(query.plan)
        except RecursionError:
            return as_text("the query is too deep for nearly's planner")
        except Unsupported as reason:
            self._refuse_unknown_functions(checked.tree)
            return as_text(str(reason))
        if refusal is not None:
            return as_text(refusal)
        if kernel == "spark":
            return as_text("asked for") if mapped else Prepared(text, snapshot, query, "spark", "asked for")
        return Prepared(text, snapshot, query, "native", "every function and type is in the verified set")

    def at(self, tables: Iterable[Table]) -> Engine:
        """The same engine over a catalog in which these tables stay as they are."""
        pinned = copy.copy(self)
        pinned.catalog = Snapshot(self.catalog, tables)
        pinned.native = replace(self.native, catalog=pinned.catalog, find_table=pinned.schema)
        pinned.spark = replace(self.spark, catalog=pinned.catalog)
        return pinned

    def is_current(self, prepared: Prepared) -> bool:
        """Whether every table of a prepared query still is what it was planned for; one that was dropped is an error."""
        return all(self.catalog.table(table.name) is table for table in prepared.snapshot)

    def columns(self, prepared: Prepared) -> tuple[tuple[str, DataType], ...]:
        """Names and types of a prepared query's columns."""
        if prepared.query is None:
            return tuple(self.at(prepared.snapshot).spark.schema(prepared.text, set(prepared.tables)))
        return tuple(zip(prepared.query.names, prepared.query.types, strict=True))

    @deep_recursion()
    def run(self, prepared: Prepared) -> Result:
        """Run a prepared query to its end."""
        started = time.perf_counter()
        self.verify(prepared)
        checked = time.perf_counter()
        try:
            table, source = self.at(prepared.snapshot)._run(prepared)
        except Exception as trouble:
            if self.life.is_over:  # whatever it met, that was why
                raise EngineError(CLOSED) from trouble
            raise
        ended = time.perf_counter()
        if source == "native":
            self.native.durations.record(self.question(prepared), ended - checked)
        return Result(table, source, {"verify": checked - started, "run": ended - checked})

    def question(self, prepared: Prepared) -> str:
        """The text of a query and the content of its tables: what its answer depends on."""
        versions = sorted(table.version for table in prepared.snapshot)
        return f"{prepared.text} {versions}"

    def verify(self, prepared: Prepared) -> None:
        """Raise an `EngineError` when a file of the query's tables is not what it was."""
        self.life.refuse_over()
        for table in prepared.snapshot:
            for layout in table.layouts:
                layout.verify()

    @deep_recursion()
    def explain(self, prepared: Prepared) -> str:
        """What is computed where, by which kernel, and why."""
        lines = [f"kernel: {prepared.kernel}", f"why: {prepared.reason}"]
        if prepared.query is not None and prepared.kernel == "native":
            pinned = self.at(prepared.snapshot)
            lines.append(explain_stages(pinned.native.stages(prepared.query.plan), self.cluster.sites, pinned.schema))
        elif prepared.query is not None:
            lines += ["plan:", explain(prepared.query.plan)]
        return "\n".join(lines)

    def _run(self, prepared: Prepared) -> tuple[pa.Table, str]:
        query = prepared.query
        if query is None:
            return self.spark.run_text(prepared.text, set(prepared.tables)), "spark"
        if prepared.kernel == "spark":
            return finished(self.spark.run(query.plan), query), "spark"
        rows = self.native_rows(query.plan)
        if rows is not None:
            return finished(rows, query), "native"
        return self.spark.run_text(prepared.text, set(prepared.tables)), "spark"

    def native_rows(self, plan: Plan) -> pa.Table | None:
        """The plan's rows by the native kernel; None when it stopped on something that is for Spark to judge."""
        try:
            return self.native.run(plan)
        except NativeFailure as failure:
            self.life.refuse_over()
            if "IOException" in str(failure):
                raise EngineError(f"a table's file cannot be read: {failure}") from failure
            logger.info("the native kernel stopped (%s); Spark runs the query", failure)
            return None

    def _tables(self, trees: Sequence[exp.Expr], mapped: Sequence[Mapped]) -> tuple[Table, ...]:
        """The stored tables that queries name, each looked up once; each must exist."""
        known = {each.name for each in mapped}
        found: dict[str, Table] = {}
        for tree in trees:
            common = {cte.alias.lower() for cte in tree.find_all(exp.CTE)} | known
            for node in tree.find_all(exp.Table):
                if not isinstance(node.this, exp.Identifier):
                    continue
                if node.db:
                    raise UnknownName(f"table {node.sql(dialect='spark')} is not registered; use db.register(name, {node.sql()!r})")
                name = node.name.lower()
                if name not in found and (name not in common or name in self.catalog):
                    found[name] = self.catalog.table(node.name)
        return tuple(found.values())

    def _bound(self, checked: Checked, tables: set[str], mapped: Sequence[Mapped]) -> BoundQuery:
        if checked.doubt is not None:
            raise Unsupported(checked.doubt)
        query = bind(checked.tree, self.schema, mapped)
        if query.unnamed:
            query = self._named(query, checked.text, tables)
        return BoundQuery(rewrite(query.plan), query.names)

    def schema(self, name: str) -> TableSchema:
        table = self.catalog.table(name)
        columns = tuple(SchemaColumn(column.name, column.type, column.nullable) for column in table.columns)
        clustering = table.base.clustering
        ranges_of = clustering.columns[0] if clustering is not None and clustering.kind == RANGE else None
        hashed = tuple(
            HashedLayout(layout.name, layout.clustering.columns, layout.clustering.buckets)
            for layout in table.layouts
            if layout.clustering is not None and layout.clustering.buckets is not None
        )
        shuffled = next((layout.name for layout in table.layouts if layout.shuffled), None)
        return TableSchema(table.name, columns, table.key, table.rows, len(table.base.blocks), ranges_of, hashed, shuffled)

    def _refuse_unknown_functions(self, tree: exp.Expr) -> None:
        """A misspelt function is told at once where Spark, which may know more functions, would have to be started for it."""
        if self.cluster.is_up:
            return
        for node in tree.find_all(exp.Anonymous):
            if marked(node) is None and not functions.is_known(node.name) and isinstance(node.this, str):
                raise unknown("function", node.name.lower(), functions.known_names())

    def _named(self, query: BoundQuery, text: str, tables: set[str]) -> BoundQuery:
        """Names of expressions without alias are Spark's to choose; its types must be ours."""
        schema = self.spark.schema(text, tables)
        if tuple(type_ for _, type_ in schema) != query.types:
            raise Unsupported("Spark gives the columns other types than nearly does")
        return BoundQuery(query.plan, tuple(name for name, _ in schema))
