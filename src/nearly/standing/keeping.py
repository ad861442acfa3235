"""Keeping what the next delta needs, within the budget: states are made from what is there, measured, and dropped."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress

from nearly.engine.deltas.several import Moving
from nearly.engine.native.failures import NativeFailure
from nearly.engine.storage.layouts import Table
from nearly.plan.expressions import Column
from nearly.plan.nodes import Filter, GroupBy, Join, Plan, Project
from nearly.plan.properties import equated, keys
from nearly.rewrite.delta.with_partials import order_of, outermost, over_stored
from nearly.standing.actions import DISK, MEMORY, Kept
from nearly.standing.arrivals import Prediction
from nearly.standing.operators import JOIN, SCAN, tables_of
from nearly.standing.planner import Planned
from nearly.standing.upkeep import Upkeep


def measure(upkeep: Upkeep, found: Moving, tables: Mapping[str, Table], limit: float) -> None:
    """Count the rows of filters and joins, smaller parts first, as long as that takes no more than computing the answer."""
    until = time.perf_counter() + limit
    parts = [each for each in upkeep.root(tables, {}).walk() if each.kind in (SCAN, JOIN)]
    for plan in outermost([each.plan for each in parts if isinstance(_top(each.plan), Filter | Join)]):
        if plan in upkeep.shares or time.perf_counter() > until:
            continue
        with suppress(NativeFailure):
            ((rows,),) = found.execute(f"SELECT count(*) FROM ({found.sql(plan)})")
            upkeep.shares[plan] = rows / max(1, sum(tables[name].rows for name in tables_of(plan)))


def _top(plan: Plan) -> Plan:
    """What decides how many rows a plan has."""
    while isinstance(plan, Project):
        plan = plan.child
    return plan


def keep_within(upkeep: Upkeep, found: Moving, prediction: Prediction | None, made: Mapping[Plan, Plan] | None = None) -> None:
    """Keep what the next delta needs, and nothing else; by measured bytes within the budget.

    Without a prediction, or where nothing is expected to come, what was planned before stays.
    """
    began = time.perf_counter()
    wanted, said = upkeep.planned, prediction or upkeep.planned_for
    if prediction or wanted is None:
        wanted = upkeep.choose(upkeep.tables, said)
    for attempt in range(4):
        _build(upkeep, found, wanted, made or {})
        for plan, state in upkeep.held.items():
            upkeep.widths[plan] = state.bytes / state.rows if state.rows else 0.0
        if upkeep.bytes() <= upkeep.budget.memory and upkeep.bytes(DISK) <= upkeep.budget.disk:
            break
        if attempt == 2:
            wanted = _cut(upkeep, wanted)
        elif attempt < 2:
            wanted = upkeep.choose(upkeep.tables, said)
    upkeep.planned = wanted
    upkeep.made_seconds = time.perf_counter() - began


def _cut(upkeep: Upkeep, wanted: Planned) -> Planned:
    """What is left of a choice whose measured bytes do not fit: the smallest first, as long as they do."""
    left, spent = [], {MEMORY: 0.0, DISK: 0.0}
    limits = {MEMORY: upkeep.budget.memory, DISK: upkeep.budget.disk}
    for kept in sorted(wanted.keeps, key=lambda each: _bytes(upkeep, each)):
        size = _bytes(upkeep, kept)
        if spent[kept.place] + size <= limits[kept.place]:
            spent[kept.place] += size
            left.append(kept)
    return Planned(tuple(left), wanted.seconds, wanted.chosen)


def _bytes(upkeep: Upkeep, kept: Kept) -> float:
    return float(upkeep.held[kept.plan].bytes) if kept.plan in upkeep.held else kept.bytes


def _build(upkeep: Upkeep, found: Moving, wanted: Planned, made: Mapping[Plan, Plan]) -> None:
    """Make what is wanted from what is there, then drop what is not wanted.

    Rows whose order would be lost are not kept, nor those that need not be the same when they are computed again.
    """
    store, places = upkeep.store, {kept.plan: kept for kept in wanted.keeps if _can_be_kept(upkeep, kept.plan)}
    for plan in outermost(list(places)):
        kept, state = places[plan], upkeep.held.get(plan)
        if state is not None and state.place == kept.place:
            continue
        fresh = store.shared(plan, upkeep.tables, kept.place)
        if fresh is None:
            source = over_stored(plan, {**made, **upkeep.stored()})
            fresh = store.make(found, plan, source, kept.place, [*_order(plan, kept)], key_of(upkeep, plan))
        store.note(fresh, plan, upkeep.tables, upkeep.user)
        upkeep.replace(found, plan, fresh)
    for plan in [plan for plan in upkeep.held if plan not in places]:
        upkeep.replace(found, plan, None)


def _can_be_kept(upkeep: Upkeep, plan: Plan) -> bool:
    return order_of(plan) is not None and upkeep.may_keep(plan, upkeep.tables)


def _order(plan: Plan, kept: Kept) -> Iterator[Column]:
    """The columns by which kept rows are looked for: those of the join, or of the groups."""
    if isinstance(kept.join, Join):
        for pair in equated(kept.join, ("=", "<=>")):
            yield from (column for column in pair if column.name in plan.names)
    elif isinstance(plan, GroupBy):
        yield from (key.column for key in plan.keys)


def key_of(upkeep: Upkeep, plan: Plan) -> list[str] | None:
    """Columns that tell the rows of a plan apart, where some do."""
    found = sorted(keys(plan, lambda name: upkeep.tables[name.lower()].schema), key=lambda key: (len(key), sorted(key)))
    return sorted(found[0]) if found else None
