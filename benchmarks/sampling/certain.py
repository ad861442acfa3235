"""Bounds that must never fail: from the ends and null counts of the unread units alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.sampling.orders import Reading
from benchmarks.sampling.populations import Floats, Integers, Population
from nearly.estimate.expression_range import Box, Known
from nearly.estimate.ranges import FUNCTIONS, Read, bounds
from nearly.plan.expressions import Call, Column, Expression, Literal
from nearly.plan.types import BOOLEAN, DOUBLE

Y = Column(DOUBLE, "y")


def failures(population: Population, read: Reading) -> int:
    """How many certain bounds do not hold, over the seeds, the five aggregates, and with and without a predicate."""
    boxes = [_box(population, unit) for unit in range(population.units)]
    limit = float(np.quantile(population.x, 0.8))
    predicate = Call(BOOLEAN, ">", (Column(DOUBLE, "x"), Literal(DOUBLE, limit)))
    conditions: list[tuple[Expression | None, Floats]] = [
        (None, population.y),
        (predicate, np.where(population.x > limit, population.y, np.nan)),
    ]
    failed = 0
    for units in read.units:
        unread = [boxes[unit] for unit in np.setdiff1d(np.arange(population.units), units)]
        for where, values in conditions:
            done = _read(population, values, units)
            for function, truth in _truths(values):
                found = bounds(function, Y, unread, where, read=done)
                failed += not (found.low is None or found.low <= truth) or not (found.high is None or truth <= found.high)
    return failed


def _box(population: Population, unit: int) -> Box:
    part = slice(population.edges[unit], population.edges[unit + 1])
    return Box(int(population.unit_rows[unit]), {"x": _known(population.x[part]), "y": _known(population.y[part])})


def _known(values: Floats) -> Known:
    present = values[~np.isnan(values)]
    low, high = (float(present.min()), float(present.max())) if len(present) else (None, None)
    return Known(low, high, len(values) - len(present))


def _read(population: Population, values: Floats, units: Integers) -> Read:
    found = np.concatenate([values[population.edges[unit] : population.edges[unit + 1]] for unit in units])
    found = found[~np.isnan(found)]
    if not len(found):
        return Read()
    return Read(len(found), float(found.sum()), float(found.min()), float(found.max()))


def _truths(values: Floats) -> Iterator[tuple[str, float]]:
    present = values[~np.isnan(values)]
    results = len(present), present.sum(), present.mean(), present.min(), present.max()
    yield from zip(FUNCTIONS, (float(each) for each in results), strict=True)
