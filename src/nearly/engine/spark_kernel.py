"""The spark kernel: Spark SQL itself, for what the native kernel does not do and as the judge of what a query means."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from sqlglot import exp

from nearly.engine.catalog import Catalog
from nearly.engine.cluster import Cluster
from nearly.engine.function_adapters import function_failure
from nearly.engine.python_functions import Functions
from nearly.engine.reading import SparkReader
from nearly.engine.spark_functions import show_mapped
from nearly.errors import EngineError, SchemaError, Unsupported
from nearly.plan.nodes import Input, Plan, Scan
from nearly.plan.parse import parse_query
from nearly.plan.render import SPARK, render
from nearly.plan.types import DataType, from_name

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SparkKernel:
    """Runs plans, and whole query texts, by Spark SQL over the same files."""

    cluster: Cluster
    catalog: Catalog
    reader: SparkReader
    functions: Functions
    name: str = "spark"

    def refusal(self, plan: Plan) -> str | None:
        try:
            self._sql(plan)
        except Unsupported as reason:
            return str(reason)
        return None

    def run(self, plan: Plan) -> pa.Table:
        return self._collect(self._sql(plan))

    def run_text(self, text: str, tables: set[str]) -> pa.Table:
        """The query as the user wrote it."""
        self._show(text, tables)
        return self._collect(text)

    def schema(self, text: str, tables: set[str]) -> list[tuple[str, DataType]]:
        """Names and types of a query's columns as Spark's analyser gives them."""
        self._show(text, tables)
        try:
            fields = self.cluster.spark.sql(text).schema.fields
        except (PySparkException, Py4JError) as trouble:
            raise SchemaError(f"Spark refuses the query: {_message(trouble)}") from trouble
        return [(field.name, from_name(field.dataType.simpleString())) for field in fields]

    def _show(self, text: str, tables: set[str]) -> None:
        for name in sorted(tables):
            table = self.catalog.table(name)
            self.reader.view(table, table.name)
        for mapped in self.functions.used_by(parse_query(text)):
            show_mapped(self.cluster.spark, mapped, self.functions.travelling_as(mapped.name))

    def _sql(self, plan: Plan) -> str:
        return render(plan, SPARK, self._source)

    def _source(self, leaf: Scan | Input) -> exp.Expr:
        if isinstance(leaf, Input):
            raise Unsupported("the spark kernel runs whole plans, not stages")
        view = self.reader.view(self.catalog.table(leaf.table))
        return exp.Table(this=exp.to_identifier(view, quoted=True))

    def _collect(self, sql: str) -> pa.Table:
        logger.debug("spark query: %s", sql)
        try:
            with self.cluster.job() as spark:
                return spark.sql(sql).toArrow()
        except AnalysisException as trouble:
            raise SchemaError(f"Spark refuses the query: {_message(trouble)}") from trouble
        except (PySparkException, Py4JError) as trouble:
            raise function_failure(str(trouble)) or EngineError(f"Spark failed: {_message(trouble)}") from trouble


def _message(trouble: Exception) -> str:
    """Spark's own sentence, without the plan and the stack trace behind it."""
    text = str(trouble)
    causes = [line.removeprefix("Caused by: ") for line in text.splitlines() if line.startswith("Caused by: ")]
    if isinstance(trouble, Py4JError) and causes:
        return causes[-1].strip()
    return text.split("\n\nJVM stacktrace", maxsplit=1)[0].split("; line", maxsplit=1)[0].strip()
