"""Queries bound to two versions of their tables at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nearly.engine.engine import Engine
from nearly.engine.storage.catalog import Snapshot
from nearly.engine.storage.layouts import Table
from nearly.plan.nodes import BoundQuery


def bound_to_both(engine: Engine, text: str, before: Mapping[str, Table], after: Mapping[str, Table]) -> BoundQuery:
    """A query whose plan is right over its tables as they were and as they are: a column may be null if it may in either."""
    old = {name.lower(): table for name, table in before.items()}
    tables = [replace(_loosened(table, old.get(name.lower(), table)), name=name) for name, table in after.items()]
    return engine.planner.over(Snapshot(engine.catalog, tables)).bound(text)


def _loosened(now: Table, was: Table) -> Table:
    known = {column.name: column.nullable for column in was.columns}
    return replace(now, columns=tuple(replace(each, nullable=each.nullable or known.get(each.name, True)) for each in now.columns))
