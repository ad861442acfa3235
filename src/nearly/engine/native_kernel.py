"""The native kernel: DuckDB inside Spark tasks.

With one executor the whole plan is one fragment in one fat task that uses all its cores. With several, `rewrite.distribute` says where
rows move, and every piece between two moves is a stage: the same fragment on every site, over the site's share of the data.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import PySparkException
from sqlglot import exp

from nearly.engine.catalog import Catalog
from nearly.engine.cluster import Cluster
from nearly.engine.reading import NativeReader
from nearly.engine.worker import ERROR, PAYLOAD_SCHEMA, Fragment, Output, Settings, StageTask, decode
from nearly.errors import EngineError, Unsupported
from nearly.plan.nodes import Input, Plan, Scan
from nearly.plan.render import NATIVE, render
from nearly.plan.types import is_simple

logger = logging.getLogger(__name__)

RESULT = "result"


class NativeFailure(Exception):
    """The native engine stopped with an error; whether it is the query's fault is for Spark to say."""


@dataclass(frozen=True, slots=True)
class NativeKernel:
    """Runs plans by DuckDB in Spark tasks."""

    cluster: Cluster
    catalog: Catalog
    reader: NativeReader
    memory_mb: int
    name: str = "native"

    def refusal(self, plan: Plan) -> str | None:
        if not self.cluster.ansi:
            return "spark.sql.ansi.enabled is false, and the native kernel computes by ANSI rules"
        for node in plan.walk():
            for column in node.columns:
                if not is_simple(column.type):
                    return f"column {column.name.rsplit('_', 1)[0]!r} has type {column.type}"
        try:
            self._sql(plan)
        except Unsupported as reason:
            return str(reason)
        return None

    def run(self, plan: Plan) -> pa.Table:
        settings = Settings(self.cluster.sites.cores, self.memory_mb, self.cluster.time_zone)
        sql = self._sql(plan)
        logger.debug("native fragment: %s", sql)
        fragment = Fragment(sql, ((),), Output(RESULT, 1), settings)
        frame = self.cluster.spark.range(0, 1, 1, 1).mapInArrow(StageTask(fragment, False), PAYLOAD_SCHEMA)
        try:
            return received(frame.toArrow())
        except PySparkException as trouble:
            raise EngineError(f"the Spark job failed: {trouble}") from trouble

    def _sql(self, plan: Plan) -> str:
        return render(plan, NATIVE, self._source)

    def _source(self, leaf: Scan | Input) -> exp.Expression:
        if isinstance(leaf, Input):
            return exp.Table(this=exp.to_identifier(leaf.source, quoted=True))
        table = self.catalog.table(leaf.table)
        layout = table.base
        query = self.reader.query(table, layout, [field.source for field in leaf.fields], layout.manifest.paths)
        return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("stored")))


def received(rows: pa.Table) -> pa.Table:
    """The Arrow tables that tasks sent to the driver, as one."""
    sources, payloads = rows["source"].to_pylist(), rows["payload"]
    for source, payload in zip(sources, payloads, strict=True):
        if source == ERROR:
            raise NativeFailure(payload.as_py().decode())
    return pa.concat_tables(decode(payload.as_buffer()) for payload in payloads)
