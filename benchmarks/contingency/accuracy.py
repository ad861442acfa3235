"""Do ranges hold, and how wide are they? Against confidence intervals from a sample of the missing rows of the same size."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.contingency.data import DataSet, RandomQuery, missing_rows, random_queries, to_arrow
from nearly.algebra.boxes import Region, box, intersection
from nearly.algebra.ordered_sets import OrderedSet
from nearly.engine.history import frame_of, schema_of
from nearly.missing.constraint_set import ConstraintSet
from nearly.missing.derive import constraints_from
from nearly.missing.programmes.aggregate_range import AggregateRange, Ranger
from nearly.missing.programmes.cells import TimeLimit
from nearly.missing.programmes.effects import MissingMeasure, RangeQuestion
from nearly.missing.programmes.problem import Problem
from nearly.missing.range_answer import KnownAggregate
from nearly.missing.statements.bound_set import BoundConstraint, BoundSet, connected
from nearly.plan.expressions import Column
from nearly.plan.types import DOUBLE, LONG
from nearly.plan.values.ranges import Extent
from nearly.plan.values.regions import Regions, RowSpace

Z99 = 2.5758
NOTHING = KnownAggregate(Extent(0, 0), Extent(0, 0), Extent(0, 0))
NO_VALUE = KnownAggregate(Extent())
SELDOM = 10
"""AVG, MIN and MAX are asked of every so many queries."""


@dataclass
class Score:
    """Failures and widths over many queries."""

    queries: int = 0
    failures: int = 0
    sampling_failures: int = 0
    over: dict[str, list[float]] = field(default_factory=lambda: {"sum": [], "count": []})
    sampling_over: list[float] = field(default_factory=list)

    def median_over(self, function: str) -> float:
        return statistics.median(self.over[function]) if self.over[function] else math.nan


class Asker:
    """Asks ranges of the missing rows alone, as the published evaluation does."""

    def __init__(self, bound: BoundSet, measure: str) -> None:
        self.bound = bound
        self.problem = Problem(bound)
        self.regions = Regions(bound.rows, {name: name for name in bound.rows.domains})
        self.measure = MissingMeasure(self.regions, Column(bound.rows.domains[measure].type, measure))

    def __call__(self, function: str, query: RandomQuery) -> AggregateRange:
        measure = MissingMeasure(self.regions, None) if function == "count" else self.measure
        question = RangeQuestion(region(query, self.bound.rows), measure)
        certain = NO_VALUE if function in ("min", "max") else NOTHING
        return Ranger(self.problem, TimeLimit(30))(function, question, certain)

    def ends(self, function: str, query: RandomQuery) -> tuple[float, float]:
        """Both ends as numbers, infinite without limit."""
        found = self(function, query)
        type_ = LONG if function == "count" else DOUBLE
        low, high = (found.value(side, type_) for side in ("low", "high"))
        return (-math.inf if low is None else float(low)), (math.inf if high is None else float(high))


def region(query: RandomQuery, rows: RowSpace) -> Region:
    return box({name: rows.domains[name].at_least(low) & rows.domains[name].at_most(high) for name, low, high in query.ranges})


def corr_pc(spark: Any, rows: pd.DataFrame, data: DataSet, n: int, scheme: str = "partition") -> tuple[ConstraintSet, RowSpace]:
    """Constraints derived by Spark from the rows that will be missing, and the space they are over."""
    frame = frame_of(to_arrow(rows[[data.measure, *data.by]]), spark)
    found = constraints_from(frame, by=list(data.by), n=n, scheme=scheme, rows="exactly")
    return found, RowSpace.of(schema_of(frame, data.name), "UTC")


def evaluate(spark: Any, data: DataSet, ratio: float, n: int, count: int, seed: int) -> Score:
    """Random queries over the missing rows: ranges from n constraints beside 99 % intervals from n sampled rows."""
    rows = missing_rows(data, ratio)
    constraints, space = corr_pc(spark, rows, data, n)
    asker = Asker(constraints.bound_to(space), data.measure)
    columns = {name: rows[name].to_numpy() for name in data.by}
    values = rows[data.measure].to_numpy(dtype=float)
    sampled = np.random.default_rng(seed + 1).choice(len(rows), size=min(n, len(rows)), replace=False)
    sample_columns = {name: column[sampled] for name, column in columns.items()}
    score = Score()
    for number, query in enumerate(random_queries(rows, data.by, count, seed)):
        mask = query.mask(columns)
        inside = query.mask(sample_columns)
        truth = {"sum": float(values[mask].sum()), "count": float(mask.sum())}
        for function, weights in (("sum", values[sampled]), ("count", np.ones(len(sampled)))):
            _record(score, function, truth[function], asker.ends(function, query), interval(inside * weights, len(rows)))
        if number % SELDOM == 0 and mask.any():
            _check_others(score, asker, query, values[mask])
    return score


def _record(score: Score, function: str, truth: float, ends: tuple[float, float], sampled: tuple[float, float]) -> None:
    score.queries += 1
    score.failures += not holds(truth, ends)
    score.sampling_failures += not holds(truth, sampled)
    if truth > 0:
        score.over[function].append(ends[1] / truth)
        score.sampling_over.append(sampled[1] / truth)


def _check_others(score: Score, asker: Asker, query: RandomQuery, values: Any) -> None:
    for function, truth in (("avg", values.mean()), ("min", values.min()), ("max", values.max())):
        score.queries += 1
        score.failures += not holds(float(truth), asker.ends(function, query))


def holds(truth: float, ends: tuple[float, float]) -> bool:
    """Whether the truth lies between the ends, up to the rounding of sums of doubles."""
    slack = 1e-9 * max(1.0, abs(truth))
    return ends[0] - slack <= truth <= ends[1] + slack


def interval(terms: Any, population: int) -> tuple[float, float]:
    """The 99 % interval of a total by the central limit theorem, from the terms of sampled rows."""
    mean, spread = float(terms.mean()), float(terms.std(ddof=1)) / math.sqrt(len(terms))
    return population * (mean - Z99 * spread), population * (mean + Z99 * spread)


def noise_robustness(spark: Any, data: DataSet, ratio: float, n: int, count: int, seed: int) -> list[dict[str, Any]]:
    """Failure rates of SUM when the ends of all value ranges are disturbed by 1, 2 and 3 standard deviations of the measure.

    `corr` are n disjoint constraints, `overlapping` 10 constraints that overlap, `sampled` a non-parametric 99.99 % interval from
    10 n rows whose least and greatest value are disturbed alike.
    """
    rows = missing_rows(data, ratio)
    columns = {name: rows[name].to_numpy() for name in data.by}
    values = rows[data.measure].to_numpy(dtype=float)
    queries = random_queries(rows, data.by, count, seed)
    truths = [float(values[query.mask(columns)].sum()) for query in queries]
    bounds = {}
    for name, size, scheme in (("corr", n, "partition"), ("overlapping", 10, "overlapping")):
        constraints, space = corr_pc(spark, rows, data, size, scheme)
        bounds[name] = constraints.bound_to(space)
    found = []
    for level in (1, 2, 3):
        generator = np.random.default_rng(seed + level)
        sigma = level * float(values.std())
        record: dict[str, Any] = {"noise": level}
        for name, bound in bounds.items():
            asker = Asker(disturbed(bound, data.measure, sigma, generator), data.measure)
            record[name] = (
                sum(not holds(truth, asker.ends("sum", query)) for truth, query in zip(truths, queries, strict=True)) / count
            )
        record["sampled"] = _sampled_failures(values, columns, queries, truths, 10 * n, sigma, generator)
        found.append(record)
    return found


def disturbed(bound: BoundSet, measure: str, sigma: float, generator: Any) -> BoundSet:
    """The constraints with Gaussian noise on both ends of the measure's ranges."""
    domain = bound.rows.domains[measure]

    def changed(constraint: BoundConstraint) -> BoundConstraint:
        side = constraint.values[0].sides[measure]
        ends = sorted(float(domain.value(rank)) + generator.normal(0, sigma) for rank in (side.first, domain.last(side)))
        noisy = domain.at_least(ends[0]) & domain.at_most(ends[1])
        noisy = noisy if noisy.pieces else domain.equal(domain.value(domain.floor(ends[0])[0]))
        values = box({**constraint.values[0].sides, measure: OrderedSet(noisy.pieces, side.null)})
        return replace(constraint, values=values, allowed=intersection(constraint.predicate, values))

    constraints = tuple(changed(each) for each in bound.constraints)
    return BoundSet(bound.rows, constraints, connected([each.predicate for each in constraints], bound.rows))


def _sampled_failures(
    values: Any,
    columns: dict[str, Any],
    queries: Sequence[RandomQuery],
    truths: Sequence[float],
    size: int,
    sigma: float,
    generator: Any,
) -> float:
    """Hoeffding's interval: the mean of n terms in [a, b] is within (b - a) sqrt(log(2 / alpha) / 2n) of the truth."""
    chosen = generator.choice(len(values), size=min(size, len(values)), replace=False)
    sample_columns = {name: column[chosen] for name, column in columns.items()}
    low, high = sorted(
        (float(values[chosen].min()) + generator.normal(0, sigma), float(values[chosen].max()) + generator.normal(0, sigma))
    )
    reach = (high - min(low, 0.0)) * math.sqrt(math.log(2 / 1e-4) / (2 * len(chosen)))
    clipped = np.clip(values[chosen], low, high)
    failures = 0
    for query, truth in zip(queries, truths, strict=True):
        mean = float((query.mask(sample_columns) * clipped).mean())
        failures += not holds(truth, (len(values) * (mean - reach), len(values) * (mean + reach)))
    return failures / len(queries)
