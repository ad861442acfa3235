"""Random orders of reading: which units are read when a share of them is, and the group that each falls in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.sampling.populations import Floats, Integers

GROUPS = 32


@dataclass(frozen=True, slots=True)
class Reading:
    """For each seed, the units read so far (seeds x units) in their order; unit i of them falls in group i mod G."""

    units: Integers
    groups: int

    @property
    def group_of(self) -> Integers:
        """The group of each unit read, by its place in the order."""
        return np.arange(self.units.shape[1]) % self.groups

    def group_sums(self, partials: Floats) -> Floats:
        """Sums of the units' partials (units x features) in each group: seeds x groups x features."""
        seeds, count = self.units.shape
        padded = np.vstack([partials, np.zeros((1, partials.shape[1]))])
        filler = np.full((seeds, -count % self.groups), len(partials))
        rounds = np.concatenate([self.units, filler], axis=1).reshape(seeds, -1, self.groups)
        sums = np.zeros((seeds, self.groups, partials.shape[1]))
        for place in range(rounds.shape[1]):
            sums += padded[rounds[:, place]]
        return sums


def random_orders(units: int, seeds: int, first_seed: int = 0) -> Integers:
    """One permutation of the units for each seed."""
    return np.stack([np.random.default_rng(first_seed + seed).permutation(units) for seed in range(seeds)])


def reading(orders: Integers, share: float) -> Reading:
    """What is read when about this share of the units is."""
    count = max(1, round(share * orders.shape[1]))
    return Reading(orders[:, :count], min(count, GROUPS))
