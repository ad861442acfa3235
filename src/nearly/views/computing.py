"""The rows of a view and the single values inside its query, computed together: a grouping that several need is computed once.

Law: the rows are those of the view's plan over the tables given, in no order, and the values those of `kept_values.values_now`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearly.engine.changes.row_files import ManyRows, collected
from nearly.engine.engine import Engine
from nearly.engine.plans import plan_batches
from nearly.engine.storage.layouts import Table
from nearly.errors import Unsupported
from nearly.plan.nodes import GroupBy, Input, Plan, Scan
from nearly.plan.schema import FindTable
from nearly.rewrite.delta.with_partials import over_stored
from nearly.rewrite.logical.sizes import size
from nearly.views.kept_values import Notes, noted

MOST_SHARED = 4_000_000
"""A grouping of more groups, as far as its plan tells, is computed again rather than held in memory."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Plans in which what several of them, or several places of one, have in common is an input; `parts` are these, inner first."""

    plans: tuple[Plan, ...]
    parts: tuple[tuple[str, Plan], ...]


def shared(plans: Sequence[Plan], find_table: FindTable) -> Shared:
    """Take out groupings of tables that occur more than once."""
    bodies, parts = list(plans), list[tuple[str, Plan]]()
    for part in sorted(_groupings(plans), key=lambda each: -_length(each)):
        if sum(node == part for body in bodies for node in body.walk()) < 2 or size(part, find_table).rows > MOST_SHARED:
            continue
        name = f"shared_{len(parts)}"
        bodies = [_replaced(body, part, Input(name, part.columns)) for body in bodies]
        parts.append((name, part))
        bodies.append(part)
    made = bodies[len(plans) :]
    return Shared(tuple(bodies[: len(plans)]), tuple((name, body) for (name, _), body in zip(parts, made, strict=True))[::-1])


def _groupings(plans: Sequence[Plan]) -> tuple[GroupBy, ...]:
    found = (node for plan in plans for node in plan.walk() if isinstance(node, GroupBy))
    return tuple(dict.fromkeys(node for node in found if any(isinstance(each, Scan) for each in node.walk())))


def _replaced(plan: Plan, part: Plan, by: Plan) -> Plan:
    return by if plan == part else plan.map_children(lambda child: _replaced(child, part, by))


def _length(plan: Plan) -> int:
    return sum(1 for _ in plan.walk())


def computed(
    engine: Engine, table: Table, plan: Plan, values: Sequence[GroupBy], inputs: Sequence[Table], stored: Mapping[Plan, Plan],
    temporary: Path,
) -> tuple[ManyRows, Notes]:  # fmt: skip
    """All rows of a view, in memory, or in files where they are many, and what is to be kept of its values.

    Some of the tables may hold the rows of parts of the plan. A `NativeFailure` is for Spark to judge. On several sites each is
    computed by itself.
    """
    known = {each.name.lower(): each.schema for each in inputs}
    pinned, given = engine.at(inputs), dict[str, pa.Table]()
    plans = Shared(tuple(over_stored(each, stored) for each in (plan, *values)), ())
    if engine.cluster.sites.executors == 1:
        plans = shared(plans.plans, lambda name: known[name.lower()])
    with engine.reading(inputs):
        for name, part in plans.parts:
            given[name] = pinned.native.run_here(part, given)
        found = dict[str, Any]()
        for value, own in zip(values, plans.plans[1:], strict=True):
            with suppress(Unsupported):  # it is not kept then
                found |= noted(value, pinned.native.run_here(own, given))
        own = plans.plans[0]
        batches = pinned.native.run_here(own, given).to_batches() if given else plan_batches(engine, own, inputs)
        return collected(batches, table, temporary / "rows"), found
