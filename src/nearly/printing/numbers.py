"""Numbers a person can read: thousands apart, and no more digits than are known.

Law: the interval that is shown contains the interval that is meant. An estimate is rounded to the second digit of its half-width,
and the half-width, or each end, is rounded away from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from typing import TypeAlias

Number: TypeAlias = int | float | Decimal

KNOWN_DIGITS = 2
"""Digits of the half-width that are shown; further ones say nothing."""
DOUBLE_DIGITS = 8
"""Significant digits of a double that are shown; the last of all depend on the order of addition."""
LOPSIDED = 1.5
"""Beyond this ratio of its two halves, an interval is shown by its ends instead of one half-width."""
LARGEST_PLAIN = 10**15
SMALLEST_PLAIN = Decimal("0.0001")
_EVERY_DIGIT = Context(prec=1400)
"""Enough for the difference of any two doubles."""


@dataclass(frozen=True, slots=True)
class NumberText:
    """A number and its interval as text."""

    value: str
    interval: str


def number_text(value: Number, decimals: int | None = None) -> str:
    """A number that is known; a double with so many decimals, or else as many as it has.

    >>> number_text(1234567), number_text(Decimal("1234.50")), number_text(1234.5), number_text(float("nan"))
    ('1,234,567', '1,234.50', '1,234.5', 'NaN')
    """
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return _not_finite(float(value))
    if isinstance(value, Decimal):
        return f"{value:,f}"
    if not _is_plain(value):
        return f"{value:.{DOUBLE_DIGITS}g}"
    return f"{value:,.{decimals_of([value]) if decimals is None else decimals}f}"


def decimals_of(values: Iterable[float]) -> int:
    """The decimals that doubles below each other are shown with: as many as the largest has room for, as few as all need.

    >>> decimals_of([1234.5, 0.25]), decimals_of([1e9 / 3, 2.5]), decimals_of([])
    (2, 0, 0)
    """
    plain = [value for value in values if math.isfinite(value) and _is_plain(value)]
    room = max(0, DOUBLE_DIGITS - 1 - max((_magnitude(Decimal(value)) for value in plain), default=0))
    texts = [f"{value:.{room}f}".rstrip("0") for value in plain]
    return max((len(text.partition(".")[2]) for text in texts), default=0)


def estimate_text(value: Number, low: Number, high: Number) -> NumberText:
    """A number that lies between two others: `value ± half-width`, or `value [low, high]` where that says much more.

    >>> estimate_text(37_734_107, 37_424_000, 38_044_000)
    NumberText(value='37,730,000', interval='± 320,000')
    >>> estimate_text(3.14159, 3.1, 4)
    NumberText(value='3.14', interval='[3.10, 4.00]')
    """
    if not all(math.isfinite(each) for each in (value, low, high)):
        return NumberText(number_text(value), f"[{number_text(low)}, {number_text(high)}]")
    with localcontext(_EVERY_DIGIT):
        return _rounded(Decimal(value), Decimal(low), Decimal(high), whole=isinstance(value, int))


def _rounded(middle: Decimal, low: Decimal, high: Decimal, *, whole: bool) -> NumberText:
    widest = max(abs(high - middle), abs(middle - low))
    place = _magnitude(widest) - KNOWN_DIGITS + 1
    step = Decimal(1).scaleb(max(place, 0) if whole else place)
    shown = middle.quantize(step)
    below, above = shown - low, high - shown
    if min(below, above) * Decimal(LOPSIDED) < max(below, above):
        ends = (low.quantize(step, ROUND_FLOOR), high.quantize(step, ROUND_CEILING))
        return NumberText(_plain(shown), f"[{_plain(ends[0])}, {_plain(ends[1])}]")
    return NumberText(_plain(shown), f"± {_plain(max(below, above).quantize(step, ROUND_CEILING))}")


def percent_text(share: float) -> str:
    """A share of one as a percentage; one that is not known is a question mark.

    >>> percent_text(0.0213), percent_text(0.5), percent_text(float("inf")), percent_text(0.00004), percent_text(12.0)
    ('2.1 %', '50 %', '?', '<0.01 %', '1,200 %')
    """
    if not math.isfinite(share):
        return "?"
    percent = 100 * share
    if 0 < percent < 0.01:
        return "<0.01 %"
    decimals = 0 if percent >= 10 or percent == 0 else 1 if percent >= 1 else 2
    return f"{percent:,.{decimals}f} %"


def duration_text(seconds: float) -> str:
    """Seconds as a person says them.

    >>> duration_text(0.84), duration_text(12.3), duration_text(200), duration_text(7300)
    ('0.8 s', '12 s', '3 min 20 s', '2 h 1 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def _is_plain(value: float) -> bool:
    """Whether a double is readable without an exponent."""
    return value == 0 or SMALLEST_PLAIN <= abs(value) < LARGEST_PLAIN


def _magnitude(value: Decimal) -> int:
    """The power of ten of the first digit."""
    return value.adjusted() if value else 0


def _plain(value: Decimal) -> str:
    """Without an exponent where that is readable."""
    if value and not SMALLEST_PLAIN**2 <= abs(value) < LARGEST_PLAIN**2:
        return f"{value.normalize():e}"
    return f"{value:,f}"


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
