"""One query against one tree: frontier, certain bounds, estimate, interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nearly.algebra.moments import pooled_freedom, quantile
from nearly.synopsis.query import bounds
from nearly.synopsis.query.features import Number, StratumSums
from nearly.synopsis.query.reading import TreeReading
from nearly.synopsis.query.totals import ESTIMATED, Derivation, added, exact_totals, known_value, piece_variance, rounding, totals
from nearly.synopsis.structure.rows import Floats
from nearly.synopsis.structure.statistics import COUNT, FIXED, ROWS, SUM, statistics_of
from nearly.synopsis.structure.tree import Box, Frontier


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with an interval at some confidence and bounds that are certain; NaN is SQL's null, or a bound that is not known.

    `processed` counts the sampled rows that were looked at, `share` is how many of the rows in question the answer is based on.
    """

    value: float
    low: float
    high: float
    hard_low: float
    hard_high: float
    exact: bool
    processed: int
    share: float = 1.0

    def divided(self, divisor: float) -> Estimate:
        """The same in other units."""
        if divisor == 1.0:
            return self
        value, low, high = self.value / divisor, self.low / divisor, self.high / divisor
        return replace(self, value=value, low=low, high=high, hard_low=self.hard_low / divisor, hard_high=self.hard_high / divisor)


def certain(value: float, processed: int = 0) -> Estimate:
    """An estimate without doubt."""
    return Estimate(value, value, value, value, value, True, processed)


def answer(reading: TreeReading, aggregate: str, box: Box, confidence: float) -> Estimate:
    """The aggregate over the rows in a box."""
    frontier = reading.frontier(box)
    if aggregate not in ESTIMATED:
        return _extreme(reading, aggregate, box, frontier)
    covered = reading.node_statistics[frontier.covered, :FIXED].sum(axis=0)
    if frontier.partial.size:
        covered += statistics_of(reading.outliers_in(frontier, box), reading.scales.centre)
        frontier = _of_consequence(reading, aggregate, frontier, float(covered[COUNT]))
    if not frontier.partial.size:
        return _known(reading, aggregate, frontier, covered, 0)
    if reading.features.whole[frontier.partial].all():
        matching = reading.features.matching_values(frontier.partial, box)
        covered += statistics_of(matching, reading.scales.centre)
        return _known(reading, aggregate, frontier, covered, len(matching))
    found = _constant(reading, aggregate, box, frontier, float(covered[COUNT]))
    return found or _sampled(reading, ESTIMATED[aggregate], box, frontier, covered, confidence)


def _of_consequence(reading: TreeReading, aggregate: str, frontier: Frontier, known: float) -> Frontier:
    """The frontier without the cut leaves that give nothing, whichever of their rows match: those without a value, and for a sum
    those of zeros. (A sum of zeros is null when none of them matches, unless there are other rows with a value.)"""
    if aggregate == "rows":
        return frontier
    cut = frontier.partial
    idle = reading.leaf_statistics[cut, COUNT] == 0
    if aggregate == "sum" and known:
        idle |= (reading.top[cut] == 0) & (reading.bottom[cut] == 0)
    return Frontier(frontier.covered, cut[~idle]) if idle.any() else frontier


def _constant(reading: TreeReading, aggregate: str, box: Box, frontier: Frontier, known: float) -> Estimate | None:
    """The average or spread of values that are all equal, if so many rows match for sure that it is no null.

    PASS (section 2.3.4) also takes single nodes of equal values whole. How many of their rows match is not known, though, and with
    it their weight in the average: that is estimated here like any other.
    """
    if aggregate in ("rows", "count", "sum"):
        return None
    low, high = reading.reach(frontier)
    if low != high:
        return None
    wanted, processed = 2 if aggregate.endswith("samp") else 1, 0
    if known < wanted:
        known += np.isfinite(reading.features.matching_values(frontier.partial, box)).sum()
        processed = int(reading.features.sizes[frontier.partial].sum())
    return certain(low if aggregate == "avg" else 0.0, processed) if known >= wanted else None


def _known(reading: TreeReading, aggregate: str, frontier: Frontier, statistics: Floats, processed: int) -> Estimate:
    found = known_value(aggregate, statistics, reading.turnover(frontier), reading.scales.centre)
    return Estimate(found.value, found.low, found.high, found.low, found.high, found.exact, processed)


def _sampled(
    reading: TreeReading, aggregate: Derivation, box: Box, frontier: Frontier, covered: Floats, confidence: float
) -> Estimate:
    responses, features = aggregate.responses, reading.features
    pieces = features.pieces(frontier.partial, box)
    values = totals(exact_totals(covered, responses), pieces, responses)
    value, gradient = aggregate.derive(values, reading.scales.centre)
    hard = _hard(reading, aggregate.name, frontier, covered, pieces)
    if math.isnan(value) or any(added(each.stratum.blind) for each in pieces):
        low, high = hard
        value = _fallback(value, low, high)
    else:
        variances = [piece_variance(features, each, responses, gradient) for each in pieces]
        half = _half_width(variances, pieces, confidence)
        low, high = (value - half, value + half) if half > 0 else hard  # without a proof no interval is a point
    value, low, high = _clipped(value, low, high, *hard)
    processed = int(sum(added(each.stratum.size) for each in pieces))
    return Estimate(value, low, high, hard[0], hard[1], False, processed, reading.share(frontier))


def _fallback(value: float, low: float, high: float) -> float:
    """Where no sampled row matches, the middle of what is possible stands for an average."""
    return (low + high) / 2.0 if math.isnan(value) and math.isfinite(low + high) else value


def _half_width(variances: Sequence[Number], pieces: Sequence[StratumSums], confidence: float) -> float:
    """Half the interval: Student's t, with degrees of freedom by Welch and Satterthwaite, times the standard error."""
    total, weighted = 0.0, 0.0
    for variance, piece in zip(variances, pieces, strict=True):
        share = variance * variance / piece.stratum.freedom
        total, weighted = total + added(variance), weighted + added(share)
    return quantile(confidence, pooled_freedom(total, weighted)) * math.sqrt(total)


def _clipped(value: float, low: float, high: float, hard_low: float, hard_high: float) -> tuple[float, float, float]:
    """The estimate and its interval moved inside the certain bounds; bounds that are not known are NaN and move nothing."""
    if not math.isnan(hard_low):
        value, low, high = max(value, hard_low), max(low, hard_low), max(high, hard_low)
    if not math.isnan(hard_high):
        value, low, high = min(value, hard_high), min(low, hard_high), min(high, hard_high)
    return value, low, high


def _hard(reading: TreeReading, name: str, frontier: Frontier, covered: Floats, pieces: Sequence[StratumSums]) -> bounds.Bounds:
    """Bounds that hold with certainty; NaN when nothing is certain."""
    centre, count = reading.scales.centre, float(covered[COUNT])
    total = float(covered[SUM]) + centre * count
    slack = rounding(reading.turnover(frontier))
    match name:
        case "rows":
            return bounds.row_bounds(float(covered[ROWS]), pieces)
        case "count":
            return bounds.count_bounds(count, pieces)
        case "sum":
            return bounds.sum_bounds(total, pieces, centre, slack)
        case "avg":
            return bounds.average_bounds(total, count, pieces, slack)
    low, high = bounds.variance_bounds(*reading.reach(frontier), samples=name.endswith("samp"))
    return (low, math.sqrt(high)) if name.startswith("std") else (low, high)


def _extreme(reading: TreeReading, name: str, box: Box, frontier: Frontier) -> Estimate:
    """MIN or MAX: covered nodes, outliers and matching sampled rows exist for sure; a cut leaf may hold anything up to the
    bounds of its other rows."""
    sign = 1.0 if name == "max" else -1.0
    tops, rest = (reading.node_top, reading.rest_top) if name == "max" else (-reading.node_bottom, -reading.rest_bottom)
    outlier = _largest(sign * reading.outliers_in(frontier, box)) if frontier.partial.size else -math.inf
    attained = max(_largest(tops[frontier.covered][reading.node_exact[frontier.covered]]), outlier)
    cut = frontier.partial[~reading.features.whole[frontier.partial]] if frontier.partial.size else frontier.partial
    possible = max(_largest(tops[frontier.covered]), outlier, _largest(rest[cut]))
    processed = 0
    if frontier.partial.size and (possible > attained or len(cut) < len(frontier.partial)):
        sampled = _largest(sign * reading.features.matching_values(frontier.partial, box))
        attained, possible = max(attained, sampled), max(possible, sampled)
        processed = int(reading.features.sizes[frontier.partial].sum())
    if possible in (-math.inf, attained):
        return certain(sign * possible if math.isfinite(possible) else math.nan, processed)
    value = attained if attained > -math.inf else possible
    if attained == -math.inf:
        attained = min(sign * each for each in reading.reach(frontier))
    low, high = sorted((sign * attained, sign * possible))
    return Estimate(sign * value, low, high, low, high, False, processed, reading.share(frontier))


def _largest(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.max()) if known.size else -math.inf
