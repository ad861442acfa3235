"""What estimates need of the sampled rows and their leaves, prepared once for many queries.

Every estimate is made of sums, over the sampled rows that match, of products of powers of the value with positions in the leaf and
with the row's weight. These products are columns here, so a query is a mask and a matrix product.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nearly.synopsis.structure.rows import Floats, Integers, Mask
from nearly.synopsis.structure.statistics import (
    COUNT,
    DELTA,
    FIXED,
    FOURTHS,
    ONE,
    POSITIVE,
    ROWS,
    SQUARE,
    SQUARES,
    SUM,
    VALUE,
    Scales,
    leaf_statistics,
    product,
)
from nearly.synopsis.structure.stored_rows import Sample
from nearly.synopsis.structure.tree import Box

POWERS = 6
"""Columns 1, v, v*d, ..., v*d^4; then the responses times the weight; then the responses times each position."""
FEWEST_CALIBRATED = 20
"""Samples a leaf needs for each column it is calibrated with."""
FEW_LEAVES = 8
"""Up to here a loop over leaves with plain numbers is quicker than arrays."""

Number = Any
"""A float for one leaf, or an array over several leaves: the formulas are the same."""


def plain(response: int) -> int:
    """The column of a response."""
    return response


def weighted(response: int) -> int:
    """The column of a response times the row's weight."""
    return POWERS + response


class Stratum(NamedTuple):
    """What is known of a leaf (or, as arrays, of several) apart from a query.

    `rest_positive` and `rest_negative` are the sums of the positive and negative values that were not sampled; `moments` the leaf's
    means of the products of responses, and `sampled_moments` those of its sample; `calibrated` is 1 where weights are;
    `lift` widens the variance when the sample's z lie far from their known means;
    `blind` is 1 where the samples are too few to tell a variance.
    """

    rows: Number
    count: Number
    size: Number
    sampled_values: Number
    rest_positive: Number
    rest_negative: Number
    bottom: Number
    top: Number
    freedom: Number
    spread: Number
    lift: Number
    calibrated: Number
    blind: Number
    halves: tuple[Number, ...]
    moments: tuple[Number, ...]
    sampled_moments: tuple[Number, ...]
    means: tuple[Number, ...]
    inverse: tuple[tuple[Number, ...], ...]


class StratumSums(NamedTuple):
    """A stratum and the sums of all columns over its sampled rows that match."""

    stratum: Stratum
    sums: list[Number]


class Features:
    """Columns over the sampled rows and constants of the leaves.

    A leaf's weights are calibrated: N * (1/n + (z - mean(z))' H (Z - mean(z))), with z the deviation and the positions of a row, Z
    their known leaf means, and H the inverse of the sample's scatter of z (zero in leaves with few samples).
    """

    def __init__(self, scales: Scales, sample: Sample, statistics: Floats, extremes: tuple[Floats, Floats]) -> None:
        rows = sample.rows
        known = ~np.isnan(rows.values)
        delta = np.where(known, rows.values - scales.centre, 0.0)
        positions = scales.positions(rows.coordinates, sample.leaf)
        self._positions = len(positions)
        self._coordinates = rows.coordinates
        self._values = rows.values
        self._starts = sample.starts
        self._start_list: list[int] = sample.starts.tolist()
        self.sizes = sample.sizes.astype(np.float64)
        sampled = leaf_statistics(scales, rows, sample.leaf)
        weights = self._calibrated(np.concatenate([delta[None, :], positions]), sample.leaf, statistics)
        powers = [np.ones(len(rows)), known.astype(np.float64), delta, delta**2, delta**3, delta**4]
        with_weights = [power * weights for power in powers[:4]]
        crosses = [power * line for power in powers[:4] for line in positions]
        self._columns: Floats = np.array(powers + with_weights + crosses).T.copy()
        self._constants = self._stratum(statistics, sampled, scales.centre, extremes)
        self._known_strata: dict[int, Stratum] = {}
        self.crosses = [self._crosses(each) for each in (ONE, VALUE, DELTA, SQUARE)]
        """For each response the columns of its product with each z: the deviation, then the positions."""

    def _calibrated(self, z: Floats, leaf: Integers, statistics: Floats) -> Floats:
        """The rows' weights; on the way, means and inverse scatter of z in each leaf."""
        leaves, wide = len(self.sizes), len(z)
        size = np.maximum(self.sizes, 1.0)
        self._means = np.stack([np.bincount(leaf, line, leaves) for line in z], axis=1) / size[:, None]
        centred = z - self._means[leaf].T
        enough = self.sizes > FEWEST_CALIBRATED * wide
        self._inverse = _inverse_scatter(centred, leaf, leaves, enough)
        self._rank = np.where(enough, float(wide), 0.0)
        rows = np.maximum(statistics[:, ROWS], 1.0)
        gap = np.concatenate([statistics[:, [SUM]], statistics[:, FIXED:]], axis=1) / rows[:, None] - self._means
        pull = (self._inverse @ gap[:, :, None])[:, :, 0]
        self._lift = 1.0 + size * (pull * gap).sum(axis=1)
        shares = 1.0 / size[leaf] + (centred * pull[leaf].T).sum(axis=0)
        self.whole: Mask = self.sizes >= statistics[:, ROWS]
        """The leaves whose rows are all in the sample."""
        weights: Floats = np.where(self.whole[leaf], 1.0, statistics[leaf, ROWS] * shares)
        return weights

    def _stratum(self, statistics: Floats, sampled: Floats, centre: float, extremes: tuple[Floats, Floats]) -> Stratum:
        rows, size = statistics[:, ROWS], self.sizes
        divisor = np.maximum(rows, 1.0)
        raw, raw_sampled = (each[:, SUM] + centre * each[:, COUNT] - each[:, POSITIVE] for each in (statistics, sampled))
        missing = np.where(size > 0, 0.0, 0.5)
        return Stratum(
            rows=rows, count=statistics[:, COUNT], size=size, sampled_values=sampled[:, COUNT],
            rest_positive=np.maximum(statistics[:, POSITIVE] - sampled[:, POSITIVE], 0.0),
            rest_negative=np.minimum(raw - raw_sampled, 0.0),
            bottom=extremes[0], top=extremes[1],
            freedom=np.maximum(size - 1.0 - self._rank, 1.0),
            spread=rows * np.maximum(rows - size, 0.0) / np.maximum(size, 1.0),
            lift=self._lift, calibrated=(self._rank > 0).astype(np.float64), blind=((size < 2) & (size < rows)).astype(np.float64),
            halves=tuple(missing * statistics[:, each] for each in (ROWS, COUNT, SUM, SQUARES)),
            moments=_moments(statistics, divisor), sampled_moments=_moments(sampled, np.maximum(size, 1.0)),
            means=tuple(self._means.T), inverse=tuple(tuple(line.T) for line in self._inverse.transpose(1, 0, 2)),
        )  # fmt: skip

    def _crosses(self, response: int) -> list[int]:
        first = POWERS + 4 + response * self._positions
        return [product(response, DELTA), *range(first, first + self._positions)]

    def pieces(self, partial: Integers, box: Box) -> list[StratumSums]:
        """The partial leaves with their matching rows summed up: one piece each when they are few, else one of arrays."""
        if len(partial) > FEW_LEAVES:
            return [StratumSums(_at(self._constants, partial), list(self._sums_of_many(partial, box).T))]
        found = []
        for leaf in partial.tolist():
            begin, end = self._start_list[leaf], self._start_list[leaf + 1]
            sums = self._inside(slice(begin, end), box) @ self._columns[begin:end]
            found.append(StratumSums(self._one(leaf), sums.tolist()))
        return found

    def _one(self, leaf: int) -> Stratum:
        if leaf not in self._known_strata:
            self._known_strata[leaf] = _as_floats(_at(self._constants, np.array([leaf])))
        return self._known_strata[leaf]

    def _sums_of_many(self, partial: Integers, box: Box) -> Floats:
        places, owner = self._rows_of(partial)
        inside = self._inside(places, box)
        places, owner = places[inside], owner[inside]
        found = np.zeros((len(partial), self._columns.shape[1]))
        if places.size:
            starts = np.searchsorted(owner, np.arange(len(partial)))
            filled = np.diff(np.append(starts, len(owner))) > 0
            found[filled] = np.add.reduceat(self._columns[places], starts[filled], axis=0)
        return found

    def matching_values(self, partial: Integers, box: Box) -> Floats:
        """The values, NaN for a null, of the matching sampled rows of these leaves."""
        places, _ = self._rows_of(partial)
        found: Floats = self._values[places[self._inside(places, box)]]
        return found

    def _rows_of(self, partial: Integers) -> tuple[Integers, Integers]:
        """Places of the sampled rows of some leaves, and which of the leaves each belongs to."""
        begin = self._starts[partial]
        sizes = self._starts[partial + 1] - begin
        owner = np.repeat(np.arange(len(partial)), sizes)
        shift = begin - (np.cumsum(sizes) - sizes)
        return np.arange(len(owner)) + shift[owner], owner

    def _inside(self, rows: slice | Integers, box: Box) -> Mask:
        inside: Mask | None = None
        for each in box:
            column = self._coordinates[each.dimension][rows]
            within = (column >= each.low) & (column <= each.high)
            inside = within if inside is None else inside & within
        return np.ones(len(self._values[rows]), bool) if inside is None else inside


def _moments(statistics: Floats, divisor: Floats) -> tuple[Floats, ...]:
    """The means of 1, v, v*d, ..., v*d^4 in each leaf."""
    return tuple((statistics[:, ROWS : FOURTHS + 1] / divisor[:, None]).T)


def _inverse_scatter(centred: Floats, leaf: Integers, leaves: int, enough: Mask) -> Floats:
    """The inverse of each leaf's scatter of z, computed at unit scale; directions without scatter stay zero."""
    wide = len(centred)
    scatter = np.empty((leaves, wide, wide))
    for one in range(wide):
        for two in range(one, wide):
            scatter[:, one, two] = scatter[:, two, one] = np.bincount(leaf, centred[one] * centred[two], leaves)
    scale = np.sqrt(np.maximum(np.einsum("lii->li", scatter), 0.0))
    scale[scale == 0] = 1.0
    outer = scale[:, :, None] * scale[:, None, :]
    inverse = np.zeros_like(scatter)
    if enough.any():
        inverse[enough] = np.linalg.pinv(scatter[enough] / outer[enough], rcond=1e-8, hermitian=True) / outer[enough]
    return inverse


def _at(constants: Any, leaves: Integers) -> Any:
    """A stratum of some leaves only."""
    if isinstance(constants, np.ndarray):
        return constants[leaves]
    parts = [_at(each, leaves) for each in constants]
    return Stratum(*parts) if isinstance(constants, Stratum) else tuple(parts)


def _as_floats(constants: Any) -> Any:
    """A stratum of one leaf, as plain numbers."""
    if isinstance(constants, np.ndarray):
        return float(constants[0])
    parts = [_as_floats(each) for each in constants]
    return Stratum(*parts) if isinstance(constants, Stratum) else tuple(parts)
