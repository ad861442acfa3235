"""Estimates as the library's one answer type."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa

from nearly.answer import Answer
from nearly.synopsis.query.answering import Estimate

_SCHEMAS: dict[str, pa.Schema] = {}


def relative_error(estimate: Estimate) -> float:
    """Half the interval as a share of the value; 0 for what is certain, infinite when the value is 0 or unknown."""
    if estimate.exact:
        return 0.0
    half = max(estimate.high - estimate.value, estimate.value - estimate.low)
    return abs(half / estimate.value) if estimate.value and not math.isnan(half) else math.inf


def single(name: str, estimate: Estimate, confidence: float, source: str) -> Answer:
    """The answer of one number."""
    schema = _SCHEMAS.get(name)
    if schema is None:
        schema = _SCHEMAS[name] = pa.schema([(name, pa.float64())])

    stats = {"sampled_rows": estimate.processed}
    if estimate.exact:
        value = pa.Table.from_arrays([_numbers(estimate.value)], schema=schema)
        return Answer(value, value, value, value, value, 1.0, True, confidence, 0.0, source, stats)
    numbers = _numbers(estimate.value, estimate.low, estimate.high, estimate.hard_low, estimate.hard_high)
    value, low, high, hard_low, hard_high = (
        pa.Table.from_arrays([numbers.slice(place, 1)], schema=schema) for place in range(len(numbers))
    )
    error = relative_error(estimate)
    return Answer(value, low, high, hard_low, hard_high, 1.0, False, confidence, error, source, stats)


def _numbers(*values: float) -> pa.Array:
    return pa.array([None if value != value else value for value in values], pa.float64())  # noqa: PLR0124  (NaN is null)


def tabular(columns: Sequence[tuple[str, pa.Array | Sequence[Estimate]]], confidence: float, source: str) -> Answer:
    """The answer of several columns: arrays are certain (group keys), others are estimates."""
    bounds = ("value", "low", "high", "hard_low", "hard_high")
    tables = {
        bound: pa.table([_column(values, bound) for _, values in columns], names=[name for name, _ in columns]) for bound in bounds
    }
    estimates = [each for _, values in columns if not isinstance(values, pa.Array) for each in values]
    return Answer(
        tables["value"], tables["low"], tables["high"], tables["hard_low"], tables["hard_high"], 1.0,
        all(each.exact for each in estimates), confidence, max(map(relative_error, estimates), default=0.0), source,
        {"sampled_rows": sum(each.processed for each in estimates)},
    )  # fmt: skip


def _column(values: pa.Array | Sequence[Estimate], bound: str) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    return _numbers(*(getattr(each, bound) for each in values))
