"""Plans that a subsystem makes itself, run like queries: by the native kernel, or by Spark where that cannot."""

from __future__ import annotations

import pyarrow as pa

from nearly.engine.engine import Engine
from nearly.plan.nodes import Plan, Scan
from nearly.rewrite.passes import rewrite


def run_plan(engine: Engine, plan: Plan) -> pa.Table:
    """The plan's rows, under its unique column names; every table it reads is verified first."""
    tables = [engine.catalog.table(name) for name in sorted({node.table for node in plan.walk() if isinstance(node, Scan)})]
    pinned, ready = engine.at(tables), rewrite(plan)
    with engine.reading(tables):
        rows = pinned.native_rows(ready) if pinned.native.refusal(ready) is None else None
        return pinned.spark.run(ready) if rows is None else rows
