"""How many changed rows to wait for before a refresh: small batches keep a view fresh, large ones keep up with more changes.

A refresh takes about a + b n seconds for n changed rows, so n rows at a time are refreshed at n / (a + b n) rows a second, which
grows with n towards 1 / b. The least n that keeps up with r rows a second is a r / (1 - b r). Between two refreshes answers are
corrected by a sample, which is cleaned meanwhile (SVC, section 12.2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf

import numpy as np

from nearly.errors import SchemaError, Unsupported
from nearly.rewrite.delta.strategy.strategies import WHOLE
from nearly.views.states import Refresh


def smallest_batch(refreshes: Sequence[Refresh], rows_per_second: float) -> int:
    """The least number of changed rows whose refreshes keep up with so many a second, by what past refreshes took."""
    if not isinstance(rows_per_second, int | float) or not 0 < rows_per_second < inf:
        raise SchemaError(f"rows_per_second={rows_per_second!r} must be a number greater than 0")
    known = [each for each in refreshes if each.changes and each.strategy != WHOLE]
    if len({each.changes for each in known}) < 2:
        raise Unsupported("refreshes of two different numbers of changed rows are needed to tell; refresh more often first")
    fixed, each_row = line(known)
    if each_row * rows_per_second >= 1:
        raise Unsupported(f"no batch is large enough: refreshes take at most about {1 / each_row:,.0f} changed rows a second")
    return max(1, ceil(fixed * rows_per_second / (1 - each_row * rows_per_second)))


def line(refreshes: Sequence[Refresh]) -> tuple[float, float]:
    """Seconds of a refresh without rows, and of a row: the least squares of relative errors, neither below 0."""
    rows, seconds = (np.array([getattr(each, name) for each in refreshes], dtype=float) for name in ("changes", "seconds"))
    scaled = np.stack([1 / seconds, rows / seconds], axis=1)
    fixed, each_row = np.linalg.lstsq(scaled, np.ones(len(rows)), rcond=None)[0]
    if fixed < 0:
        return 0.0, float((rows / seconds).sum() / ((rows / seconds) ** 2).sum())
    if each_row < 0:
        return float((1 / seconds).sum() / ((1 / seconds) ** 2).sum()), 0.0
    return float(fixed), float(each_row)
