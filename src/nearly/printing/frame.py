"""The part of an answer that is shown, as text in columns: the first rows, and as many columns as fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from nearly.printing.cells import CellText, cell, is_numeric, is_year, some_uncertain
from nearly.printing.characters import cut, visible, width
from nearly.printing.numbers import decimals_of

LONGEST_NAME = 40
GAP = 2
"""Blanks between columns."""
INNER_GAP = 1
"""Blanks between a value, its interval and its history."""


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of the answer: its name and the text of its cells. `evolving` columns have an interval in some row."""

    name: str
    numeric: bool
    cells: tuple[CellText, ...]
    evolving: bool = False
    least: tuple[int, int, int] = (0, 0, 0)
    """Widths that it had before, below which it does not go."""

    @property
    def widths(self) -> tuple[int, int, int]:
        """Columns of a terminal for the values, the intervals and the histories; the name may need more than these."""
        parts = ([each.value for each in self.cells], [each.interval for each in self.cells], [each.history for each in self.cells])
        found = (max(map(width, part), default=0) for part in parts)
        values, intervals, histories = (max(pair) for pair in zip(found, self.least, strict=True))
        return values, intervals, histories

    @property
    def width(self) -> int:
        """Columns of a terminal for all of it."""
        parts = [part for part in self.widths if part]
        return max(width(self.name), sum(parts) + INNER_GAP * (len(parts) - 1))


@dataclass(frozen=True, slots=True)
class TextTable:
    """Columns of equal length, and how many rows and columns of the answer are left out."""

    columns: tuple[TextColumn, ...]
    rows: int
    hidden_rows: int = 0
    hidden_columns: int = 0

    @classmethod
    def of(cls, table: pa.Table, low: pa.Table, high: pa.Table, rows: int) -> TextTable:
        """The first rows of three tables of one shape: values, lower and upper bounds."""
        shown = min(max(rows, 0), table.num_rows)
        columns = []
        for place, field in enumerate(table.schema):
            sides = [side.column(place).slice(0, shown).to_pylist() for side in (table, low, high)]
            columns.append(_column(field, sides))
        return cls(tuple(columns), shown, table.num_rows - shown)

    def fitted(self, room: int) -> TextTable:
        """The frame with the last columns left out that do not fit; the first one always stays."""
        total, kept = -GAP, 0
        for column in self.columns:
            total += GAP + column.width
            if total > room and kept:
                break
            kept += 1
        return replace(self, columns=self.columns[:kept], hidden_columns=self.hidden_columns + len(self.columns) - kept)

    def wrapped(self, room: int) -> tuple[TextTable, ...]:
        """All columns, in as many frames of this width as they need.

        Each begins with the first column, which tells the rows apart, unless that leaves no room for another.
        """
        frames = [self.fitted(room)]
        left = self.columns[len(frames[0].columns) :]
        while left:
            beside = replace(self, columns=(self.columns[0], *left)).fitted(room)
            alone = len(beside.columns) == 1
            frames.append(replace(self, columns=left).fitted(room) if alone else beside)
            left = left[len(frames[-1].columns) - (not alone) :]
        return tuple(replace(each, hidden_columns=self.hidden_columns) for each in frames)

    def no_narrower(self, before: TextTable | None) -> TextTable:
        """The frame with columns at least as wide as in one before, so that nothing moves when a number gets shorter."""
        if before is None or [each.name for each in before.columns] != [each.name for each in self.columns]:
            return self
        pairs = zip(self.columns, before.columns, strict=True)
        return replace(self, columns=tuple(replace(column, least=old.widths) for column, old in pairs))

    def with_histories(self, histories: Sequence[Sequence[str]]) -> TextTable:
        """The frame with a history for each cell that is not certain yet, given column by column."""
        columns = []
        for column, texts in zip(self.columns, histories, strict=True):
            cells = tuple(
                replace(each, history=text if each.interval else "") for each, text in zip(column.cells, texts, strict=True)
            )
            columns.append(replace(column, cells=cells))
        return replace(self, columns=tuple(columns))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is left out, for the reader."""
        found = []
        if self.hidden_rows:
            found.append(_more(self.hidden_rows, "row"))
        if self.hidden_columns:
            found.append(_more(self.hidden_columns, "column"))
        return tuple(found)


def _more(count: int, what: str) -> str:
    return f"{count:,} more {what}{'' if count == 1 else 's'}"


def _column(field: pa.Field, sides: list[list[Any]]) -> TextColumn:
    decimals = decimals_of([each for each in sides[0] if isinstance(each, float)])
    year = is_year(field.name, field.type)
    cells = tuple(cell(value, low, high, decimals, year=year) for value, low, high in zip(*sides, strict=True))
    return TextColumn(cut(visible(field.name), LONGEST_NAME), is_numeric(field.type), cells, some_uncertain(*sides))
