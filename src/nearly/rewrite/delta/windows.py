"""Windows: partitions in which a row came or went are computed again, as they are now and as they were.

Law: what a window function gives for a row depends on the rows of its partition only.
"""

from __future__ import annotations

from nearly.plan.nodes import Window
from nearly.rewrite.delta.changed import MINUS_ONE, ONE, ChangedRows, Deltas
from nearly.rewrite.delta.restrict import common_partition
from nearly.rewrite.delta.touched import touched_keys
from nearly.rewrite.delta.whole import whole


def window(deltas: Deltas, plan: Window) -> ChangedRows | None:
    """By what all its windows are partitioned by; without that, all rows."""
    parts = common_partition(plan)
    if not parts:
        return whole(deltas, plan)
    change = deltas.kept(plan.child)
    if change is None:
        return None
    touched = touched_keys(deltas, change, parts)
    versions = ((deltas.now(plan), ONE), (deltas.old(plan), MINUS_ONE))
    return deltas.union(
        plan.columns, (deltas.weighted(touched.of(deltas, each, parts), plan.columns, weight) for each, weight in versions)
    )
