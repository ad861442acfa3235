"""The extreme average of values of which some must count and others may."""

from __future__ import annotations

from collections.abc import Sequence


def extreme_average(total: float, count: float, others: Sequence[tuple[float, float, float]], sign: int) -> float | None:
    """The least (sign -1) or greatest (1) average of rows of a known total and others: value, rows that count, rows that may.

    It is reached when the most extreme values give all their rows, as long as they are more extreme than the average so far, and
    the others as few as they can. None where no row is. Computed in doubles: callers leave room for their rounding.

    >>> extreme_average(10.0, 1.0, [(0.0, 1.0, 5.0), (40.0, 0.0, 1.0), (16.0, 0.0, 2.0)], 1)
    16.666666666666668
    """
    for value, must, _ in others:
        if must:
            total, count = total + value * must, count + must
    best = total / count if count else None
    for value, _, may in sorted(others, reverse=sign > 0):
        if best is not None and sign * (value - best) <= 0:
            break
        if may > 0:
            total, count = total + value * may, count + may
            best = total / count
    return best
