"""The step of a k-d tree: rows are cut at the median of one column, and of the next one below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class MedianCut(NamedTuple):
    """Rows of at most `value` in a column go to the one side, the others to the other."""

    column: int
    value: float


def cut_in_turn(
    coordinates: NDArray[Any], rows: NDArray[np.int64], columns: Sequence[int], turn: int, share: float = 0.5
) -> MedianCut | None:
    """The cut of the first column, from `turn` on, that has two different values in the rows; None where no column has.

    It leaves as nearly as possible this share of the rows on the lower side. `coordinates` has one line for each column.

    >>> cut_in_turn(np.array([[1, 1, 1, 1], [5, 9, 7, 7]]), np.arange(4), [0, 1], 0)
    MedianCut(column=1, value=5.0)
    """
    for step in range(len(columns)):
        column = columns[(turn + step) % len(columns)]
        values, counts = np.unique(coordinates[column, rows], return_counts=True)
        if len(values) > 1:
            below = np.cumsum(counts)[:-1]
            return MedianCut(column, float(values[np.abs(below - share * len(rows)).argmin()]))
    return None
