"""What is expected of a view before it is made: its rows, its bytes, and the seconds of plans that make or read it.

Rows of groups are at most the product of how many values their columns have, which the first rows of the tables tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nearly.engine.engine import Engine
from nearly.engine.native.group_counts import SAMPLE_ROWS
from nearly.engine.storage.layouts import Table
from nearly.plan.expressions import columns_of
from nearly.plan.nodes import GroupBy, Plan, Scan
from nearly.plan.schema import FindTable
from nearly.plan.types import BOOLEAN, STRING, Decimal
from nearly.rewrite.logical.sizes import size

WIDTHS = {STRING: 12.0, BOOLEAN: 0.3}
"""Bytes that a value takes in a file, about; of others 5, of decimals 6."""
FIXED_BYTES, COLUMN_BYTES = 200.0, 280.0
"""Of a file, and of a column in it, however few rows there are."""
MANY = 0.5
"""A column whose values are so often new among the first rows may have new ones in all rows."""


@dataclass(slots=True)
class ViewEstimates:
    """Estimates for the tables of one engine; what was counted once is remembered for the table's content."""

    engine: Engine
    _values: dict[tuple[str, str], float] = field(default_factory=dict)

    def rows(self, plan: Plan, tables: Iterable[Table]) -> float:
        """About how many rows a stored plan has."""
        known = {table.name.lower(): table for table in tables}
        guess = size(plan, finding(known.values())).rows
        if not isinstance(plan, GroupBy):
            return guess
        below = size(plan.child, finding(known.values())).rows
        product = 1.0
        for key in plan.keys:
            for name in columns_of(key.expression):
                product *= self._of_column(plan, name, known)
        return max(1.0, min(product, below))

    def bytes(self, plan: Plan, rows: float) -> float:
        """About how many bytes so many rows of a plan take."""
        width = sum(WIDTHS.get(each.type, 6.0 if isinstance(each.type, Decimal) else 5.0) for each in plan.columns)
        return FIXED_BYTES + COLUMN_BYTES * len(plan.columns) + rows * width

    def seconds(self, plan: Plan, tables: Iterable[Table]) -> float:
        """About how long a plan takes."""
        return self.engine.costs.seconds(plan, finding(tables), self.engine.cluster.sites.cores)

    def writing(self, plan: Plan, rows: float) -> float:
        return self.engine.costs.writing(rows, len(plan.columns))

    def _of_column(self, plan: Plan, name: str, tables: Mapping[str, Table]) -> float:
        for scan in plan.walk():
            if isinstance(scan, Scan):
                for each in scan.fields:
                    if each.name == name:
                        return self._distinct(tables[scan.table.lower()], each.source)
        return 1.0

    def _distinct(self, table: Table, column: str) -> float:
        key = (table.content, column)
        if key not in self._values:
            rows, found = self.engine.native.reader.distinct(table, column, SAMPLE_ROWS)
            grows = rows and found > MANY * rows
            self._values[key] = max(1.0, float(found) * (table.rows / rows if grows else 1.0))
        return self._values[key]


def finding(tables: Iterable[Table]) -> FindTable:
    """The schemas of some tables, by name."""
    known = {each.name.lower(): each.schema for each in tables}
    return lambda name: known[name.lower()]
