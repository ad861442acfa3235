"""How the values of an answer have moved: the past of every cell that is shown."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from nearly.answer import Answer
from nearly.printing.cells import is_numeric, some_uncertain

LONGEST = 64
"""Points kept of a cell; beyond it every second one is dropped, so that the beginning stays."""
SPARK_COLUMNS = 8
_LEVELS = "▁▂▃▄▅▆▇█"

Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """A value and its bounds after a share of the data was read; a bound that is withheld is None."""

    progress: float
    value: float
    low: float | None
    high: float | None


@dataclass(slots=True)
class Trail:
    """The past of the numbers in the first rows, from one answer to the next.

    A row is the same one as before when its columns that never were uncertain have the same values; among equal rows, and where
    every column is uncertain, the place counts.
    """

    rows: int
    evolving: set[int] = field(default_factory=set)
    _points: dict[tuple[Key, int], list[Point]] = field(default_factory=dict)
    _keys: list[Key] = field(default_factory=list)

    def add(self, answer: Answer) -> None:
        """Remember the numbers of an answer."""
        sides = [side.slice(0, self.rows) for side in (answer.table, answer.low, answer.high)]
        self._find_evolving(sides)
        self._keys = self._keys_of(sides[0])
        for place in self.evolving:
            columns = [side.column(place).to_pylist() for side in sides]
            for key, value, low, high in zip(self._keys, *columns, strict=True):
                if value is not None:
                    points = self._points.setdefault((key, place), [])
                    points.append(Point(answer.progress, float(value), _number(low), _number(high)))
                    if len(points) > LONGEST:
                        del points[1::2]

    def points(self, row: int, place: int) -> tuple[Point, ...]:
        """The past of a cell of the newest answer."""
        return tuple(self._points.get((self._keys[row], place), ()))

    def sparklines(self, columns: int) -> list[list[str]]:
        """For each column, the past of each cell of the newest answer as a small curve."""
        return [[sparkline(self.points(row, place)) for row in range(len(self._keys))] for place in range(columns)]

    def _find_evolving(self, sides: list[pa.Table]) -> None:
        numeric = [place for place, type_ in enumerate(sides[0].schema.types) if is_numeric(type_)]
        found = {place for place in numeric if some_uncertain(*(side.column(place).to_pylist() for side in sides))}
        if not found <= self.evolving:
            self.evolving |= found
            self._points.clear()

    def _keys_of(self, table: pa.Table) -> list[Key]:
        fixed = [table.column(place).to_pylist() for place in range(table.num_columns) if place not in self.evolving]
        seen: Counter[str] = Counter()
        keys: list[Key] = []
        for row in range(table.num_rows):
            text = repr([column[row] for column in fixed])
            keys.append((text, seen[text]))
            seen[text] += 1
        return keys


def sparkline(points: tuple[Point, ...]) -> str:
    """The values in the range of the first interval: a curve that flattens as the value settles.

    >>> sparkline((Point(0.1, 5.0, 0.0, 10.0), Point(0.5, 9.9, 9.0, 10.0)))
    '▅█'
    """
    if len(points) < 2:
        return ""
    first = points[0]
    ends = [each for each in (first.low, first.high) if each is not None]
    low, high = min([*ends, *(each.value for each in points)]), max([*ends, *(each.value for each in points)])
    span = high - low
    kept = [points[round(step * (len(points) - 1) / (SPARK_COLUMNS - 1))] for step in range(SPARK_COLUMNS)]
    shown = points if len(points) <= SPARK_COLUMNS else kept
    return "".join(_level((each.value - low) / span if span > 0 else 0.5) for each in shown)


def _level(share: float) -> str:
    """A bar for a share of the height; what is not a number has none."""
    return _LEVELS[min(int(share * len(_LEVELS)), len(_LEVELS) - 1)] if 0 <= share <= 1 else " "


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
