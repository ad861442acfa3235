"""What is known of an evolving frame before it runs: what identifies a row, what is read together, and what may still change."""

from __future__ import annotations

from nearly.engine.planner import Prepared
from nearly.errors import Unsupported
from nearly.plan import properties
from nearly.plan.depth import deep_recursion
from nearly.plan.nodes import BoundQuery
from nearly.progressive.run import Run
from nearly.rewrite.weigh.weigh import weigh


@deep_recursion()
def key(prepared: Prepared) -> tuple[str, ...] | None:
    """The smallest key whose columns the query has."""
    if prepared.query is None:
        return None
    found = [each for each in properties.keys(prepared.query.plan, prepared.schema) if each <= prepared.query.plan.names]
    return _in_order(prepared.query, min(found, key=lambda each: (len(each), sorted(each)))) if found else None


@deep_recursion()
def clustering_key(prepared: Prepared) -> tuple[str, ...]:
    """Columns whose equal values come from the same block, or from neighbours that are read together."""
    if prepared.query is None:
        return ()
    return _in_order(prepared.query, properties.clustering(prepared.query.plan, prepared.schema))


@deep_recursion()
def mutable(prepared: Prepared, run: Run) -> frozenset[str]:
    """Columns that are estimates while units are read.

    A grouping by what the blocks are clustered by is complete as soon as it is there, so its aggregates do not change; nor does
    anything when the exact answer is the only one.
    """
    cut = run.cut()
    if cut is None or prepared.query is None:
        return frozenset()
    try:
        evolving = weigh(cut.tail, cut.stages, 1.0, {}).evolving
    except Unsupported:
        return frozenset()
    return frozenset(_in_order(prepared.query, evolving))


def _in_order(query: BoundQuery, names: frozenset[str]) -> tuple[str, ...]:
    """Columns of the plan under the user's names."""
    pairs = zip(query.plan.columns, query.names, strict=True)
    return tuple(shown for column, shown in pairs if column.name in names)
