"""Numbers of rows that are corrected by few changes: how many rows may have come or gone that were not drawn.

A change adds rows to a count or takes them away, whatever their values are. So what came and what went are two numbers of events,
of which each is drawn with probability m, and Poisson's limits hold for both: k drawn events stand for at most
gamma^-1(k + 1, 1 - f/2) / m and for at least gamma^-1(k, f/2) / m. Each limit is as far from the corrected number as both together
take it, the root of the sum of squares (Donner and Zou 2012), times sqrt(1 - m), since what was drawn is known.

From groups of tickets only the difference c of both numbers is known in each. With C = sum c and V = sum c^2 it is taken as that of
two Poisson variables: its mean is the difference of their means and its variance the sum, so that (V + C) / 2 came and (V - C) / 2
went.

Rows that have their ticket in common come and go together. An event is therefore as many rows as such rows are on average, the
larger of what the changes show, V / sum |c|, and what all rows of the sample do, the variance of their number over that number;
both weigh a cluster by its size (Bohm and Zech 2014, scaled Poisson). Assumption: changes touch no larger clusters than there
usually are. Of a cell of which hardly anything was drawn, its own rows do not tell how large those are; then the rows of all cells
do, and how many rows of the sample share a ticket.

References: Garwood 1936 (limits of Poisson variables); Skellam 1946; Donner and Zou 2012; Bohm and Zech 2014.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearly.algebra import special
from nearly.estimate.corrections import Estimates
from nearly.estimate.evidence import Evidence
from nearly.estimate.intervals import FEWEST_SEEN, Interval, failure_at

Floats = NDArray[np.float64]

LARGEST = 12.0
"""Where more rows than these share a ticket on average, few clusters may hold most of them, of which few changes tell nothing."""
_NONE = 1e-6
"""Less than this is none: numbers of rows are sums of doubles."""


def interval_of_count(corrected: Estimates, stale: Floats, direct: Estimates, behind: Evidence, together: float = 1.0) -> Interval:
    """Intervals of corrected numbers of rows: stale ones, and what changed in a share of the tickets, which is dealt into groups.

    There is none where many rows share a ticket; so many of the whole sample are `together`.
    """
    share, groups = behind.share, len(corrected.copies)
    whole = share * (corrected.theta - stale)
    changed = share * (groups - 1) / groups * (corrected.theta - corrected.copies) + whole / groups
    size = np.maximum(_cluster(changed), _cluster_drawn(direct, share, together))
    events, net = (changed * changed).sum(axis=0) / size**2, whole / size
    came, went = (np.maximum((events + sign * net) / 2, np.maximum(sign * net, 0.0)) for sign in (1, -1))
    tail = failure_at(behind.confidence, behind.look) / 2
    of_came, of_went = _distances(came, tail), _distances(went, tail)
    scale = size * np.sqrt(1 - share) / share
    low = corrected.theta - scale * np.hypot(of_came[0], of_went[1])
    high = corrected.theta + scale * np.hypot(of_came[1], of_went[0])
    return Interval(np.maximum(low, 0.0), high, scale * np.sqrt(events)).only(size <= LARGEST)


def _cluster(changed: Floats) -> Floats:
    """How many rows come and go together, by the changes of each group; one at least."""
    total = np.abs(changed).sum(axis=0)
    return np.asarray(np.maximum((changed * changed).sum(axis=0) / np.maximum(total, _NONE), 1.0), dtype=float)


def _cluster_drawn(direct: Estimates, share: float, together: float) -> Floats:
    """How many rows of the sample share a ticket, by how much their number varies more than that of single rows would."""
    groups = max(len(direct.copies), 2)
    variance, rows = (groups - 1) / groups * (direct.deviations**2).sum(axis=0), np.maximum(direct.theta, 0.0)
    own = share * variance / np.maximum(rows, 1.0)
    of_all = share * variance.sum() / max(rows.sum(), 1.0)
    size = np.where(direct.support < FEWEST_SEEN, np.fmax(own, max(of_all, together)), own)
    return np.asarray(np.maximum(size, 1.0), dtype=float)


def _distances(drawn: Floats, tail: float) -> tuple[Floats, Floats]:
    """How far the limits of a Poisson variable lie below and above what was drawn of it."""
    some = drawn > _NONE
    least = np.where(some, special.gammaincinv(np.where(some, drawn, 1.0), tail), 0.0)
    return drawn - least, special.gammaincinv(drawn + 1, 1 - tail) - drawn
