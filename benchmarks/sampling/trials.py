"""One statistic over many seeds: estimate, truth, interval and anytime interval, made as a progressive query makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.sampling.orders import Reading
from benchmarks.sampling.populations import Floats, Integers, Population
from nearly.estimate.distinct import distinct
from nearly.estimate.intervals import Interval, anytime, interval
from nearly.estimate.quantiles import Summaries, quantiles, summarize

CONFIDENCE = 0.95
Sums = dict[str, Floats]


@dataclass(frozen=True, slots=True)
class Trial:
    """Results over seeds (rows) and cells of one answer (columns): the interval and the one that allows stopping at this look."""

    estimate: Floats
    truth: Floats
    low: Floats
    high: Floats
    anytime_low: Floats
    anytime_high: Floats


Measure = Callable[[Reading, int], Trial]


def measures(population: Population) -> Iterator[tuple[str, Measure]]:
    """All statistics that are tried on a population, each as a function of what is read and the number of the look."""
    plain, grouped = _plain_partials(population), _grouped_partials(population)
    rows = population.rows
    ratios: dict[str, Callable[[Sums], Floats]] = {
        "count": lambda sums: rows * sums["selected"] / sums["rows"],
        "sum": lambda sums: rows * sums["y"] / sums["rows"],
        "avg": lambda sums: sums["y"] / sums["values"],
        "ratio": lambda sums: sums["y"] / sums["x"],
    }
    for name, function in ratios.items():
        yield name, partial(_smooth, plain, function, grouped=False)
    yield "nested", partial(_nested, population)
    yield "median", partial(_quantile, population, _summaries(population), 0.5)
    yield "distinct", partial(_distinct, population, _tags(population))
    for name in ("count", "sum", "avg"):
        yield f"{name} by key", partial(_smooth, grouped, ratios[name], grouped=True)


def _plain_partials(population: Population) -> Sums:
    """Partial sums of each unit (units x 1); the predicate of the count is true for the largest fifth of x."""
    unit, present = population.unit_of, ~np.isnan(population.y)
    features = {
        "rows": np.ones(population.rows),
        "selected": population.x > np.quantile(population.x, 0.8),
        "x": population.x,
        "y": np.where(present, population.y, 0),
        "values": present,
    }
    return {name: _counted(unit, each, population.units)[:, None] for name, each in features.items()}


def _grouped_partials(population: Population) -> Sums:
    """Partial sums of each unit and key (units x keys); all rows of a key are selected, `rows` are all of the unit's."""
    keys = int(population.key.max()) + 1
    place, present = population.unit_of * keys + population.key, ~np.isnan(population.y)
    features = {"selected": np.ones(population.rows), "y": np.where(present, population.y, 0), "values": present}
    shape = population.units, keys
    sums = {name: _counted(place, each, shape[0] * keys).reshape(shape) for name, each in features.items()}
    return sums | {"rows": np.repeat(population.unit_rows[:, None].astype(float), keys, axis=1)}


def _counted(places: Integers, values: NDArray[Any], size: int) -> Floats:
    """Sums of the values at each place."""
    return np.asarray(np.bincount(places, values.astype(float), size), dtype=float)


def _smooth(partials: Sums, function: Callable[[Sums], Floats], read: Reading, look: int, *, grouped: bool) -> Trial:
    """A function of sums: the estimate from all groups, replicates with one group left out."""
    sums = {name: read.group_sums(each) for name, each in partials.items()}
    whole = {name: each.sum(axis=1) for name, each in sums.items()}
    without = {name: whole[name][:, None] - each for name, each in sums.items()}
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate, copies = function(whole), function(without)
        truth = function({name: each.sum(axis=0) for name, each in partials.items()})
    seen = (sums["selected"] > 0).sum(axis=1) if grouped else None
    share = whole["rows"] / partials["rows"].sum(axis=0)
    return _trial(estimate, copies, truth, share, sums["rows"], read, look, seen)


def _trial(
    estimate: Floats,
    copies: Floats,
    truth: Floats,
    share: Floats,
    rows: Floats,
    read: Reading,
    look: int,
    seen: Floats | None = None,
) -> Trial:
    """Intervals for estimates (seeds x cells) with replicates and group rows (seeds x groups x cells)."""
    flat = np.moveaxis(copies, 1, 0).reshape(read.groups, -1), np.moveaxis(rows, 1, 0).reshape(read.groups, -1)
    make = partial(
        _flat_interval,
        estimate.ravel(),
        flat[0],
        share.ravel(),
        flat[1],
        None if seen is None else seen.ravel(),
        read.units.shape[1],
    )
    first, second = make(None), make(look)
    ends = (each.reshape(estimate.shape) for each in (first.low, first.high, second.low, second.high))
    return Trial(estimate, np.broadcast_to(truth, estimate.shape), *ends)


def _flat_interval(
    theta: Floats, copies: Floats, share: Floats, rows: Floats, seen: Floats | None, units: int, look: int | None
) -> Interval:
    if look is None:
        return interval(theta, copies, share, CONFIDENCE, seen_in=seen, units=units, group_rows=rows)
    return anytime(theta, copies, share, CONFIDENCE, look=look, seen_in=seen, units=units, group_rows=rows)


def _nested(population: Population, read: Reading, look: int) -> Trial:
    """`avg(y) where x > (select avg(x))`: each replicate has its own threshold, so each unit is asked for all of them."""
    edges, present = population.edges, ~np.isnan(population.y)
    x = np.add.reduceat(population.x, edges[:-1])[:, None]
    rows = population.unit_rows[:, None].astype(float)
    sums, counts = read.group_sums(x), read.group_sums(rows)
    thresholds = np.concatenate(
        [sums.sum(1) / counts.sum(1), ((sums.sum(1, keepdims=True) - sums) / (counts.sum(1, keepdims=True) - counts))[..., 0]],
        axis=1,
    )
    above = np.zeros((2, *thresholds.shape))
    place = {unit: np.argwhere(read.units == unit) for unit in range(population.units)}
    for unit, found in place.items():
        part = slice(edges[unit], edges[unit + 1])
        order = np.argsort(population.x[part])
        values = np.where(present[part], population.y[part], 0)[order]
        tails = np.stack([np.append(np.cumsum(each[::-1])[::-1], 0) for each in (values, present[part][order])])
        seeds, groups = found[:, 0], found[:, 1] % read.groups
        cuts = np.searchsorted(population.x[part][order], thresholds[seeds], side="right")
        added = tails[:, cuts]
        added[:, np.arange(len(seeds)), groups + 1] = 0
        above[:, seeds] += added
    averages = above[0] / above[1]
    selected = (population.x > population.x.mean()) & present
    share = counts.sum(axis=1) / population.rows
    return _trial(averages[:, :1], averages[:, 1:, None], population.y[selected].mean(), share, counts, read, look)


def _summaries(population: Population) -> tuple[Floats, Floats]:
    parts = [population.y[start:end] for start, end in zip(population.edges[:-1], population.edges[1:], strict=True)]
    filled = [part[~np.isnan(part)] for part in parts]
    return np.stack([summarize(part) for part in filled]), np.array([float(len(part)) for part in filled])


def _quantile(population: Population, summaries: tuple[Floats, Floats], rank: float, read: Reading, look: int) -> Trial:
    truth = float(np.nanquantile(population.y, rank))
    results = []
    for units in read.units:
        made = Summaries.of(summaries[0][units], summaries[1][units], read.group_of)
        share = float(population.unit_rows[units].sum() / population.rows)
        first, second = (quantiles(made, rank, share, CONFIDENCE, look=each) for each in (None, look))
        ends = (first.bounds.low, first.bounds.high, second.bounds.low, second.bounds.high)
        results.append(np.concatenate([first.estimate, [truth], *ends]))
    return Trial(*np.stack(results).T[..., None])


def _tags(population: Population) -> list[Integers]:
    codes = np.unique(population.tag, return_inverse=True)[1]
    return [np.unique(codes[start:end]) for start, end in zip(population.edges[:-1], population.edges[1:], strict=True)]


def _distinct(population: Population, tags: list[Integers], read: Reading, look: int) -> Trial:
    truth = max(int(each[-1]) for each in tags) + 1
    results = []
    for units in read.units:
        seen = np.zeros((read.groups, truth), dtype=bool)
        for unit, group in zip(units, read.group_of, strict=True):
            seen[group, tags[unit]] = True
        times = seen.sum(axis=0)
        incidence = np.stack([np.bincount(times[each], minlength=read.groups + 1)[1:] for each in seen])
        found = distinct(incidence, float(population.unit_rows[units].sum() / population.rows))
        first, second = (found.interval(CONFIDENCE, look=each, units=len(units)) for each in (None, look))
        results.append([found.estimate, truth, first.low[0], first.high[0], second.low[0], second.high[0]])
    return Trial(*np.array(results).T[..., None])
