"""Plans that a subsystem makes itself, run like queries: by the native kernel, or by Spark where that cannot."""

from __future__ import annotations

import pyarrow as pa

from nearly.engine.exact import Engine
from nearly.engine.native_kernel import NativeFailure
from nearly.plan.nodes import Plan, Scan
from nearly.rewrite.passes import rewrite


def run_plan(engine: Engine, plan: Plan) -> pa.Table:
    """The plan's rows, under its unique column names; every table it reads is verified first."""
    for name in sorted({node.table for node in plan.walk() if isinstance(node, Scan)}):
        for layout in engine.catalog.table(name).layouts:
            layout.verify()
    ready = rewrite(plan)
    if engine.native.refusal(ready) is None:
        try:
            return engine.native.run(ready)
        except NativeFailure:
            return engine.spark.run(ready)
    return engine.spark.run(ready)
