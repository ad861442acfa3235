"""One query against one tree: frontier, certain bounds, estimate, interval; and estimates as the library's one answer type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from nearly.algebra.moments import pooled_freedom, quantile
from nearly.answer import NO_ROWS, Answer, UnseenRows, relative_error
from nearly.synopsis.query import bounds
from nearly.synopsis.query.aggregates import ESTIMATED, Derivation
from nearly.synopsis.query.exact_part import known_value, rounding
from nearly.synopsis.query.features import Number, StratumSums
from nearly.synopsis.query.totals import added, exact_totals, piece_variance, totals
from nearly.synopsis.query.view import View
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


def answer(view: View, aggregate: str, box: Box, confidence: float) -> Estimate:
    """The aggregate over the rows in a box."""
    frontier = view.frontier(box)
    if aggregate not in ESTIMATED:
        return _extreme(view, aggregate, box, frontier)
    covered = view.node_statistics[frontier.covered, :FIXED].sum(axis=0)
    if frontier.partial.size:
        covered += statistics_of(view.outliers_in(frontier, box), view.frame.centre)
    if not frontier.partial.size:
        return _known(view, aggregate, frontier, covered, 0)
    if view.features.whole[frontier.partial].all():
        matching = view.features.matching_values(frontier.partial, box)
        covered += statistics_of(matching, view.frame.centre)
        return _known(view, aggregate, frontier, covered, len(matching))
    if aggregate == "avg" and covered[COUNT] > 0:
        low, high = view.reach(frontier)
        if low == high:
            return certain(low)
    return _sampled(view, ESTIMATED[aggregate], box, frontier, covered, confidence)


def _known(view: View, aggregate: str, frontier: Frontier, statistics: Floats, processed: int) -> Estimate:
    found = known_value(aggregate, statistics, view.turnover(frontier), view.frame.centre)
    return Estimate(found.value, found.low, found.high, found.low, found.high, found.exact, processed)


def _sampled(view: View, aggregate: Derivation, box: Box, frontier: Frontier, covered: Floats, confidence: float) -> Estimate:
    responses, features = aggregate.responses, view.features
    pieces = features.pieces(frontier.partial, box)
    values = totals(exact_totals(covered, responses), pieces, responses)
    value, gradient = aggregate.derive(values, view.frame.centre)
    hard = _hard(view, aggregate.name, frontier, covered, pieces)
    if math.isnan(value) or any(added(each.stratum.blind) for each in pieces):
        low, high = hard
        value = _fallback(value, low, high)
    else:
        variances = [piece_variance(features, each, responses, gradient) for each in pieces]
        half = _half_width(variances, pieces, confidence)
        low, high = (value - half, value + half) if half > 0 else hard  # without a proof no interval is a point
    value, low, high = _clipped(value, low, high, *hard)
    processed = int(sum(added(each.stratum.size) for each in pieces))
    return Estimate(value, low, high, hard[0], hard[1], False, processed, view.share(frontier))


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


def _hard(view: View, name: str, frontier: Frontier, covered: Floats, pieces: Sequence[StratumSums]) -> bounds.Bounds:
    """Bounds that hold with certainty; NaN when nothing is certain."""
    centre, count = view.frame.centre, float(covered[COUNT])
    total = float(covered[SUM]) + centre * count
    slack = rounding(view.turnover(frontier))
    match name:
        case "rows":
            return bounds.row_bounds(float(covered[ROWS]), pieces)
        case "count":
            return bounds.count_bounds(count, pieces)
        case "sum":
            return bounds.sum_bounds(total, pieces, centre, slack)
        case "avg":
            return bounds.average_bounds(total, count, pieces, slack)
    low, high = bounds.variance_bounds(*view.reach(frontier), samples=name.endswith("samp"))
    return (low, math.sqrt(high)) if name.startswith("std") else (low, high)


def _extreme(view: View, name: str, box: Box, frontier: Frontier) -> Estimate:
    """MIN or MAX: covered nodes, outliers and matching sampled rows exist for sure; a cut leaf may hold anything up to the
    bounds of its other rows."""
    sign = 1.0 if name == "max" else -1.0
    tops, rest = (view.node_top, view.rest_top) if name == "max" else (-view.node_bottom, -view.rest_bottom)
    outlier = _largest(sign * view.outliers_in(frontier, box)) if frontier.partial.size else -math.inf
    attained = max(_largest(tops[frontier.covered][view.node_exact[frontier.covered]]), outlier)
    cut = frontier.partial[~view.features.whole[frontier.partial]] if frontier.partial.size else frontier.partial
    possible = max(_largest(tops[frontier.covered]), outlier, _largest(rest[cut]))
    processed = 0
    if frontier.partial.size and (possible > attained or len(cut) < len(frontier.partial)):
        sampled = _largest(sign * view.features.matching_values(frontier.partial, box))
        attained, possible = max(attained, sampled), max(possible, sampled)
        processed = int(view.features.sizes[frontier.partial].sum())
    if possible in (-math.inf, attained):
        return certain(sign * possible if math.isfinite(possible) else math.nan, processed)
    value = attained if attained > -math.inf else possible
    if attained == -math.inf:
        attained = min(sign * each for each in view.reach(frontier))
    low, high = sorted((sign * attained, sign * possible))
    return Estimate(sign * value, low, high, low, high, False, processed, view.share(frontier))


def _largest(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.max()) if known.size else -math.inf


BOUNDS = ("value", "low", "high", "hard_low", "hard_high")


@dataclass(frozen=True, slots=True)
class Presence:
    """Which groups an answer shows: all of them have rows for sure; `unseen` is what is known of those that are not shown."""

    shown: int = 1
    unseen: UnseenRows = NO_ROWS

    @property
    def complete(self) -> bool:
        """Whether no other group can have a row."""
        return not self.unseen.most

    @property
    def error(self) -> float:
        """How many groups may come, as a share of those that are shown."""
        if self.complete:
            return 0.0
        return self.unseen.most / self.shown if self.shown else math.inf


ONE_ROW = Presence()


def answer_of(
    tables: Mapping[str, pa.Table], estimates: Sequence[Estimate], presence: Presence, confidence: float, source: str
) -> Answer:
    """An answer from its five tables. It is exact when all estimates are and exactly the groups that there are are shown."""
    value, low, high, hard_low, hard_high = (tables[bound] for bound in BOUNDS)
    exact = presence.complete and all(each.exact for each in estimates)
    error = max([presence.error, *(0.0 if each.exact else relative_error(each.value, each.low, each.high) for each in estimates)])
    return Answer(
        value, low, high, hard_low, hard_high, 1.0 if exact else min((each.share for each in estimates), default=0.0), exact,
        confidence, error, source, {"sampled_rows": sum(each.processed for each in estimates)}, complete=presence.complete,
        unseen=presence.unseen,
    )  # fmt: skip


def single(name: str, estimate: Estimate, confidence: float, source: str) -> Answer:
    """The answer of one number."""
    schema = pa.schema([(name, pa.float64())])
    if estimate.exact:
        value = pa.Table.from_arrays([_numbers(estimate.value)], schema=schema)
        return Answer.exactly(value, source, confidence, {"sampled_rows": estimate.processed})
    numbers = _numbers(*(getattr(estimate, bound) for bound in BOUNDS))
    tables = {bound: pa.Table.from_arrays([numbers.slice(place, 1)], schema=schema) for place, bound in enumerate(BOUNDS)}
    return answer_of(tables, [estimate], ONE_ROW, confidence, source)


def _numbers(*values: float) -> pa.Array:
    return pa.array([value if math.isfinite(value) else None for value in values], pa.float64())


def tabular(
    columns: Sequence[tuple[str, pa.Array | Sequence[Estimate]]], presence: Presence, confidence: float, source: str
) -> Answer:
    """The answer of several columns: arrays are certain (group keys), others are estimates."""
    tables = {
        bound: pa.table([_column(values, bound) for _, values in columns], names=[name for name, _ in columns]) for bound in BOUNDS
    }
    estimates = [each for _, values in columns if not isinstance(values, pa.Array) for each in values]
    return answer_of(tables, estimates, presence, confidence, source)


def _column(values: pa.Array | Sequence[Estimate], bound: str) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    return _numbers(*(getattr(each, bound) for each in values))
