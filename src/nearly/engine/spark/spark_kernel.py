"""The spark kernel: Spark SQL itself, for what the native kernel does not do and as the judge of what a query means."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from nearly.engine import spark_names
from nearly.engine.native.function_adapters import function_failure
from nearly.engine.native.python_functions import Functions
from nearly.engine.native.running import Ending
from nearly.engine.spark.cluster import Cluster
from nearly.engine.spark.reading import SparkReader
from nearly.engine.spark.spark_functions import show_mapped
from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.layouts import Table
from nearly.errors import EngineError, SchemaError, Unsupported
from nearly.plan.binding.scope import FreshNames
from nearly.plan.nodes import Field, Input, Plan, Scan
from nearly.plan.reading import STORED
from nearly.plan.render import SPARK, render
from nearly.plan.syntax.parse import parse_query
from nearly.plan.types import DataType, from_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)


MOST_CHARACTERS = 600
"""Of what Spark says, for a message."""


@dataclass(frozen=True, slots=True)
class SparkKernel:
    """Runs plans, and whole query texts, by Spark SQL over the same files.

    A text must be one that `plan.syntax.parse.check_query` gave: Spark never sees what a user wrote, only what was checked.
    """

    cluster: Cluster
    catalog: Catalog
    reader: SparkReader
    functions: Functions
    ending: Ending = field(default_factory=Ending)
    """Of the query that it runs."""

    def run(self, plan: Plan) -> pa.Table:
        return self.run_text(render(plan, SPARK, self._source), set())

    def schema(self, text: str, tables: set[str], *, foreign: bool = False) -> list[tuple[str, DataType]]:
        """Names and types of a query's columns as Spark's analyser gives them."""
        try:
            fields = self._frame(text, tables, foreign).schema.fields
        except spark_names.troubles() as trouble:
            raise SchemaError(f"Spark refuses the query: {spark_message(trouble)}") from None
        return [(field.name, from_name(field.dataType.simpleString())) for field in fields]

    def _frame(self, text: str, tables: set[str], foreign: bool = False) -> DataFrame:
        """The analysed query; while it is analysed, the names of its tables mean the tables of this kernel's catalog.

        A `foreign` query is over tables of the session that was given, and is run there.
        """
        if foreign:
            with _without_trace():
                return self.cluster.given.sql(text)
        spark = self.cluster.spark
        with self.reader.lock, _without_trace():
            for name in sorted(tables):
                self._show(self.catalog.table(name))
            for mapped in self.functions.used_by(parse_query(text)) if tables else ():
                show_mapped(spark, mapped, self.functions.travelling_as(mapped.name))
            return spark.sql(text)

    def _show(self, table: Table) -> None:
        """Have a table by its own name, as users see it."""
        reading = table.schema.reading
        if reading is None:
            self.reader.view(table, table.name)
            return
        fields = tuple(Field(f"{STORED}_{place}", each.name, each.type) for place, each in enumerate(table.columns))
        sql = self._sql(reading.over(Scan(table.name, fields), FreshNames("shown")))
        self.reader.shown(table, lambda spark: spark.sql(sql).toDF(*reading.names))

    def _sql(self, plan: Plan) -> str:
        return render(plan, SPARK, self._source)

    def _source(self, leaf: Scan | Input) -> exp.Expr:
        if isinstance(leaf, Input):
            raise Unsupported("the spark kernel runs whole plans, not stages")
        view = self.reader.view(self.catalog.table(leaf.table))
        return exp.Table(this=exp.to_identifier(view, quoted=True))

    def run_text(self, sql: str, tables: set[str], *, foreign: bool = False) -> pa.Table:
        """The query that was checked, over the tables that it names."""
        logger.debug("spark query: %s", sql)
        try:
            with _without_trace(), self.cluster.job(self.ending):
                return self._frame(sql, tables, foreign).toArrow()
        except spark_names.AnalysisException as trouble:
            raise SchemaError(f"Spark refuses the query: {spark_message(trouble)}") from None
        except spark_names.troubles() as trouble:
            raise function_failure(str(trouble)) or EngineError(f"Spark failed: {spark_message(trouble)}") from None


_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def _without_trace() -> Iterator[None]:
    """PySpark logs Java's stack trace of every refused query to standard error; here it becomes an error message instead."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        spark_names.PySparkLogger.getLogger(name).addFilter(_unless_quiet)  # the same filter is added only once
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def _unless_quiet(record: logging.LogRecord) -> bool:
    return not _quiet.get()


def spark_message(trouble: Exception) -> str:
    """Spark's error condition and first sentence, without the plan and the stack trace behind it."""
    text = str(trouble)
    causes = [line.removeprefix("Caused by: ") for line in text.splitlines() if line.startswith("Caused by: ")]
    if isinstance(trouble, spark_names.Py4JError) and causes:
        text = causes[-1]
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    first = lines[0] if lines else type(trouble).__name__
    return first.split("; line", maxsplit=1)[0][:MOST_CHARACTERS].strip()
