"""Stages that read large tables, on several sites: run by the native kernel like any query.

What earlier stages left is written to a file beside the tables, and is a small table to the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nearly.engine.jobs.native_kernel import STATIC_ROWS, NativeKernel
from nearly.engine.storage.catalog import Snapshot
from nearly.engine.storage.layouts import Table
from nearly.engine.storage.registration import describe_parquet
from nearly.plan.nodes import Field, Input, Plan, Scan

Rows = Callable[[str], pa.Table]
"""The rows that were kept under a name."""


@dataclass(slots=True)
class DeltaSites:
    """Runs plans over stored tables and kept rows on all sites; `directory` is one that every site sees."""

    kernel: NativeKernel
    tables: tuple[Table, ...]
    directory: Path
    _tables: dict[str, Table] = field(default_factory=dict)

    def takes(self, plan: Plan) -> bool:
        """Whether a stage is worth a job of its own."""
        scans = (node for node in plan.walk() if isinstance(node, Scan))
        return any(self.kernel.catalog.table(scan.table).rows > STATIC_ROWS for scan in scans)

    def run(self, plan: Plan, rows: Rows) -> pa.Table:
        """The rows of a plan with inputs."""

        def stored(node: Plan) -> Plan:
            if not isinstance(node, Input):
                return node
            self._store(node, rows)
            return Scan(node.source, tuple(Field(column.name, column.name, column.type) for column in node.given))

        ready = plan.transform(stored)
        snapshot = Snapshot(self.kernel.catalog, (*self.tables, *self._tables.values()))
        return replace(self.kernel, catalog=snapshot).run(ready)

    def _store(self, node: Input, rows: Rows) -> None:
        if node.source not in self._tables:
            path = self.directory / f"kept-{len(self._tables)}.parquet"
            pq.write_table(rows(node.source), path, store_decimal_as_integer=True)
            self._tables[node.source] = describe_parquet(node.source, [str(path)])
