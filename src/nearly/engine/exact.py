"""Exact answers: a query is parsed, bound, rewritten, given to a kernel, and when no kernel of ours takes it, to Spark as it is."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from nearly.engine.catalog import Catalog
from nearly.engine.cluster import Cluster
from nearly.engine.clustering import RANGE
from nearly.engine.explain_stages import explain_stages
from nearly.engine.kernel import finished
from nearly.engine.life import Life
from nearly.engine.native_kernel import NativeFailure, NativeKernel
from nearly.engine.python_functions import Functions
from nearly.engine.reading import NativeReader, SparkReader
from nearly.engine.samples import Samples
from nearly.engine.spark_functions import register_scalar
from nearly.engine.spark_kernel import SparkKernel
from nearly.engine.worker import Native
from nearly.errors import CLOSED, EngineError, NearlyError, SchemaError, UnknownName, Unsupported, unknown
from nearly.plan.bind_query import bind
from nearly.plan.depth import deep_recursion
from nearly.plan.explain import explain
from nearly.plan.nodes import Query
from nearly.plan.parse import parse_query
from nearly.plan.schema import HashedLayout, SchemaColumn, TableSchema
from nearly.plan.types import DataType
from nearly.plan.user_functions import Mapped
from nearly.rewrite.passes import rewrite

logger = logging.getLogger(__name__)

KERNELS = ("native", "spark")
DEFAULT_MEMORY_MB = 4096


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query that is ready to run: `query` is None when Spark runs the text as it is, and `reason` says why.

    The Python functions it calls live as long as it does.
    """

    text: str
    tables: frozenset[str]
    query: Query | None
    kernel: str
    reason: str
    functions: tuple[object, ...] = field(default=(), compare=False, repr=False)


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
        tree = parse_query(text)
        return replace(self._prepared(tree, text, kernel), functions=self.functions.kept_for(tree))

    def _prepared(self, tree: exp.Expr, text: str, kernel: str | None) -> Prepared:
        mapped = self.functions.used_by(tree)
        for each in (tree, *(relation.query for relation in mapped)):
            self.functions.mark(each)
        tables = frozenset().union(*(self._tables(each, mapped) for each in (tree, *(relation.query for relation in mapped))))
        try:
            query = self._bound(tree, text, tables, mapped)
            refusal = None if kernel == "spark" else self.native.refusal(query.plan)
        except RecursionError:
            return self._as_text(text, tables, "the query is too deep for nearly's planner", kernel)
        except Unsupported as reason:
            return self._as_text(text, tables, str(reason), kernel)
        except (SchemaError, UnknownName) as trouble:
            return self._second_opinion(text, tables, trouble, kernel)
        if refusal is not None:
            return self._as_text(text, tables, refusal, kernel)
        if kernel == "spark" and mapped:
            return self._as_text(text, tables, "asked for", kernel)
        if kernel == "spark":
            return Prepared(text, tables, query, "spark", "asked for")
        return Prepared(text, tables, query, "native", "every function and type is in the verified set")

    def columns(self, prepared: Prepared) -> tuple[tuple[str, DataType], ...]:
        """Names and types of a prepared query's columns."""
        if prepared.query is None:
            return tuple(self.spark.schema(prepared.text, set(prepared.tables)))
        return tuple(zip(prepared.query.names, prepared.query.types, strict=True))

    @deep_recursion()
    def run(self, prepared: Prepared) -> Result:
        """Run a prepared query to its end."""
        started = time.perf_counter()
        self.verify(prepared)
        checked = time.perf_counter()
        try:
            table, source = self._run(prepared)
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
        versions = sorted(self.catalog.table(name).version for name in prepared.tables)
        return f"{prepared.text} {versions}"

    def verify(self, prepared: Prepared) -> None:
        """Raise an `EngineError` when a file of the query's tables is not what it was."""
        self.life.refuse_over()
        for name in prepared.tables:
            for layout in self.catalog.table(name).layouts:
                layout.verify()

    @deep_recursion()
    def explain(self, prepared: Prepared) -> str:
        """What is computed where, by which kernel, and why."""
        lines = [f"kernel: {prepared.kernel}", f"why: {prepared.reason}"]
        if prepared.query is not None and prepared.kernel == "native":
            lines.append(explain_stages(self.native.stages(prepared.query.plan), self.cluster.sites, self.schema))
        elif prepared.query is not None:
            lines += ["plan:", explain(prepared.query.plan)]
        return "\n".join(lines)

    def _run(self, prepared: Prepared) -> tuple[pa.Table, str]:
        query = prepared.query
        if query is None:
            return self.spark.run_text(prepared.text, set(prepared.tables)), "spark"
        if prepared.kernel == "spark":
            return finished(self.spark.run(query.plan), query), "spark"
        try:
            return finished(self.native.run(query.plan), query), "native"
        except NativeFailure as failure:
            self.life.refuse_over()
            if "IOException" in str(failure):
                raise EngineError(f"a table's file cannot be read: {failure}") from failure
            logger.info("the native kernel stopped (%s); Spark runs the query", failure)
            return self.spark.run_text(prepared.text, set(prepared.tables)), "spark"

    def _tables(self, tree: exp.Expr, mapped: Sequence[Mapped]) -> frozenset[str]:
        """The stored tables a query names; each must exist."""
        common = {cte.alias.lower() for cte in tree.find_all(exp.CTE)} | {each.name for each in mapped}
        named = [node for node in tree.find_all(exp.Table) if isinstance(node.this, exp.Identifier)]
        for node in named:
            if node.db:
                raise UnknownName(f"table {node.sql(dialect='spark')} is not registered; use db.register(name, {node.sql()!r})")
        wanted = {node.name for node in named if node.name.lower() not in common or node.name in self.catalog}
        return frozenset(self.catalog.table(name).name for name in wanted)

    def _bound(self, tree: exp.Expr, text: str, tables: frozenset[str], mapped: Sequence[Mapped]) -> Query:
        query = bind(tree, self.schema, mapped)
        if query.unnamed:
            query = self._named(query, text, tables)
        return Query(rewrite(query.plan), query.names)

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

    def _named(self, query: Query, text: str, tables: frozenset[str]) -> Query:
        """Names of expressions without alias are Spark's to choose; its types must be ours."""
        schema = self.spark.schema(text, set(tables))
        if tuple(type_ for _, type_ in schema) != query.types:
            raise Unsupported("Spark gives the columns other types than nearly does")
        return Query(query.plan, tuple(name for name, _ in schema))

    def _as_text(self, text: str, tables: frozenset[str], reason: str, kernel: str | None) -> Prepared:
        if kernel == "native":
            raise Unsupported(f"the native kernel cannot run this query: {reason}")
        return Prepared(text, tables, None, "spark", reason)

    def _second_opinion(self, text: str, tables: frozenset[str], trouble: NearlyError, kernel: str | None) -> Prepared:
        """A query that seems wrong here may be right for Spark, which knows more than this planner."""
        try:
            self.spark.schema(text, set(tables))
        except SchemaError:
            raise trouble from None
        return self._as_text(text, tables, str(trouble), kernel)
