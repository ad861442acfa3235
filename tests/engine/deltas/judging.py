"""Deltas against recomputation: the rows as they were, with the change, must be the rows as they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from nearly.engine.deltas.binding import bound_to_both
from nearly.engine.deltas.net_change import NetChange, net_change
from nearly.engine.engine import Engine
from nearly.engine.storage.layouts import Table
from nearly.plan.depth import deep_recursion
from nearly.plan.nodes import Plan

Row = tuple[Any, ...]
Tables = Mapping[str, Table]
DIGITS = 9
"""Doubles that are sums differ in the last digits with the order of addition."""


def bag(table: pa.Table) -> Counter[Row]:
    return (
        Counter(zip(*(map(_named, column.to_pylist()) for column in table.columns), strict=True))
        if table.num_columns
        else Counter()
    )


def _named(value: Any) -> Any:
    """NaN equals itself here, and 0.0 equals -0.0."""
    if not isinstance(value, float):
        return value
    return "nan" if math.isnan(value) else value + 0.0 if value == 0 or math.isinf(value) else float(f"{value:.{DIGITS}e}")


def signed(change: pa.Table) -> Counter[Row]:
    """The rows of a change with the sums of their weights, without those that cancel out."""
    found: Counter[Row] = Counter()
    for row, count in bag(change).items():
        found[row[:-1]] += row[-1] * count
    return Counter({row: count for row, count in found.items() if count})


def rows_of(engine: Engine, plan: Plan, tables: Tables) -> pa.Table:
    """The rows of a plan over some versions of its tables, computed by themselves."""
    with deep_recursion():
        return engine.at([replace(table, name=name) for name, table in tables.items()]).native.run_here(plan)


def difference(old: pa.Table, new: pa.Table) -> Counter[Row]:
    found = Counter(bag(new))
    found.subtract(bag(old))
    return Counter({row: count for row, count in found.items() if count})


def judged(engine: Engine, text: str, before: Tables, after: Tables) -> NetChange:
    """The change of a query's rows, which is what recomputation says."""
    plan = bound_to_both(engine, text, before, after).plan
    expected = difference(rows_of(engine, plan, before), rows_of(engine, plan, after))
    found = net_change(engine, plan, before, after)
    assert signed(found.rows) == expected, text
    return found
