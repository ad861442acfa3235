"""Views and sets of views as vectors.

    V = [VJ, VG, VP]   VJ: which tables are joined, VG: which columns are grouped by, VP: what share of a column's values is kept
    S = [SJ, SG, SP]   of the views that are kept: 1 where any has it, of shares the largest
    N                  numbers: the share of the storage, seconds of making, gain and cost of the query at hand, what is owed

Tables and columns get their places when they are first seen, so vectors grow; a place that a vector has not got is 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nearly.autoview.learning.network import Array
from nearly.autoview.options import Holding, Option, ViewShape

NUMBERS = 6
"""Entries of a vector that are numbers, before all others."""


@dataclass(frozen=True, slots=True)
class KeptViews:
    """What is kept: how many views, and the places of their vector that are not 0."""

    views: int
    entries: tuple[tuple[int, float], ...]


class Vocabulary:
    """The places of tables and columns in vectors."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._places: dict[str, int] = {}
        for name in names:
            self.place(name)
        self._known: dict[ViewShape, tuple[tuple[int, float], ...]] = {}
        self._last: tuple[frozenset[str], KeptViews] | None = None

    def place(self, name: str) -> int:
        return self._places.setdefault(name, len(self._places))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._places)

    @property
    def width(self) -> int:
        """Of a whole input: numbers, then for each name a place of the view and one of the set."""
        return NUMBERS + 2 * len(self._places)

    def entries(self, shape: ViewShape) -> tuple[tuple[int, float], ...]:
        """The places of a view that are not 0, and what stands there."""
        found = self._known.get(shape)
        if found is None:
            pairs = [(f"J {name}", 1.0) for name in shape.tables] + [(f"G {name}", 1.0) for name in shape.groups]
            pairs += [(f"P {name}", share) for name, share in shape.selectivities]
            found = self._known[shape] = tuple((self.place(name), value) for name, value in pairs)
        return found

    def state(self, kept: Sequence[Holding]) -> KeptViews:
        """The places of a set of views that are not 0; remembered while it is the same set."""
        ids = frozenset(each.id for each in kept)
        if self._last is not None and self._last[0] == ids:
            return self._last[1]
        places: dict[int, float] = {}
        for each in kept:
            for place, value in self.entries(each.option.shape):
                if value > places.get(place, 0.0):
                    places[place] = value
        self._last = (ids, KeptViews(len(kept), tuple(places.items())))
        return self._last[1]

    def vector(self, option: Option, state: KeptViews, capacity: float, owed: float) -> Array:
        """The input for making or keeping a view in a state."""
        pairs = [(NUMBERS + 2 * place, value) for place, value in self.entries(option.shape)]
        made = np.zeros(self.width)
        made[:NUMBERS] = (
            option.bytes / max(capacity, 1.0), math.log1p(100 * option.seconds), math.log1p(100 * max(option.gain, 0.0)),
            math.log1p(100 * max(option.cost, 0.0)), math.log1p(100 * owed), state.views / 32,
        )  # fmt: skip
        for place, value in pairs:
            made[place] = value
        for place, value in state.entries:
            made[NUMBERS + 2 * place + 1] = value
        return made


def stacked(vectors: Sequence[Array], width: int) -> Array:
    """Vectors of different ages as rows of one length."""
    made = np.zeros((len(vectors), width))
    for row, each in enumerate(vectors):
        made[row, : len(each)] = each
    return made
