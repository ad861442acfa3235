"""The rows of plans some at a time, for those who write them down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import pyarrow as pa

from nearly.engine.engine import Engine
from nearly.engine.native.failures import explained, read_in_batches
from nearly.engine.native.running import Running
from nearly.engine.storage.layouts import Table
from nearly.plan.nodes import Plan

BATCH_ROWS = 131_072


class BrokenOff(Exception):
    """Somebody interrupted what ran in the background."""


def plan_batches(engine: Engine, plan: Plan, tables: Sequence[Table], running: Running | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a rewritten plan over some tables, some at a time: by the driver where it has the one executor's cores.

    A `NativeFailure`, at any batch, is for Spark to judge. Interrupting `running` ends it with `BrokenOff`.
    """
    pinned = engine.at(tables)
    if engine.cluster.sites.executors > 1:
        yield from pinned.native.run(plan).to_batches(BATCH_ROWS)
        return
    sql, statics = pinned.native.whole(plan)
    local = engine.native.local
    local.configure(engine.native.settings)
    try:
        with local.loaded(statics, running), local.cursor(running) as cursor:
            yield from read_in_batches(cursor.sql(sql), BATCH_ROWS)
    except duckdb.Error as trouble:
        if running is not None and isinstance(trouble, duckdb.InterruptException):
            raise BrokenOff from trouble
        raise explained(trouble) from trouble
