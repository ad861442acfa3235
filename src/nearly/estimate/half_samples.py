"""Replicates that are as far from an answer as the answer is from the truth, for rows that estimates pick.

An answer that leaves one group of units out differs from the whole one by a part of the sampling error only, about its size over
the root of the number of groups. For smooth statistics that tells the size. Where a test picks rows, as `HAVING avg(x) > 5` does,
it does not: a key whose average is near 5 is picked in all such replicates or in none, however likely it is to end on the other
side of 5, and everything that is made of its rows would seem sure.

So here no group is left out. In each replicate half of them weigh more and half less, by a factor 1 + f or 1 - f with
f = sqrt(1 - share read), in the balanced pattern of a Hadamard matrix. Law: for totals the mean square of (replicate - answer) over
all replicates is, to first order, the variance of the ratio estimator under sampling without replacement. So a replicate is an
answer as another sample might have given it, and a test picks in it what it would have picked there.

References: McCarthy 1969 (balanced half-samples); Fay 1989, Judkins 1990 (weights that are not 0 and 2); Kovar, Rao and Wu 1988
(statistics that are not smooth).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearly.algebra import special
from nearly.estimate.intervals import LARGEST_MISSING, Interval

Floats = NDArray[np.float64]


def balanced_weights(group_rows: Floats, share: float) -> Floats:
    """Replicate x group: by what the usual weight of the rows of a group is multiplied.

    Law: in every replicate the weights of all rows add up to what they are usually.

    >>> balanced_weights(np.array([10.0, 10.0, 10.0]), 0.75).shape
    (4, 3)
    """
    signs = _hadamard(len(group_rows) + 1)[:, 1 : len(group_rows) + 1]
    factors = 1 + np.sqrt(max(1 - share, 0.0)) * signs
    return np.asarray(factors * group_rows.sum() / (factors @ group_rows)[:, None], dtype=float)


def lengthened(found: Interval, theta: Floats, replicates: Floats, groups: int, failure: float) -> Interval:
    """Intervals that reach as far as replicates (replicate x cell) do: by their standard error, and by their own quantiles.

    The quantiles serve where a test that hardly ever changes its outcome changes much when it does. A cell that many replicates
    lack is withheld: most of its spread is whether it is there at all.
    """
    away = replicates - theta
    present = np.isfinite(away)
    count = np.maximum(present.sum(axis=0), 1)
    error = np.sqrt(np.where(present, away * away, 0.0).sum(axis=0) / count)
    reach = error * float(special.stdtrit(max(groups - 1, 1), 1 - failure / 2))
    ordered = np.sort(np.where(present, away, 0.0), axis=0)
    last = len(ordered) - 1
    place = int(last * failure / 2)
    low = np.fmin(found.low, theta - np.maximum(reach, -ordered[place]))
    high = np.fmax(found.high, theta + np.maximum(reach, ordered[last - place]))
    withheld = found.withheld | (count < (1 - LARGEST_MISSING) * len(replicates))
    return Interval(np.where(withheld, np.nan, low), np.where(withheld, np.nan, high), np.fmax(found.error, error))


def _hadamard(least: int) -> Floats:
    """Sylvester's matrix of +1 and -1 with at least so many orthogonal columns; the first is constant."""
    matrix = np.ones((1, 1))
    while len(matrix) < least:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix
