"""One aggregate of a query over a stale view that is made of sums: its estimate in every group, and what bounds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearly.estimate.changed_counts import interval_of_count
from nearly.estimate.corrections import (
    FEWEST_CHANGED,
    FEWEST_ROWS,
    Counts,
    Estimates,
    agreeing,
    interval_of,
    mixed,
    share_of_correction,
    shrunk,
)
from nearly.estimate.evidence import Evidence, nothing
from nearly.estimate.intervals import FEWEST_SEEN, Interval
from nearly.views.sampling.strata import CORRECTED, DIRECT, MERGED, STALE, Strata

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

AUTO, CORR, AQP, STALE_ONLY = "auto", "corr", "aqp", "stale"
MANY = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Estimated:
    """`chosen` are the estimates shown, which rest on `changed` groups of tickets as far as they are corrections; `direct` those
    from the sample alone. An `own` interval is there where replicates are not what bounds the aggregate.
    """

    chosen: Estimates
    changed: Counts
    direct: Estimates
    own: Interval | None = None
    typed: pa.ChunkedArray | None = None
    """Values that are not doubles."""
    certain: tuple[list[Any], list[Any]] | None = None
    """Bounds that hold for sure."""
    trusted: NDArray[np.bool_] | None = None
    """Of which groups an interval may be given; None where of all that have one."""
    exceeding: Floats | None = None
    """The probability that a value lies beyond an extreme."""

    def of(self, rows: Integers) -> Estimated:
        """What counts for intervals, in some groups."""
        trusted = None if self.trusted is None else self.trusted[rows]
        return Estimated(self.chosen.of(rows), self.changed[rows], self.direct.of(rows), trusted=trusted)

    @property
    def told(self) -> NDArray[np.bool_]:
        """Of which cells enough groups of tickets tell something: of the changes, or of the rows themselves."""
        by_changes = (self.changed >= FEWEST_CHANGED) & (self.chosen.support >= FEWEST_SEEN)
        return np.asarray(by_changes | (self.direct.support >= FEWEST_SEEN), dtype=bool)


@dataclass(frozen=True, slots=True)
class DrawnRows:
    """The rows of cells: the direct estimate of their number, and how many of those drawn changed."""

    counted: Estimates
    changed: Counts

    def of(self, rows: Integers) -> DrawnRows:
        """Those of some cells."""
        return DrawnRows(self.counted.of(rows), self.changed[rows])


class Sums(Protocol):
    """What is asked of cells for aggregates that are made of sums."""

    @property
    def count(self) -> int: ...

    @property
    def strata(self) -> Strata: ...

    @property
    def replicated(self) -> bool: ...

    @property
    def together(self) -> float: ...

    def values(self, name: str, kind: int, /) -> Floats: ...

    def estimates(self, name: str, kind: int, /) -> Estimates: ...

    def changed_groups(self) -> Integers: ...

    def is_spread(self, name: str, /) -> bool: ...

    def is_count(self, name: str, /) -> bool: ...


def bounded(
    shown: Estimates, direct: Estimates, parts: Sequence[Estimated], quotient_of: DrawnRows | None, behind: Evidence
) -> Interval:
    """The intervals of a value made of some aggregates: of what is no total there are none of its own from few changed rows.

    There is none where a part is hardly known: that others vary does not tell how far it is off.
    """
    groups = np.min([each.changed for each in parts], axis=0)
    if quotient_of is None:
        found = interval_of(shown, groups, direct, behind)
    else:
        enough = (groups == MANY) | (quotient_of.changed >= FEWEST_ROWS)
        found = interval_of(shown, np.where(enough, groups, 0), direct, behind, quotient_of.counted)
    known = [each.told for each in parts] + [each.trusted for each in parts if each.trusted is not None]
    return found.only(np.asarray(np.logical_and.reduce(known), dtype=bool))


def linear_column(cells: Sums, name: str, behind: Evidence, method: str) -> Estimated:
    """A sum, or what is computed from sums."""
    found = _linear(cells, name, method)
    if found.own is not None:
        return found
    if cells.is_spread(name):
        return replace(found, trusted=_trusted(cells, name, behind))
    return replace(found, own=_of_count(cells, name, found, behind)) if cells.is_count(name) and cells.replicated else found


def _of_count(cells: Sums, name: str, found: Estimated, behind: Evidence) -> Interval:
    """The intervals of a number of rows: those of corrections that rest on few changes allow for changes that were not drawn."""
    usual = interval_of(found.chosen, found.changed, found.direct, behind)
    corrected, stale = cells.estimates(name, CORRECTED), cells.values(name, STALE)
    counted = interval_of_count(corrected, stale, found.direct, behind, cells.together)
    few = (found.changed < FEWEST_CHANGED) & ~counted.withheld
    low = np.where(few, np.fmin(counted.low, found.chosen.theta), usual.low)
    high = np.where(few, np.fmax(counted.high, found.chosen.theta), usual.high)
    return Interval(low, high, np.where(few, counted.error, usual.error))


def _trusted(cells: Sums, name: str, behind: Evidence) -> NDArray[np.bool_]:
    """Of which spreads there are intervals: those hang on the few largest values, of which a sample may have drawn none.

    That it did shows where it contradicts what is known of the stale rows; of new large values the changes tell if they are many.
    """
    direct, corrected = cells.estimates(name, DIRECT), cells.estimates(name, CORRECTED)
    return np.asarray((corrected.support >= FEWEST_CHANGED) & agreeing(direct, corrected, behind), dtype=bool)


def _linear(cells: Sums, name: str, method: str) -> Estimated:
    """The estimates; a spread that is corrected has the interval of the direct estimate, made long enough for it."""
    stale, many = cells.values(name, STALE), np.full(cells.count, MANY)
    if method == STALE_ONLY:
        return Estimated(unbounded(stale, cells), many, unbounded(stale, cells), none_of(cells.count))
    direct, corrected = (cells.estimates(name, kind).without_rounding(stale) for kind in (DIRECT, CORRECTED))
    if method == AQP:
        return Estimated(direct, many, direct)
    support = np.zeros_like(corrected.support) if cells.is_spread(name) else corrected.support
    if method == CORR:
        return Estimated(corrected, support, direct)
    share = share_of_correction(direct, corrected)
    chosen, changed = mixed(direct, corrected, share), np.where(share > 0, support, many)
    merged, drawn = cells.values(name, MERGED), cells.strata.share
    if not cells.replicated:
        changed = cells.changed_groups()
        careful = merged + (1 - 1 / np.maximum(changed, 1)) * (corrected.theta - merged)
    else:
        careful = shrunk(corrected, merged, stale, drawn)
    few = (share == 1) & (changed < FEWEST_CHANGED)
    return Estimated(Estimates(np.where(few, careful, chosen.theta), chosen.copies), changed, direct)


def unbounded(theta: Floats, cells: Sums) -> Estimates:
    return Estimates(theta, np.full((cells.strata.groups if cells.replicated else 0, len(theta)), np.nan))


def none_of(count: int) -> Interval:
    return nothing(count)
