"""Accuracy on one column: PASS beside a uniform sample and equal-depth strata, at equal tuples per query and at equal storage."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from benchmarks.report import Record
from benchmarks.synopses.data import DataSet
from nearly.synopsis.build.drafting import LeafCounts, Shape, draft, finished
from nearly.synopsis.query.estimates import answer
from nearly.synopsis.query.reading import TreeReading
from nearly.synopsis.structure.rows import Floats, Rows
from nearly.synopsis.structure.state import TreeState
from nearly.synopsis.structure.tree import Condition

LEAVES = 64
RATE = 0.005
AGGREGATES = ("rows", "sum", "avg")
CONFIDENCE = 0.95
DRAWS = 4
"""Independent samples over which coverage is averaged: the queries of one draw share its few leaves."""


def build(rows: Rows, shape: Shape, seed: int = 0) -> TreeState:
    """A synopsis in memory, by the same two passes that Spark tasks make."""
    rng = np.random.default_rng(seed)
    sample = rows.take(np.unique(rng.integers(0, len(rows), shape.optimisation_rows)))
    plan = draft(shape, sample, len(rows))
    part = LeafCounts.nothing(plan)
    for start in range(0, len(rows), 1 << 17):
        part.add(plan, rows.take(np.arange(start, min(len(rows), start + (1 << 17)))))
    return finished(plan, part)


def storages(rows: int) -> dict[str, int]:
    """Sampled rows of each variant: as many tuples per query as the baselines (two leaves are cut), or so often their storage."""
    budget = round(RATE * rows)
    return {"ESS": budget * LEAVES // 2, "BSS1x": budget, "BSS2x": 2 * budget, "BSS10x": 10 * budget}


def measure(data: DataSet, queries: int) -> Iterator[Record]:
    """One row for each variant and aggregate."""
    ranges = data.queries(queries, seed=11)
    truth = data.truth(ranges)
    baselines = {"uniform": uniform(data, ranges), "stratified": stratified(data, ranges)}
    for variant, target in storages(len(data.values)).items():
        draws = DRAWS if variant == "ESS" else 2
        readings = [TreeReading(build(data.rows(seed), Shape((0,), LEAVES, target), seed)) for seed in range(draws)]
        for place, aggregate in enumerate(AGGREGATES):
            found = np.array([[_ask(reading, aggregate, low, high) for low, high in ranges.tolist()] for reading in readings])
            record = _record(found, truth[aggregate])
            others = {name: _median_error(each[aggregate], truth[aggregate]) for name, each in baselines.items()}
            error = record["median error %"]
            yield {
                "data": data.name, "variant": variant, "aggregate": aggregate, **record,
                "uniform %": 100 * others["uniform"], "stratified %": 100 * others["stratified"],
                "vs uniform": 100 * others["uniform"] / error, "vs stratified": 100 * others["stratified"] / error,
                "seed %": 100 * data.seed_errors[place] if variant == "ESS" else None,
                "processed %": 100 * float(found[:, :, 5].mean()) / len(data.values),
            }  # fmt: skip


def _ask(reading: TreeReading, aggregate: str, low: float, high: float) -> tuple[float, ...]:
    found = answer(reading, aggregate, (Condition(0, low, high),), CONFIDENCE)
    return found.value, found.low, found.high, found.hard_low, found.hard_high, float(found.processed)


def _record(found: Floats, truth: Floats) -> dict[str, float]:
    """Median error of the first draw, and of all draws coverage, interval width and violations of the certain bounds."""
    slack = 1e-9 * np.maximum(np.abs(truth), 1.0)
    covered = (found[:, :, 1] - slack <= truth) & (truth <= found[:, :, 2] + slack)
    broken = (found[:, :, 3] - slack > truth) | (truth > found[:, :, 4] + slack)
    usable = truth != 0
    half = (found[0, usable, 2] - found[0, usable, 1]) / 2
    return {
        "median error %": 100 * float(np.median([_median_error(each[:, 0], truth) for each in found])),
        "median interval %": 100 * float(np.median(half / np.abs(truth[usable]))),
        "coverage": float(covered.mean()), "hard failures": float(broken.sum()),
    }  # fmt: skip


def _median_error(found: Floats, truth: Floats) -> float:
    usable = truth != 0
    return float(np.median(np.abs(found[usable] - truth[usable]) / np.abs(truth[usable])))


def uniform(data: DataSet, ranges: Floats) -> dict[str, Floats]:
    """A uniform sample of the same number of tuples."""
    rng = np.random.default_rng(5)
    size = round(RATE * len(data.values))
    chosen = np.sort(rng.choice(len(data.values), size, replace=False))
    return _weighted(data.column[chosen], data.values[chosen], np.full(size, len(data.values) / size), ranges)


def stratified(data: DataSet, ranges: Floats) -> dict[str, Floats]:
    """Equal-depth strata with as many sampled tuples in all, without precomputed aggregates."""
    rng = np.random.default_rng(6)
    size = round(RATE * len(data.values)) // LEAVES
    edges = np.linspace(0, len(data.values), LEAVES + 1).astype(int)
    strata = [np.sort(rng.choice(np.arange(low, high), size, replace=False)) for low, high in itertools.pairwise(edges)]
    chosen = np.concatenate(strata)
    weights = np.repeat(np.diff(edges) / size, size)
    return _weighted(data.column[chosen], data.values[chosen], weights, ranges)


def _weighted(column: Floats, values: Floats, weights: Floats, ranges: Floats) -> dict[str, Floats]:
    first, last = np.searchsorted(column, ranges[:, 0]), np.searchsorted(column, ranges[:, 1], side="right")
    counts, sums = np.append(0.0, np.cumsum(weights)), np.append(0.0, np.cumsum(weights * values))
    rows, total = counts[last] - counts[first], sums[last] - sums[first]
    return {"rows": rows, "sum": total, "avg": np.divide(total, rows, out=np.zeros_like(total), where=rows > 0)}


def challenging(data: DataSet, queries: int) -> Record:
    """The other question on the adversarial data: intervals of optimised and of equal-depth leaves in the noisy part."""
    ranges = data.queries(queries, seed=12, low=0.875)
    truth = data.truth(ranges)["sum"]
    target = storages(len(data.values))["ESS"]
    widths = {}
    for method in ("sampled", "equal_depth"):
        reading = TreeReading(build(data.rows(0), Shape((0,), LEAVES, target, method)))
        found = np.array([_ask(reading, "sum", low, high) for low, high in ranges.tolist()])
        widths[method] = float(np.median((found[:, 2] - found[:, 1]) / 2 / np.abs(truth)))
    return {"data": data.name, "optimised interval %": 100 * widths["sampled"],
            "equal-depth interval %": 100 * widths["equal_depth"],
            "ratio": widths["equal_depth"] / widths["sampled"]}  # fmt: skip
