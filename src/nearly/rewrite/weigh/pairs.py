"""Aggregates over pairs of rows of two tables that are sampled by themselves (WAKE's growth above one: pairs grow as t^2).

A pair was read when both of its rows were, so it stands for (N1/n1) (N2/n2) pairs. A replicate leaves out one group of units of
both tables. What a group of the first table adds to a total and what one of the second adds are independent, so the spread of such
replicates is that of both tables together, and somewhat more where single pairs make it (Efron and Stein 1981).

Rows are aggregated by pairs of unit groups first: replicates then weigh these, however many rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nearly.errors import Unsupported
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import Call, conjunction
from nearly.plan.nodes import GroupBy, Join, Output, Plan, Project, passed
from nearly.plan.types import BOOLEAN
from nearly.rewrite.sites.split_aggregate import split_aggregate
from nearly.rewrite.weigh.aggregate import Aggregation
from nearly.rewrite.weigh.weighted import OPEN, WEIGHTS, WEIGHTS_BESIDE, OfPairs, Weighted


@dataclass(frozen=True, slots=True)
class PairAggregation:
    """One aggregate over pairs, which are not weighed yet; in replicates, or not."""

    fresh: FreshNames
    plan: GroupBy
    rows: Weighted
    replicated: bool

    def weighted(self) -> tuple[Project, Weighted]:
        """The weighted totals, and the columns of the aggregate as a projection of them."""
        pairs = self.rows.standing
        split = split_aggregate(replace(self.plan, child=self.rows.plan), self.fresh)
        if split is None or self.plan.sets is not None or not isinstance(pairs, OfPairs):
            raise Unsupported("of two samples only sums, counts, averages and extremes of pairs are known")
        parts = replace(split.partial, keys=(*passed(pairs.units), *split.partial.keys))
        weighed = self._in_replicates(parts, pairs) if self.replicated else Weighted(parts, pairs, rows=OPEN)
        merged = GroupBy(parts, split.keys, split.merges)
        return Project(merged, split.results), Aggregation(self.fresh, merged, weighed, None).weighted()

    def _in_replicates(self, parts: GroupBy, pairs: OfPairs) -> Weighted:
        """The parts in every replicate that leaves out neither of their units."""
        one, two = ([Output(self.fresh(column.name), column) for column in WEIGHTS.given] for _ in pairs.units)
        joined: Plan = Join(parts, Project(WEIGHTS, tuple(one)), "inner", Call(BOOLEAN, "=", (pairs.units[0], one[1].column)))
        equal = (Call(BOOLEAN, "=", (pairs.units[1], two[1].column)), Call(BOOLEAN, "=", (one[0].column, two[0].column)))
        joined = Join(joined, Project(WEIGHTS_BESIDE, tuple(two)), "inner", conjunction(equal))
        return Weighted(joined, OfPairs((one[2].column, two[2].column), pairs.units), one[0].column)
