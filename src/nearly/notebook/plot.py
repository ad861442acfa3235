"""How a value converges, as a drawing in the page: its estimate as a line within the band of its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from nearly.answer import Answer
from nearly.display.trail import Point, Trail
from nearly.printing.cells import value_text
from nearly.printing.html import picture
from nearly.printing.numbers import number_text

WIDTH, HEIGHT = 420, 150
LEFT, TOP, RIGHT, BOTTOM = 110, 22, 12, 24
"""Room around the drawing for the title, the two ends of the value axis and the per cent axis."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From shares read and values to places in the drawing. Law: the lowest value is at the bottom, the highest at the top."""

    low: float
    high: float

    @classmethod
    def of(cls, points: tuple[Point, ...]) -> Scale:
        """From all values and bounds; a little room around a constant."""
        known = [each for point in points for each in (point.value, point.low, point.high) if each is not None]
        finite = [each for each in known if math.isfinite(each)]
        low, high = min(finite), max(finite)
        margin = (abs(low) or 1.0) * 0.01 if low == high else 0.0
        return cls(low - margin, high + margin)

    def x(self, progress: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * min(max(progress, 0.0), 1.0)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def convergence_plot(answer: Answer, trail: Trail) -> str:
    """The drawing for the first number that has been uncertain; nothing before there are two points of it."""
    for place in sorted(trail.evolving):
        points = tuple(each for each in trail.points(0, place) if math.isfinite(each.value)) if answer.table.num_rows else ()
        if len(points) >= 2:
            title = _title(answer, trail, place)
            return picture(drawing(points, title), f"{title}: its value and interval while more is read")
    return ""


def drawing(points: tuple[Point, ...], title: str) -> str:
    """An SVG with the band of the intervals, the line of the values, and the ends of both axes."""
    scale = Scale.of(points)
    bottom = HEIGHT - BOTTOM
    line = " ".join(f"{scale.x(each.progress):.1f},{scale.y(each.value):.1f}" for each in points)
    parts = [
        f'<text x="{LEFT}" y="14" font-size="12" fill="#444">{escape(title)}</text>',
        f'<path d="M{LEFT},{TOP} V{bottom} H{WIDTH - RIGHT}" fill="none" stroke="#bbb"/>',
        f'<polygon points="{_band(points, scale)}" fill="#0a7ea4" fill-opacity="0.18"/>',
        f'<polyline points="{line}" fill="none" stroke="#0a7ea4" stroke-width="1.5"/>',
        *(f'<circle cx="{scale.x(each.progress):.1f}" cy="{scale.y(each.value):.1f}" r="2" fill="#0a7ea4"/>' for each in points),
        _label(LEFT - 4, TOP + 4, "end", number_text(scale.high)), _label(LEFT - 4, bottom, "end", number_text(scale.low)),
        _label(LEFT, HEIGHT - 8, "start", "0 % read"), _label(WIDTH - RIGHT, HEIGHT - 8, "end", "100 %"),
    ]  # fmt: skip
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" role="img">{"".join(parts)}</svg>'


def _band(points: tuple[Point, ...], scale: Scale) -> str:
    """Along the upper bounds and back along the lower ones, where both are known."""
    known = [(scale.x(each.progress), each.low, each.high) for each in points if each.low is not None and each.high is not None]
    known = [each for each in known if math.isfinite(each[1]) and math.isfinite(each[2])]
    upper = [f"{x:.1f},{scale.y(high):.1f}" for x, _, high in known]
    lower = [f"{x:.1f},{scale.y(low):.1f}" for x, low, _ in reversed(known)]
    return " ".join([*upper, *lower])


def _label(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x}" y="{y}" font-size="10" text-anchor="{anchor}" fill="#666">{escape(text)}</text>'


def _title(answer: Answer, trail: Trail, place: int) -> str:
    """The column, and the row by its columns that are certain."""
    fixed = [each for each in range(answer.table.num_columns) if each not in trail.evolving]
    row = ", ".join(value_text(answer.table.column(each)[0].as_py()) for each in fixed)
    name = answer.table.column_names[place]
    return f"{name} ({row})" if row else name
