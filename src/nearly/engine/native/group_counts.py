"""How many groups columns make, guessed from the first rows: enough to know that a flag column makes few."""

from __future__ import annotations

from dataclasses import dataclass

from nearly.engine.native.reading import NativeReader
from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.layouts import Table
from nearly.plan.expressions import Column
from nearly.plan.nodes import Plan, Scan

SAMPLE_ROWS = 50_000
SAMPLE_SHARE = 0.01
"""A column with more distinct values than this share of the sampled rows may well have many more in the table."""


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """Callable: the number of groups that columns of a plan make, None where it may be large."""

    catalog: Catalog
    reader: NativeReader

    def __call__(self, plan: Plan, columns: tuple[Column, ...]) -> float | None:
        if not columns:
            return None
        product = 1.0
        for column in columns:
            origin = _origin(plan, column.name)
            count = None if origin is None else self._distinct(self.catalog.table(origin[0]), origin[1])
            if count is None:
                return None
            product *= count
        return product

    def _distinct(self, table: Table, column: str) -> float | None:
        rows, distinct = self.reader.distinct(table, column, SAMPLE_ROWS)
        return float(distinct) if distinct <= max(10, SAMPLE_SHARE * rows) else None


def _origin(plan: Plan, name: str) -> tuple[str, str] | None:
    """The stored column that a column of the plan is."""
    for node in plan.walk():
        if isinstance(node, Scan):
            for field in node.fields:
                if field.name == name:
                    return node.table, field.source
    return None
