"""The extreme average of values of which some must count and others may."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = Sequence[float] | NDArray[np.float64]


def extreme_average(total: float, count: float, values: Numbers, must: Numbers, may: Numbers, sign: int) -> float | None:
    """The least (sign -1) or greatest (1) average of rows of a known total and others: `must` to `must + may` of each value.

    It is reached when the most extreme values give all their rows, as long as they are more extreme than the average so far, and
    the others as few as they can. None where no row is. Computed in doubles: callers leave room for their rounding.

    >>> extreme_average(10.0, 1.0, [0.0, 40.0, 16.0], [1.0, 0.0, 0.0], [5.0, 1.0, 2.0], 1)
    16.666666666666668
    """
    value, least, more = (np.asarray(each, dtype=float) for each in (values, must, may))
    some = least + more > 0
    value, least, more = value[some], least[some], more[some]
    order = np.argsort(-sign * value)
    totals = total + float(value @ least) + np.concatenate([[0.0], np.cumsum((value * more)[order])])
    counts = count + float(least.sum()) + np.concatenate([[0.0], np.cumsum(more[order])])
    averages = sign * totals[counts > 0] / counts[counts > 0]
    return sign * float(averages.max()) if len(averages) else None
