"""What a row in a cell can do to an aggregate: count with a value from a range, or not count at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from nearly.algebra.boxes import Box, Region, Space, difference, intersection
from nearly.missing.programmes.measures import MissingMeasure, Span

SpanOf: TypeAlias = Callable[[Box], Span]

AMOUNTS = "amounts"
RANKS = "ranks"
"""The two kinds of spans: numbers to add up, or ranks to compare."""


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
    measure: MissingMeasure

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


def in_units(effects: Sequence[Effect]) -> tuple[list[Effect], Fraction]:
    """The effects with their ends as whole multiples of a common unit; None for an infinity, which has no limit on its side."""
    ends = [end for effect in effects if effect.counts for end in (effect.low, effect.high) if not isinstance(end, float)]
    scale = math.lcm(*{end.denominator for end in ends})

    def whole(end: Any) -> int | None:
        return None if isinstance(end, float) else end.numerator * (scale // end.denominator)

    made = [Effect(True, effect.silent, whole(effect.low), whole(effect.high)) if effect.counts else effect for effect in effects]
    return made, Fraction(1, scale)
