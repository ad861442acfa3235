"""How many groups columns make, guessed from the first rows: enough to know that a flag column makes few."""

from __future__ import annotations

from nearly.engine.native.reading import NativeReader
from nearly.engine.storage.catalog import Catalog
from nearly.plan.expressions import Column
from nearly.plan.nodes import Plan, Scan
from nearly.rewrite.sites.distribute import Groups

SAMPLE_ROWS = 50_000
SAMPLE_SHARE = 0.01
"""A column with more distinct values than this share of the sampled rows may well have many more in the table."""


def group_counts(catalog: Catalog, reader: NativeReader) -> Groups:
    """The number of groups that columns of a plan make, None where it may be large."""

    def distinct(plan: Plan, column: Column) -> float | None:
        scans = [node for node in plan.walk() if isinstance(node, Scan) and column.name in node.names]
        if not scans:
            return None
        source = next(field.source for field in scans[0].fields if field.name == column.name)
        rows, found = reader.distinct(catalog.table(scans[0].table), source, SAMPLE_ROWS)
        return float(found) if found <= max(10, SAMPLE_SHARE * rows) else None

    def count(plan: Plan, columns: tuple[Column, ...]) -> float | None:
        product = 1.0 if columns else None
        for column in columns:
            found = None if product is None else distinct(plan, column)
            product = None if product is None or found is None else product * found
        return product

    return count
