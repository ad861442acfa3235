"""An answer as a drawing: bars, or lines over times and numbers, with the interval of every value that is uncertain."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearly.errors import SchemaError, unknown
from nearly.printing.cells import is_numeric, value_text
from nearly.printing.characters import cut
from nearly.printing.html import picture
from nearly.printing.numbers import number_text

WIDTH, HEIGHT = 560, 260
LEFT, TOP, RIGHT, BOTTOM = 90, 28, 14, 58
"""Room around the drawing for the title, the ends of the value axis and the labels."""
MOST_BARS, MOST_POINTS, MOST_LABELS = 40, 2_000, 12
INK, FAINT, COLOUR = "#444", "#bbb", "#0a7ea4"


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing; a notebook shows it, `save` writes it to a file."""

    svg: str
    title: str

    def _repr_html_(self) -> str:
        return picture(self.svg, self.title)

    def save(self, path: str | Path) -> Path:
        """Write the drawing as an SVG file."""
        place = Path(path)
        place.write_text(self.svg, encoding="utf-8")
        return place

    def __repr__(self) -> str:
        return f"<Chart: {self.title}>"


@dataclass(frozen=True, slots=True)
class _Value:
    """A value at its place, and its ends where they are known."""

    label: str
    place: float
    value: float
    low: float | None
    high: float | None


def chart(table: pa.Table, low: pa.Table, high: pa.Table, x: str | None = None, y: str | None = None) -> Chart:
    """The drawing of one number of each row: over time or another number as a line with a band, else as bars with their ends."""
    across, up = _columns(table, x, y)
    values = _values(table, low, high, across, up)
    over = table.column(across).type if across is not None else None
    ordered = over is not None and (pa.types.is_temporal(over) or is_numeric(over)) and len(values) > 2
    shown = sorted(values, key=lambda each: each.place)[:MOST_POINTS] if ordered else values[:MOST_BARS]
    name = table.column_names[up]
    title = name if across is None else f"{name} by {table.column_names[across]}"
    left_out = len(values) - len(shown)
    if left_out:
        title = f"{title} (the first {len(shown):,} of {len(values):,})"
    return Chart(_drawn(shown, title, ordered), title)


def _columns(table: pa.Table, x: str | None, y: str | None) -> tuple[int | None, int]:
    """The columns across and up: those that are named, or the first that tells rows apart and the first other number."""
    names = [name.lower() for name in table.column_names]
    for given in (x, y):
        if given is not None and given.lower() not in names:
            raise unknown("column", given, table.column_names)
    numbers = [place for place, type_ in enumerate(table.schema.types) if is_numeric(type_)]
    across = None if x is None else names.index(x.lower())
    if y is not None:
        up = names.index(y.lower())
        if up not in numbers:
            raise SchemaError(f"column {y!r} is {table.schema.types[up]}; y must be a column of numbers")
    else:
        free = [place for place in numbers if place != across]
        if not free:
            raise SchemaError("there is no column of numbers to draw")
        up = free[0] if across is not None or free[0] != 0 or len(free) == 1 else free[1]
    if across is None and table.num_columns > 1:
        across = next(place for place in range(table.num_columns) if place != up)
    return across, up


def _values(table: pa.Table, low: pa.Table, high: pa.Table, across: int | None, up: int) -> list[_Value]:
    labels = [""] * table.num_rows if across is None else table.column(across).to_pylist()
    sides = [side.column(up).to_pylist() for side in (table, low, high)]
    found = []
    for row, (label, value, below, above) in enumerate(zip(labels, *sides, strict=True)):
        number = _number(value)
        if number is not None:
            found.append(
                _Value(value_text(label) if across is not None else "", _place(label, row), number, _number(below), _number(above))
            )
    if not found:
        raise SchemaError("there is no value to draw")
    return found


def _number(value: Any) -> float | None:
    number = None if value is None else float(value)
    return number if number is not None and math.isfinite(number) else None


def _place(label: Any, row: int) -> float:
    match label:
        case dt.datetime():
            return label.timestamp()
        case dt.date():
            return float(label.toordinal())
        case bool() | str() | None:
            return float(row)
    try:
        return float(label)
    except (TypeError, ValueError):
        return float(row)


@dataclass(frozen=True, slots=True)
class _Scale:
    """From places and values to the drawing."""

    first: float
    last: float
    low: float
    high: float

    def x(self, place: float) -> float:
        span = self.last - self.first
        share = (place - self.first) / span if span else 0.5
        return LEFT + (WIDTH - LEFT - RIGHT) * share

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - self.low) / (self.high - self.low)


def _drawn(values: Sequence[_Value], title: str, ordered: bool) -> str:
    known = [each for value in values for each in (value.value, value.low, value.high) if each is not None]
    low, high = min(known), max(known)
    if not ordered or low == high:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        high = low + 1.0
    if ordered:
        scale = _Scale(values[0].place, values[-1].place, low, high)
        marks = _line(values, scale)
        places = [each.place for each in values]
    else:
        scale = _Scale(-0.5, len(values) - 0.5, low, high)
        marks = _bars(values, scale)
        places = [float(place) for place in range(len(values))]
    parts = [*_axes(scale, title), *marks, *_labels(values, places, scale)]
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" role="img">{"".join(parts)}</svg>'


def _axes(scale: _Scale, title: str) -> list[str]:
    bottom = HEIGHT - BOTTOM
    zero = scale.y(min(max(0.0, scale.low), scale.high))
    return [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _text(LEFT, 16, "start", 13, title),
        f'<path d="M{LEFT},{TOP} V{bottom} M{LEFT},{zero:.1f} H{WIDTH - RIGHT}" fill="none" stroke="{FAINT}"/>',
        _text(LEFT - 5, TOP + 4, "end", 10, number_text(scale.high)),
        _text(LEFT - 5, bottom + 3, "end", 10, number_text(scale.low)),
    ]


def _bars(values: Sequence[_Value], scale: _Scale) -> list[str]:
    room = (WIDTH - LEFT - RIGHT) / len(values)
    zero, parts = scale.y(min(max(0.0, scale.low), scale.high)), []
    for place, each in enumerate(values):
        middle, top = scale.x(float(place)), scale.y(each.value)
        parts.append(
            f'<rect x="{middle - room * 0.35:.1f}" y="{min(top, zero):.1f}" width="{room * 0.7:.1f}" '
            f'height="{max(abs(zero - top), 0.5):.1f}" fill="{COLOUR}" fill-opacity="0.6"/>'
        )
        if each.low is not None and each.high is not None and each.low != each.high:
            ends = scale.y(each.low), scale.y(each.high)
            tick = min(6.0, room * 0.2)
            caps = "".join(f" M{middle - tick:.1f},{end:.1f} h{2 * tick:.1f}" for end in ends)
            parts.append(f'<path d="M{middle:.1f},{ends[0]:.1f} V{ends[1]:.1f}{caps}" stroke="{INK}" fill="none"/>')
    return parts


def _line(values: Sequence[_Value], scale: _Scale) -> list[str]:
    points = " ".join(f"{scale.x(each.place):.1f},{scale.y(each.value):.1f}" for each in values)
    known = [(scale.x(each.place), each.low, each.high) for each in values if each.low is not None and each.high is not None]
    upper = [f"{x:.1f},{scale.y(high):.1f}" for x, _, high in known if high is not None]
    lower = [f"{x:.1f},{scale.y(low):.1f}" for x, low, _ in reversed(known) if low is not None]
    return [
        f'<polygon points="{" ".join([*upper, *lower])}" fill="{COLOUR}" fill-opacity="0.18"/>',
        f'<polyline points="{points}" fill="none" stroke="{COLOUR}" stroke-width="1.5"/>',
    ]


def _labels(values: Sequence[_Value], places: Sequence[float], scale: _Scale) -> list[str]:
    """As many labels as have room, evenly spread, slanted."""
    step = max(1, math.ceil(len(values) / MOST_LABELS))
    found = []
    for each, place in list(zip(values, places, strict=True))[::step]:
        x, y = scale.x(place), HEIGHT - BOTTOM + 14
        label = escape(cut(each.label, 16))
        found.append(
            f'<text x="{x:.1f}" y="{y}" font-size="10" font-family="sans-serif" text-anchor="end" fill="{INK}" '
            f'transform="rotate(-30 {x:.1f} {y})">{label}</text>'
        )
    return found


def _text(x: float, y: float, anchor: str, size: int, text: str) -> str:
    style = f'font-size="{size}" font-family="sans-serif" text-anchor="{anchor}" fill="{INK}"'
    return f'<text x="{x}" y="{y}" {style}>{escape(text)}</text>'
