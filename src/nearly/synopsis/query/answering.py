"""One query against one tree: frontier, certain bounds, estimate, interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearly.algebra.moments import pooled_freedom, quantile
from nearly.synopsis.query import bounds
from nearly.synopsis.query.aggregates import ESTIMATED, Aggregate
from nearly.synopsis.query.features import Number, Piece
from nearly.synopsis.query.totals import added, exact_totals, piece_means, piece_variance, totals
from nearly.synopsis.query.view import View
from nearly.synopsis.structure.frontier import Box, Frontier
from nearly.synopsis.structure.rows import Floats
from nearly.synopsis.structure.statistics import COUNT, ROWS, SUM


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with an interval at some confidence and bounds that are certain; NaN is SQL's null, or a bound that is not known.

    `processed` counts the sampled rows that were looked at.
    """

    value: float
    low: float
    high: float
    hard_low: float
    hard_high: float
    exact: bool
    processed: int


def certain(value: float) -> Estimate:
    """An estimate without doubt."""
    return Estimate(value, value, value, value, value, True, 0)


def answer(view: View, aggregate: str, box: Box, confidence: float) -> Estimate:
    """The aggregate over the rows in a box."""
    frontier = view.frontier(box)
    if aggregate not in ESTIMATED:
        return _extreme(view, aggregate, box, frontier)
    found = ESTIMATED[aggregate]
    covered = view.node_statistics[frontier.covered].sum(axis=0)
    if not frontier.partial.size and view.catch_up is None:
        nothing = aggregate == "sum" and not covered[COUNT]
        return certain(math.nan if nothing else found.derive(exact_totals(covered, found.responses), view.frame.centre)[0])
    if aggregate == "avg" and covered[COUNT] > 0 and view.catch_up is None:
        low, high = view.reach(frontier)
        if low == high:
            return certain(low)
    return _sampled(view, found, box, frontier, covered, confidence)


def _sampled(view: View, aggregate: Aggregate, box: Box, frontier: Frontier, covered: Floats, confidence: float) -> Estimate:
    responses, features = aggregate.responses, view.features
    pieces = features.pieces(frontier.partial, box)
    values = totals(exact_totals(covered, responses), pieces, responses)
    value, gradient = aggregate.derive(values, view.frame.centre)
    hard = _hard(view, aggregate.name, frontier, covered, pieces)
    if math.isnan(value) or any(added(each.stratum.blind) for each in pieces):
        low, high = (-math.inf, math.inf) if math.isnan(hard[0]) else hard
        value = _fallback(value, low, high)
    else:
        variances = [piece_variance(features, each, responses, gradient) for each in pieces]
        missing = _catch_up_variance(view, frontier, pieces, responses, gradient)
        half = _half_width(variances, pieces, missing, confidence)
        low, high = value - half, value + half
    value, low, high = _clipped(value, low, high, *hard)
    exact = view.catch_up is None and not any(added(each.stratum.spread) for each in pieces)
    return Estimate(value, low, high, hard[0], hard[1], exact, int(sum(added(each.stratum.size) for each in pieces)))


def _fallback(value: float, low: float, high: float) -> float:
    """Where no sampled row matches, the middle of what is possible stands for an average."""
    return (low + high) / 2.0 if math.isnan(value) and math.isfinite(low + high) else value


def _half_width(variances: Sequence[Number], pieces: Sequence[Piece], missing: float, confidence: float) -> float:
    """Half the interval: Student's t, with degrees of freedom by Welch and Satterthwaite, times the standard error."""
    total, weighted = 0.0, 0.0
    for variance, piece in zip(variances, pieces, strict=True):
        share = variance * variance / piece.stratum.freedom
        total, weighted = total + added(variance), weighted + added(share)
    return quantile(confidence, pooled_freedom(total, weighted)) * math.sqrt(total + missing)


def _clipped(value: float, low: float, high: float, hard_low: float, hard_high: float) -> tuple[float, float, float]:
    """The estimate and its interval moved inside the certain bounds; bounds that are not known are NaN and move nothing."""
    if not math.isnan(hard_low):
        value, low, high = max(value, hard_low), max(low, hard_low), max(high, hard_low)
    if not math.isnan(hard_high):
        value, low, high = min(value, hard_high), min(low, hard_high), min(high, hard_high)
    return value, low, high


def _catch_up_variance(
    view: View, frontier: Frontier, pieces: Sequence[Piece], responses: tuple[int, ...], gradient: Sequence[float]
) -> float:
    """The variance that comes from archived rows that were not read yet."""
    catch_up = view.catch_up
    if catch_up is None:
        return 0.0
    inside = np.zeros(view.frame.tree.leaves, bool)
    for node in frontier.covered.tolist():
        inside[view.frame.tree.leaves_below(node)] = True
    read = catch_up.statistics
    lines = [np.stack([np.atleast_1d(line) for line in piece_means(each, responses)], axis=1) for each in pieces]
    means = np.concatenate(lines) if lines else np.empty((0, len(responses)))
    return catch_up.variance(read[inside].sum(axis=0), read[frontier.partial, ROWS], means, responses, np.array(gradient))


def _hard(view: View, name: str, frontier: Frontier, covered: Floats, pieces: Sequence[Piece]) -> bounds.Bounds:
    """Bounds that hold with certainty; NaN when nothing is certain."""
    if view.catch_up is not None:
        return bounds.UNKNOWN
    centre, count = view.frame.centre, float(covered[COUNT])
    total = float(covered[SUM]) + centre * count
    match name:
        case "rows":
            return bounds.row_bounds(float(covered[ROWS]), pieces)
        case "count":
            return bounds.count_bounds(count, pieces)
        case "sum":
            return bounds.sum_bounds(total, pieces, centre, view.magnitude)
        case "avg":
            return bounds.average_bounds(total, count, pieces)
    low, high = bounds.variance_bounds(*view.reach(frontier), samples=name.endswith("samp"))
    return (low, math.sqrt(high)) if name.startswith("std") else (low, high)


def _extreme(view: View, name: str, box: Box, frontier: Frontier) -> Estimate:
    """MIN or MAX: covered nodes and matching sampled rows exist for sure; a partial leaf may hold anything up to its extreme."""
    sign = 1.0 if name == "max" else -1.0
    tops, leaf_tops = (view.node_top, view.top) if name == "max" else (-view.node_bottom, -view.bottom)
    attained = _largest(tops[frontier.covered][view.node_exact[frontier.covered]])
    possible = max(_largest(tops[frontier.covered]), _largest(leaf_tops[frontier.partial]))
    processed = 0
    if frontier.partial.size and possible > attained:
        attained = max(attained, _largest(sign * view.features.matching_values(frontier.partial, box)))
        processed = int(view.features.sizes[frontier.partial].sum())
    if possible == -math.inf and view.catch_up is None:
        return certain(math.nan)
    possible = possible if view.catch_up is None else math.inf
    value = attained if attained > -math.inf else possible
    if attained == -math.inf and view.catch_up is None:
        attained = min(sign * each for each in view.reach(frontier))
    low, high = sorted((sign * attained, sign * possible))
    hard_low, hard_high = (each if math.isfinite(each) else math.nan for each in (low, high))
    return Estimate(sign * value if math.isfinite(value) else math.nan, low, high, hard_low, hard_high, low == high, processed)


def _largest(values: Floats) -> float:
    return float(values.max()) if values.size else -math.inf
