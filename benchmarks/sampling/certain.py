"""Bounds that must never fail: from the ends and null counts of the unread units alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from benchmarks.sampling.orders import Reading
from benchmarks.sampling.populations import Floats, Integers, Population
from nearly.estimate.expression_range import Box, Known
from nearly.estimate.ranges import FUNCTIONS, Part, Read, bounds, part_of
from nearly.plan.expressions import Call, Column, Literal
from nearly.plan.types import BOOLEAN, DOUBLE

Y = Column(DOUBLE, "y")


def failures(population: Population, readings: Iterable[Reading]) -> int:
    """How many certain bounds do not hold, over the seeds, the five aggregates, and with and without a predicate."""
    boxes = [_box(population, unit) for unit in range(population.units)]
    limit = float(np.quantile(population.x, 0.8))
    predicate = Call(BOOLEAN, ">", (Column(DOUBLE, "x"), Literal(DOUBLE, limit)))
    selected = np.where(population.x > limit, population.y, np.nan)
    conditions = [
        ([part_of(Y, box) for box in boxes], population.y),
        ([part_of(Y, box, predicate) for box in boxes], selected),
    ]
    orders = [units for read in readings for units in read.units]
    return sum(_failed(population, parts, values, units) for parts, values in conditions for units in orders)


def _failed(population: Population, parts: Sequence[Part], values: Floats, units: Integers) -> int:
    """How many of the five aggregates end outside their bounds."""
    done = _read(population, values, units)
    unread = [parts[unit] for unit in np.setdiff1d(np.arange(population.units), units)]
    failed = 0
    for function, truth in _truths(values):
        found = bounds(function, DOUBLE, unread, done)
        failed += (found.low is not None and truth < found.low) or (found.high is not None and truth > found.high)
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
