"""What a row in a cell can do to an aggregate: count with a value from a range, or not count at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from nearly.algebra.boxes import Box, Region, Space, difference, intersection
from nearly.missing.measures import Measure, Span

SpanOf: TypeAlias = Callable[[Box], Span]


@dataclass(frozen=True, slots=True)
class Effect:
    """A row in the cell may count (`counts`) with a value from `low` to `high`, or be `silent`: outside the query, or null."""

    counts: bool
    silent: bool
    low: Any = None
    high: Any = None

    def at(self, end: str) -> Any:
        return self.low if end == "low" else self.high


@dataclass(frozen=True, slots=True)
class Question:
    """Which rows an aggregate is about, and what it takes of each."""

    region: Region
    measure: Measure

    def effect(self, cell: Region, space: Space, span_of: SpanOf) -> Effect:
        """What the rows of a cell can do."""
        inside = intersection(cell, self.region)
        spans = [span_of(box) for box in inside]
        counting = [span for span in spans if span.some]
        silent = any(span.null for span in spans) or bool(difference(cell, self.region, space))
        if not counting:
            return Effect(counts=False, silent=silent)
        return Effect(True, silent, least([span.low for span in counting]), greatest([span.high for span in counting]))


def least(values: Sequence[Any]) -> Any:
    """The least value; None (no least one) wins."""
    return None if any(value is None for value in values) else min(values)


def greatest(values: Sequence[Any]) -> Any:
    return None if any(value is None for value in values) else max(values)


def finite(value: Any) -> Fraction | None:
    """A number of exact arithmetic, or None for an infinity."""
    return None if value is None or (isinstance(value, float) and math.isinf(value)) else value
