"""Estimates as the library's one answer type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from nearly.answer import NO_ROWS, Answer, UnseenRows
from nearly.synopsis.query.answering import Estimate

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


def relative_error(estimate: Estimate) -> float:
    """The distance from the value to the farther end of its interval as a share of the value; 0 for what is certain, infinite when
    the value is 0 or the interval unknown."""
    if estimate.exact:
        return 0.0
    reach = max(estimate.high - estimate.value, estimate.value - estimate.low)
    if math.isnan(reach) or math.isnan(estimate.low) or math.isnan(estimate.high) or not estimate.value:
        return 0.0 if reach == 0 else math.inf
    return abs(reach / estimate.value)


def answer_of(
    tables: Mapping[str, pa.Table], estimates: Sequence[Estimate], presence: Presence, confidence: float, source: str
) -> Answer:
    """An answer from its five tables. It is exact when all estimates are and exactly the groups that there are are shown."""
    value, low, high, hard_low, hard_high = (tables[bound] for bound in BOUNDS)
    exact = presence.complete and all(each.exact for each in estimates)
    error = max([presence.error, *map(relative_error, estimates)])
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
